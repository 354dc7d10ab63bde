// Net gamma by strike through a session: the bars of a moment, and all moments as a map behind the price.

export const lasts = 15 * 60e3; // a row stands for what follows, at most so long: rows are 5 minutes apart, those of played sessions 15
const clipAt = 0.98; // the share of the cells that the colours tell apart

/** read returns the rows of gex/{u}/strikes. */
export const read = ({ columns, rows }) => rows.map((row) => {
  const get = (name) => row[columns.indexOf(name)];
  return { at: Date.parse(get('as_of')), spot: get('effective_spot'), strikes: get('strikes'), values: get('net_gex_dollars') };
});

/** barsAt returns the bars at a moment, as those of an answer of gex/{u}, or null. */
export function barsAt(through, at) {
  const row = through && read(through).findLast((r) => r.at <= at);
  return row && at - row.at <= lasts ? { at: row.at, by_strike: row.strikes.map((strike, i) => ({ strike, net_gex_dollars: row.values[i] })) } : null;
}

/** cellsOf returns the cells of the map: [from, to, low, high, share], where share is −1 to 1 of the figure at which the colours end. */
export function cellsOf(through, until = Infinity) {
  const rows = read(through);
  const sizes = rows.flatMap((r) => r.values).filter((v) => v !== null).map(Math.abs).sort((a, b) => a - b);
  const clip = sizes[Math.ceil(clipAt * sizes.length) - 1] || 1;
  return rows.filter((r) => r.at <= until).flatMap(({ at, strikes, values }, k) => {
    const to = Math.min(rows[k + 1]?.at ?? at + lasts / 2, at + lasts);
    const middle = (i) => (strikes[i] + strikes[i + 1]) / 2;
    const [first, last] = [strikes[0], strikes.at(-1)];
    return values.flatMap((v, i) => (v === null || strikes.length < 2 ? [] : [[at, to, i ? middle(i - 1) : 2 * first - middle(0), strikes[i] === last ? 2 * last - middle(i - 1) : middle(i), Math.max(-1, Math.min(1, v / clip))]]));
  });
}
