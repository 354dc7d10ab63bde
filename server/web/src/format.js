// Texts for numbers with their units, instants and ages. An unknown value is a dash.

export const unknown = '–';
const gap = '\u00a0'; // no line break between a number and its unit
const minus = (text) => text.replace('-', /[1-9]/.test(text) ? '\u2212' : ''); // zero has no sign
const known = (x) => typeof x === 'number' && Number.isFinite(x);

const formats = new Map(); // one takes as long to make as 100 numbers to write

/** grouped writes x with at least and at most so many decimals. */
function grouped(x, least, most) {
  const key = `${least} ${most}`;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat('en-US', { minimumFractionDigits: least, maximumFractionDigits: most }));
  return formats.get(key).format(x);
}

/** number writes x with at most so many decimals, or with exactly so many if fixed. */
export function number(x, decimals = 0, fixed = false) {
  if (!known(x)) return unknown;
  return minus(grouped(x, fixed ? decimals : 0, decimals));
}

/** level writes an index level. */
export const level = (x) => number(x, 2, known(x) && !Number.isInteger(x));

/** rough writes a positive price or a move with three digits, or without decimals. */
export const rough = (x) => number(x, x > 0 ? Math.max(0, 2 - Math.floor(Math.log10(x))) : 0);

const signed = (x, text) => (x > 0 ? `+${text}` : text);

/** percent writes a percentage with its sign. */
export function percent(x, decimals = 2) {
  return known(x) ? signed(Number(x.toFixed(decimals)), `${number(x, decimals, true)}${gap}%`) : unknown;
}

/** share writes a percentage of a whole. */
export const share = (x) => percent(x, 1).replace('+', '');

/** nearest returns the index of the number of a list that is nearest to x. */
export const nearest = (all, x) => all.reduce((best, y, i) => (Math.abs(y - x) < Math.abs(all[best] - x) ? i : best), 0);

/** points writes a difference with its sign. */
export const points = (x, decimals = 2) => (known(x) ? signed(Number(x.toFixed(decimals)), number(x, decimals, true)) : unknown);

const scales = [[1e12, 'tn'], [1e9, 'bn'], [1e6, 'm'], [1e3, 'k']];

/** short writes a count or an amount with three digits: 6.40 bn. brief leaves out trailing zeros, for axes. */
export function short(x, brief = false) {
  if (!known(x)) return unknown;
  const size = Math.abs(x);
  const [scale, suffix] = scales.find(([s]) => size >= s * 0.9995) ?? [1, ''];
  const y = x / scale;
  const decimals = suffix === '' && Number.isInteger(x) || Math.abs(y) >= 99.95 ? 0 : Math.abs(y) >= 9.995 ? 1 : 2;
  return minus(grouped(y, brief ? 0 : decimals, decimals) + (suffix && gap + suffix));
}

/** dollars writes an amount: −$6.40 bn. A word joiner keeps the sign on the line of the amount. */
export function dollars(x, brief = false) {
  if (!known(x)) return unknown;
  const text = `$${short(Math.abs(x), brief)}`;
  return x < 0 && /[1-9]/.test(text) ? `\u2212\u2060${text}` : text;
}

/** axisDollars and axisShort write the numbers of an axis. */
export const axisDollars = (x) => dollars(x, true);
export const axisShort = (x) => short(Math.abs(x), true);

const newYork = (options) => new Intl.DateTimeFormat('en-GB', { timeZone: 'America/New_York', ...options });
const clock = newYork({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const dayNewYork = newYork({ day: 'numeric', month: 'short' });
const isoNewYork = new Intl.DateTimeFormat('en-CA', { timeZone: 'America/New_York' });
const utcDay = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short', year: 'numeric' });
const utcShort = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' });
const utcWeekday = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'long', day: 'numeric', month: 'short' });
const utcWeekdayShort = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', weekday: 'short', day: 'numeric', month: 'short' });
const utcMonth = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', month: 'short', year: '2-digit' });

/** instant writes an instant in New York's time: 20 Nov 10:44:39 ET. */
export function instant(text) {
  const t = new Date(text);
  return `${dayNewYork.format(t)} ${clock.format(t)} ET`;
}

/** time writes the time of day in New York, of milliseconds since 1970: 10:44:39, or 10:44 if brief. */
export const time = (ms, brief = false) => clock.format(ms).slice(0, brief ? 5 : 8);

/** newYorkDay returns the date in New York, YYYY-MM-DD, of milliseconds since 1970. */
export const newYorkDay = (ms) => isoNewYork.format(ms);

/** newYorkTime returns the instant, in milliseconds since 1970, at which New York's clock shows a time on a date. */
export function newYorkTime(day, clockTime) {
  const utc = Date.parse(`${day}T${clockTime}Z`);
  return [4, 5].map((hours) => utc + hours * 3600e3).find((t) => time(t) === clockTime) ?? utc;
}

/** closes returns the end of the session of a date: 16:00, or 13:00 on the days on which the exchanges always close early. */
export function closes(day) {
  const [month, dayOfMonth] = day.split('-').slice(1).map(Number);
  const weekday = new Date(day).getUTCDay();
  const early = month === 7 && dayOfMonth === 3 || month === 12 && dayOfMonth === 24 || month === 11 && weekday === 5 && dayOfMonth >= 23 && dayOfMonth <= 29;
  return newYorkTime(day, early ? '13:00:00' : '16:00:00');
}

/** early returns the time at which the session of a date ends early, or ''. */
export const early = (day) => time(closes(day), true).replace('16:00', '');

/** awaited says, outside a session, when the next quotes come, and what else there is to know. The delay makes them late. It knows weekends, and no holidays. */
export function awaited(now, delay) {
  for (let at = now; ; at += 86400e3) {
    const day = newYorkDay(at);
    const first = newYorkTime(day, '09:30:00') + delay * 60e3;
    if (now > first + 5 * 60e3 || [0, 6].includes(new Date(day).getUTCDay())) continue;
    return [`Next quotes: ${at === now ? 'today' : weekday(day, true)}, ${time(first, true)} ET`, `${delay ? `, ${delay} minutes late` : ''}, if the exchange opens.`];
  }
}

/** date writes a calendar date, which has no time zone. */
export const date = (text) => utcDay.format(new Date(`${text}T00:00:00Z`));
export const shortDate = (text) => utcShort.format(new Date(`${text}T00:00:00Z`));
export const weekday = (text, brief) => (brief ? utcWeekdayShort : utcWeekday).format(new Date(`${text}T00:00:00Z`)).replace(',', '');
export const month = (text) => utcMonth.format(new Date(`${text}-01T00:00:00Z`));

/** age writes a span of milliseconds: 15 min 21 s. */
export function age(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** ranged says between which values a subject was, or which value it always had. */
export function ranged(subject, values, write) {
  const [low, high] = [write(Math.min(...values)), write(Math.max(...values))];
  return low === high ? `${subject} was ${low}.` : `${subject} ranged from ${low} to ${high}.`;
}

/** spotName names the spot of the charts, which belongs to the quotes: the published price may be of another hour. */
export const spotName = (d) => (level(d.effective_spot) === level(d.spot) ? 'Spot' : { implied: 'Implied spot', close: 'Close' }[d.spot_source] ?? 'Spot');

/** words turns a code into words: steep_contango is steep contango. */
export const words = (code) => (code ? code.replaceAll('_', ' ') : unknown);

/** title turns a code into words that begin with a capital. */
export const title = (code) => (code ? words(code).replace(/^./, (c) => c.toUpperCase()) : unknown);

const reasons = {
  upstream_lag: 'newer quotes have not come',
  outside_session: 'the exchange is closed, and the page shows the last values of the session',
  no_refresher: 'for over 2 minutes this server has heard of no server that refreshes',
  overnight_quotes: 'option quotes move overnight, and the index does not',
  shrunk: 'the upstream’s chain has under half the rows of the last accepted chain',
  clock_ahead: 'a time in the upstream’s document is in the future',
  clock_backwards: 'the upstream’s document is older than the last accepted one',
  quotes_missing: 'the upstream’s chain lacks most of its quotes',
  open_interest_missing: 'the upstream’s chain lacks most of its open interest',
  price_jump: 'the upstream’s price differs by over 20 % from the last accepted one',
  too_many_expirations: 'the upstream’s chain has more expirations or strikes than are served',
  upstream_unreachable: 'the upstream cannot be reached',
  upstream_timeout: 'the upstream does not answer in time',
  upstream_refused: 'the upstream refuses the document',
  upstream_missing: 'the upstream does not have the document',
  upstream_throttled: 'the upstream asks for fewer requests',
  upstream_older: 'the upstream sends the document of an earlier day',
};

/** reason says why an answer is not fresh. */
export const reason = (code) => reasons[code] ?? (code ? `the upstream’s document cannot be used (${words(code)})` : 'no reason is given');
