// Tests of what the modules compute without a page: texts, polling, labels of charts, and the table of flow.
import assert from 'node:assert/strict';
import { test } from 'node:test';

// The parts of a browser that the modules use when they are loaded.
const page = { hidden: false, listeners: {}, addEventListener(name, f) { this.listeners[name] = f; } };
Object.assign(globalThis, {
  document: page, addEventListener() {}, location: { search: '' }, reportError(error) { throw error; }, devicePixelRatio: 1,
});
const format = await import('./format.js');
const { apart, decimals, drawable, drawn, layOut, legible, overhang } = await import('./paint.js');
const { beat, tryAgain, unwatch, watch } = await import('./poll.js');
const { matching, sided, sort } = await import('./flow.js');
const { rungs } = await import('./levels.js');
const { barsAt, cellsOf } = await import('./heat.js');
const { following } = await import('./strikes.js');
const { atRow, daily, fit, followTrack, outside, points, whole } = await import('./track.js');
const { large, log, placed, tracked } = await import('./events.js');

test('numbers, amounts, times and ages', () => {
  const plain = (text) => text.replace(/\u2060/g, '').replace(/\u00a0/g, ' ');
  for (const [got, want] of [
    [format.number(-1234.5, 1), '−1,234.5'], [format.number(NaN), '–'], [format.level(7514.6), '7,514.60'], [format.level(7500), '7,500'],
    [format.percent(0.614), '+0.61 %'], [format.percent(-0.001), '0.00 %'], [format.percent(null), '–'], [format.points(-1.5), '−1.50'], [format.points(0.004), '0.00'], [format.level(-0.001), '0.00'], [format.dollars(-0.001), '$0.00'],
    [format.short(999), '999'], [format.short(999.6), '1.00 k'], [format.short(6400), '6.40 k'], [format.short(12_345_678), '12.3 m'], [format.short(2e12), '2.00 tn'],
    [format.dollars(-6.4e9), '−$6.40 bn'], [format.axisDollars(-6.4e9), '−$6.4 bn'], [format.dollars(0), '$0'], [format.dollars(undefined), '–'],
    [format.rough(0.7731), '0.773'], [format.rough(6.1342), '6.13'], [format.rough(94.62), '94.6'], [format.rough(7550.4), '7,550'], [format.rough(null), '–'],
    [format.instant('2026-11-20T15:44:39Z'), '20 Nov 10:44:39 ET'], [format.instant('2026-07-01T15:44:39Z'), '1 Jul 11:44:39 ET'],
    [format.date('2026-11-20'), '20 Nov 2026'], [format.month('2026-11'), 'Nov 26'],
    [format.age(59_999), '59 s'], [format.age(921e3), '15 min 21 s'], [format.age(-5), '0 s'], [format.age(7260e3), '2 h 1 min'], [format.age(90000e3), '1 d 1 h'],
    [format.ranged('It', [3, 1, 2], String), 'It ranged from 1 to 3.'], [format.ranged('It', [7, 7], String), 'It was 7.'],
    [format.newYorkDay(Date.parse('2026-11-21T04:59:00Z')), '2026-11-20'], [format.weekday('2026-11-20'), 'Friday 20 Nov'],
    [format.awaited(Date.parse('2026-11-20T14:40:00Z'), 15).join('|'), 'Next quotes: today, 09:45 ET|, 15 minutes late, if the exchange opens.'],
    [format.awaited(Date.parse('2026-11-20T21:30:00Z'), 0).join('|'), 'Next quotes: Mon 23 Nov, 09:30 ET|, if the exchange opens.'],
    [format.title('steep_contango'), 'Steep contango'], [format.reason('x_y'), 'the upstream’s document cannot be used (x y)'],
  ]) assert.equal(plain(got), want);
  for (const [day, hour] of [['2026-11-20', 21], ['2026-11-27', 18], ['2026-12-24', 18], ['2028-07-03', 17]]) { // the last three close early
    assert.equal(format.closes(day), Date.parse(`${day}T${hour}:00:00Z`));
  }
  for (const [day, hour] of [['2026-03-06', 14], ['2026-03-09', 13], ['2026-10-30', 13], ['2026-11-02', 14]]) { // around both changes of the clocks
    assert.equal(format.newYorkTime(day, '09:30:00'), Date.parse(`${day}T${hour}:30:00Z`));
  }
});

test('labels of charts cover neither each other nor a line', () => {
  let seed = 7;
  const random = (n) => (seed = seed * 16807 % 2147483647) % n;
  for (let round = 0; round < 2000; round++) {
    const marks = Array.from({ length: 1 + random(6) }, (_, i) => ({ i, x: random(4) ? random(1400) : 700 + random(20), width: 60 + random(60) })).sort((a, b) => a.x - b.x);
    const placed = layOut(marks, 1400);
    assert.equal(placed.length, marks.length);
    for (const a of placed) {
      assert.ok(a.left >= 0 && a.left + a.width <= 1400, 'a label leaves the canvas');
      for (const b of placed) {
        if (a.i === b.i) continue;
        assert.ok(a.row !== b.row || a.left + a.width <= b.left || b.left + b.width <= a.left, 'a label covers another');
        assert.ok(a.row <= b.row || a.x <= b.left || a.x >= b.left + b.width, 'a line crosses a label');
      }
    }
  }
});

test('tags keep their distance, their order and their axis, and move as little as it takes', () => {
  for (const [at, want] of [[[50, 90], [50, 90]], [[50, 51], [41.5, 59.5]], [[0, 100], [0, 100]], [[95, 99, 100], [64, 82, 100]], [[20, 21, 80], [11.5, 29.5, 80]]]) {
    assert.deepEqual(apart(at.map((y, i) => ({ y, i })), 18, 0, 100).map(({ y, i }) => [i, y]), want.map((y, i) => [i, y]), String(at));
  }
});

test('one dot is no drawing', () => {
  const of = (kind, values, more) => drawable({ xs: values, series: [{ kind, values }, { kind: 'none', values: [1] }], ...more });
  assert.deepEqual([of('line', [5]), of('bars', [null]), of('area', [])], [false, false, false]);
  assert.deepEqual([of('bars', [5]), of('line', [5, 6]), of('line', [5], { levels: [] })], [true, true, true]);
});

test('the price axis has spot, flip and the cone; far levels stay outside', () => {
  const xs = [0, 1, 2, 3];
  const columns = { spot: [7600, 7610, 7580, 7590], zero_gamma_flip: [7570, 7570, 7570, 7571] };
  const left = { xs, column: (name) => columns[name] };
  const cone = { end: 3, range: (x) => [7600 - 10 * x, 7600 + 10 * x] };
  const m = { effective_spot: 7590, expected_move_1d: 30, zero_gamma_flip: 7571, flip_band: { low: 7565, high: 7580 }, call_wall: 7700, put_wall: 7500 };
  const strikes = Array.from({ length: 200 }, (_, i) => ({ strike: 7000 + 5 * i }));
  const near = ([low, high], wantLow, wantHigh) => assert.ok(Math.abs(low - wantLow) < 1 && Math.abs(high - wantHigh) < 1, `${low} to ${high}, want ${wantLow} to ${wantHigh}`);
  near(fit(left, [0, 3], [cone], null, m, strikes), 7484, 7716); // the walls are within 2.5 % of the spot
  near(fit(left, [0, 1], [cone], [0, 1], m, strikes), 7561.4, 7613.6); // a zoom has what it shows, and the flip band near it
  near(fit(left, [0, 3], [cone], null, { ...m, call_wall: 7640, put_wall: 7300 }, strikes), 7559, 7646); // this put wall is not
  columns.zero_gamma_flip = [7000, 7000, 7000, 7000];
  near(fit(left, [0, 3], [cone], null, { ...m, zero_gamma_flip: 7000, flip_band: null }, strikes), 7484, 7716);
  const alone = { ...m, flip_band: null, call_wall: null, put_wall: null };
  near(fit({ xs: [], column: () => [] }, [0, 0], [], null, alone, []), 7555.2, 7624.8); // without a track: one expected move
  near(fit(left, [0, 3], [cone], null, alone, strikes.filter((r) => r.strike % 50 === 0)), 7372, 7778); // four strikes on both sides
});

test('numbers of an axis: as many decimals as its step has, and room for the outermost', () => {
  assert.deepEqual([2.5e9, 20, 2.5, 0.25, 0.1 + 0.2].map(decimals), [0, 0, 1, 2, 1]);
  const u = { scales: { y: { min: -30, max: 10 } }, bbox: { width: 400 }, ctx: { measureText: (text) => ({ width: 10 * text.length }) }, axes: [{}, { _splits: [-30, -20, 0], _values: ['−$30', '−$20', ''] }] };
  assert.deepEqual([overhang(true, false, 2)(u), overhang(true, true, 8)(u)], [22, 8]);
  assert.equal(overhang(false, true, 8)({ ...u, scales: { x: {} } }), 8); // there is no axis
});

test('flow: every column sorts, unknown values last, and the filters choose', () => {
  const row = (id, more) => ({ id, symbol: 'SPY', strike: 100, option_type: 'call', days_to_expiration: 5, score: 1, direction: 'unknown', direction_confidence: 0.1,
    premium: 1, side: 'unknown', volume: 1, open_interest: 1, volume_oi_ratio: null, implied_volatility: null, moneyness_pct: 0, observed_at: '2026-11-20T15:00:00Z', ...more });
  const columns = {
    score: [{ score: 2 }, { score: 10 }], contract: [{ symbol: 'A', strike: 99 }, { symbol: 'A', strike: 100 }], days: [{ days_to_expiration: 2 }, { days_to_expiration: 10 }],
    direction: [{ direction: 'bearish' }, { direction: 'neutral' }, { direction: 'bullish' }], premium: [{ premium: 2 }, { premium: 10 }],
    side: [{ side: 'ask' }, { side: 'bid' }], volume: [{ volume: 2 }, { volume: 10 }], oi: [{ open_interest: 2 }, { open_interest: 10 }],
    ratio: [{ volume_oi_ratio: 2 }, { volume_oi_ratio: 10 }], iv: [{ implied_volatility: 0.2 }, { implied_volatility: 1 }],
    spot: [{ moneyness_pct: -3 }, { moneyness_pct: 2 }], time: [{ observed_at: '2026-11-20T14:59:59Z' }, { observed_at: '2026-11-20T16:00:00Z' }],
  };
  for (const [key, rising] of Object.entries(columns)) {
    const rows = rising.map((more, i) => row(i, more));
    const last = ['direction', 'side', 'ratio', 'iv'].includes(key) ? [row('unknown')] : [];
    location.search = `?flow-sort=${key}.asc`;
    assert.deepEqual(sort([...last, ...rows.toReversed()]), [...rows, ...last], key);
    location.search = `?flow-sort=${key}.desc`;
    assert.deepEqual(sort([...last, ...rows]), [...rows.toReversed(), ...last], key);
  }
  const rows = [row(0, { premium: 2e6 }), row(1, { option_type: 'put', days_to_expiration: 30 }), row(2, { symbol: 'QQQ', direction: 'bullish' })];
  for (const [search, want] of [['', [0, 1, 2]], ['?flow-premium=1000000', [0]], ['?flow-type=put', [1]], ['?flow-symbol=QQQ', [2]], ['?flow-direction=bullish', [2]],
    ['?flow-from=7&flow-to=60', [1]], ['?flow-type=nonsense', [0, 1, 2]], ['?flow-type=put&flow-symbol=QQQ', []]]) {
    location.search = search;
    assert.deepEqual(matching(rows).map((x) => x.id), want, search);
  }
  const sides = [row(0), row(1, { side: 'ask' })];
  for (const [search, want] of [['', [1]], ['?flow-sides=all', [0, 1]], ['?flow-direction=unknown', [0, 1]]]) {
    location.search = search;
    assert.deepEqual(sided(sides).map((x) => x.id), want, search);
  }
  location.search = '';
});

test('events: what two rows in a row have, at the first of them, or one that is minutes after the row before', () => {
  const columns = ['as_of', 'effective_spot', 'zero_gamma_flip', 'call_wall', 'put_wall', 'gamma_regime'];
  const row = (minute, spot, call, regime = 'neutral', flip = 100) => [`2026-11-20T15:${minute}:00Z`, spot, flip, call, 90, regime];
  const rows = [row('00', 101, 110), row('01', 99, 110), row('02', 101, 110), row('03', 99, 120), row('04', 98, 120), row('05', 98, null, 'negative', null),
    row('06', 97, 130, 'negative'), row('07', 97, 120, 'negative'), row('08', 101, 120, 'negative'),
    row('20', 99, 120, 'negative'), row('30', 101, 120, 'negative')];
  assert.deepEqual(tracked({ columns, rows }).map((e) => [new Date(e.at).getUTCMinutes(), e.kind, e.price, e.text]), [
    [3, 'flip', 100, 'Spot crossed the flip, 100, downwards'], [3, 'wall', 120, 'Call wall 120, was 110'], [5, 'regime', 98, 'Regime negative, was neutral'],
    [30, 'flip', 100, 'Spot crossed the flip, 100, upwards']]);
  assert.deepEqual(tracked({ columns, rows: [] }), []);
  const flow = (score) => ({ id: score, score, observed_at: '2026-11-20T15:00:00Z', premium: 2e6, strike: 100, option_type: 'put', expiration: '2026-12-18' });
  assert.deepEqual(large([flow(70), flow(64.9), { ...flow(71), premium: 9e5 }, { ...flow(72), side: 'unknown' }]).map((e) => e.text.replace(/\u00a0/g, ' ')), ['$2.00 m in 100 puts of 18 Dec, score 70']);
  assert.deepEqual(large([66, 67, 68, 69, 70, 71].map(flow)).map((e) => e.id), [71, 70, 69, 68, 67]);
  const stored = new Map();
  globalThis.localStorage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, text) => stored.set(key, text) };
  for (const [day, score, want] of [['2026-11-20', 70, [70]], ['2026-11-20', 71, [70, 71]], ['2026-11-21', 72, [72]]]) {
    assert.deepEqual(log([flow(score)], day).map((e) => e.id), want, 'an event stays for its session');
  }
  assert.equal(log([66, 67, 68, 69, 70, 71].map(flow), '2026-11-23').length, 6, 'who comes after the session sees all');
  stored.set('log spx', '{}');
  assert.deepEqual(log([flow(72)], '2026-11-21').length, 1);
  globalThis.localStorage.setItem = () => { throw new Error('no room'); };
  for (const [score, want] of [[73, [72, 73]], [74, [72, 73, 74]]]) assert.deepEqual(log([flow(score)], '2026-11-21').map((e) => e.id), want, 'also in a browser that keeps nothing');
});

test('events on the price chart: at their time and price up to the moment, no sign over another, and flow after all else', () => {
  const xs = [0, 60e3, 90e3, 120e3];
  const events = [{ at: 70e3, kind: 'flow', price: 150, size: 66, text: 'b' }, { at: 80e3, kind: 'flow', price: 101, size: 70, text: 'a' }, { at: 120e3, kind: 'wall', price: 105, text: 'w', color: '--negative' }, { at: 60e3, kind: 'flip', price: 99, text: 'f' }];
  const signs = (more, until) => placed(events, xs, [100, 101, null, 102], [90, 110], until ?? Infinity)[more];
  assert.deepEqual(signs('glyphs').map((g) => [g.x, g.y, g.color]), [[60e3, 99, '--flip'], [120e3, 105, '--negative'], [80e3, 101, '--part-4']]);
  assert.deepEqual(signs('texts'), ['', '◆ f\n★ a\n★ b', '', '■ w']);
  assert.deepEqual(signs('texts', 75e3), ['', '◆ f\n★ b', '', '']);
  events.push({ at: 1e9, kind: 'flow', price: 100, text: 'of another session' });
  assert.equal(signs('glyphs').length, 3);
  assert.deepEqual(legible([{ x: 0, y: 0 }, { x: 9, y: 3 }, { x: 0, y: 10 }], 10), [{ x: 0, y: 0 }, { x: 9, y: -7 }, { x: 0, y: 10 }]);
});

test('no line connects two prices of a wall', () => {
  globalThis.Path2D = class { way = []; moveTo(...at) { this.way.push(['to', ...at]); } lineTo(...at) { this.way.push(['line', ...at]); } };
  const u = { data: [[0, 1, 2, 3, 4], [5, 5, 9, 5, null]], valToPos: (v) => v };
  assert.deepEqual(drawn({ kind: 'step' }, '').paths(u, 1, 0, 4).stroke.way, [['to', 0, 5], ['line', 1, 5], ['line', 2, 5], ['to', 2, 9], ['line', 3, 9]]);
});

test('net gamma out of sight is summed where it matters', () => {
  assert.deepEqual([[-6, 2], [-0.5, 0.4]].map(([below, above]) => outside([80, 85, 95, 100, 120], [below, 0, 1, -1, above], [90, 110])), [[-6, 2], []]);
});

test('levels: highest price first, those of one price together, and none that is unknown', () => {
  const d = { effective_spot: 100, call_wall: 110, put_wall: 90, zero_gamma_flip: null, vol_trigger: 101.5, abs_gamma_strike: 110, expected_move_1d: 2, flip_band: { low: 97, high: 103 },
    walls: { gross: { call: 110, put: 90 }, open_interest: { call: 120, put: 90 } }, zero_dte: { call_walls: [{ strike: 105 }, { strike: 110 }, { strike: 99.5 }], put_walls: [{ strike: 104 }], pin_strike: 105, remaining_move: 4 } };
  assert.deepEqual(rungs(d, 99).map((r) => [r.price, r.kind, r.names.join()]), [[120, 'call', 'Call wall by open interest'], [110, 'call', 'Call wall,Largest gamma,0DTE call wall 2'],
    [105, 'call', '0DTE call wall,0DTE pin, outside'], [104, 'put', '0DTE largest −γ,Exp. high, to close'], [103, 'flip', 'Flip in a scenario, high'], [102, 'move', 'Exp. high, 1 day'], [101.5, 'trigger', 'Vol trigger'], [99.5, 'call', '0DTE largest +γ 3'], [99, 'pain', 'Max pain'], [98, 'move', 'Exp. low, 1 day'], [97, 'flip', 'Flip in a scenario, low'], [96, 'move', 'Exp. low, to close'], [90, 'put', 'Put wall']]);
  assert.equal(rungs({ ...d, put_wall: 110 }, 99)[1].kind, 'both');
});

test('polling: once per max-age, with the tag, not while hidden, and less often while the server does not answer', async () => {
  let now = 1e12;
  let timers = [];
  Date.now = () => now;
  Math.random = () => 0;
  globalThis.setTimeout = (f, ms) => { timers.push({ f, at: now + ms }); return timers.at(-1); };
  globalThis.clearTimeout = (timer) => { timers = timers.filter((t) => t !== timer); };
  const asked = [];
  let answer = () => new Response('{"success":true,"n":1}', { headers: { ETag: '"a"', 'Cache-Control': 'max-age=10', Age: '2' } });
  globalThis.fetch = async (_, { headers = {} }) => { asked.push([now - 1e12, headers['If-None-Match'] ?? '']); return answer(); };
  const settle = () => new Promise((done) => { setImmediate(() => setImmediate(done)); });
  const advance = async (ms) => {
    for (const end = now + ms; ;) {
      const next = timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      now = next ? next.at : end;
      if (!next) break;
      clearTimeout(next);
      next.f();
      await settle();
    }
  };
  const seen = [];
  const onChange = (feed, fresh) => seen.push([fresh, feed.failure?.code ?? '']);
  const feed = watch('/x', onChange);
  await settle();
  answer = () => new Response(null, { status: 304, headers: { 'Cache-Control': 'max-age=10' } });
  await advance(18e3);
  assert.deepEqual(asked.splice(0), [[0, ''], [8000, '"a"'], [18000, '"a"']]);
  assert.deepEqual(seen.splice(0), [[true, ''], [false, ''], [false, '']]);
  page.hidden = true;
  await advance(60e3);
  assert.equal(asked.length, 0, 'a hidden page asks');
  page.hidden = false;
  page.listeners.visibilitychange();
  await settle();
  assert.deepEqual(asked.splice(0), [[78000, '"a"']], 'a page that is shown again asks at once');
  answer = () => { throw new TypeError('no network'); };
  await advance(10e3 + 3e3 + 6e3 + 12e3);
  assert.deepEqual(asked.splice(0).map(([at]) => at - 78000), [10000, 13000, 19000, 31000]);
  assert.equal(feed.failure.code, 'unreachable');
  assert.equal(feed.document.n, 1, 'the last answer is gone');
  answer = () => new Response('{"success":false,"error":{"code":"rate_limited","message":"too many"}}', { status: 429, headers: { 'Retry-After': '100' } });
  await advance(24e3 + 99e3);
  assert.equal(asked.splice(0).length, 1, 'Retry-After is not obeyed');
  assert.equal(feed.failure.code, 'rate_limited');
  answer = () => new Response('<html>');
  await advance(1e3);
  assert.equal(feed.failure.code, 'unreadable');
  answer = () => { throw new TypeError('no network'); };
  await beat();
  await settle();
  assert.equal(feed.failure.code, 'unreachable', 'a beat without an answer does not ask for the addresses');
  answer = () => new Response('{"success":true,"n":2}');
  await beat();
  await settle();
  assert.equal(feed.document.n, 2, 'an answered beat does not ask for the addresses');
  unwatch(feed, onChange);
  asked.length = 0;
  await advance(600e3);
  assert.equal(asked.length, 0, 'an address that nobody watches is asked for');
  const of = (symbol, second) => new Response(JSON.stringify({ success: true, data: { symbol }, meta: { as_of: `2026-11-20T15:00:0${second}Z` } }), { headers: { 'Cache-Control': 'max-age=60' } });
  let second = 0;
  const urls = [];
  globalThis.fetch = async (url) => { urls.push(url); return of(url === '/other' ? 'NDX' : 'SPX', second); };
  const three = ['/gex', '/matrix', '/other'].map((url) => watch(url, onChange));
  await settle();
  second = 1;
  urls.length = 0;
  three.push(watch('/late', onChange));
  await settle();
  await settle();
  assert.deepEqual(urls, ['/late', '/gex', '/matrix'], 'a newer answer of an underlying brings its others, and those alone');
  for (const one of three) unwatch(one, onChange);
  globalThis.fetch = async () => { asked.push([now - 1e12]); return answer(); };
  asked.length = 0;
  const missing = (nearest) => () => new Response(JSON.stringify({ success: false, error: { code: 'snapshot_not_found', message: 'none', nearest } }), { status: 404 });
  answer = missing({ earlier: '2026-11-13', later: '2026-11-16' });
  const past = watch('/x?date=2026-11-14', onChange);
  await settle();
  assert.equal(asked.length, 1);
  await advance(600e3);
  page.listeners.visibilitychange();
  await settle();
  assert.equal(asked.length, 1, 'a date before a stored one is asked for again');
  unwatch(past, onChange);
  answer = missing({ earlier: '2026-11-19', later: null });
  watch('/x?date=2026-11-20', onChange);
  await settle();
  asked.length = 0;
  await advance(70e3);
  assert.equal(asked.length, 1, 'a date that may be stored soon is not asked for once a minute');
});

test('the track of now; the last session that has one; none', async () => {
  const rows = (date, n) => ({ success: true, data: { session_date: date, columns: ['as_of', 'spot'], rows: Array.from({ length: n }, (_, i) => [`${date}T15:0${i}:00Z`, i]) } });
  const base = '/api/v1/gex/spx';
  const answers = { [`${base}/series`]: { success: true, data: { columns: ['date'], rows: [['2026-11-18'], ['2026-11-19'], ['2026-11-20']] } } };
  globalThis.fetch = async (url) => (answers[url] ? new Response(JSON.stringify(answers[url])) : new Response('{"success":false,"error":{"code":"snapshot_not_found","message":"none"}}', { status: 404 }));
  location.search = '';
  const settled = async () => { for (let i = 0; i < 40; i++) await new Promise(setImmediate); };
  const told = async (then) => {
    const seen = [];
    followTrack((document, why) => seen.push([document?.data.session_date ?? '', document?.data.rows.length ?? 0, why]));
    await settled();
    if (!then) return seen.at(-1);
    then();
    await settled();
    return [seen[0], seen.at(-1)];
  };
  answers[`${base}/intraday?date=2026-11-18`] = rows('2026-11-18', 9);
  answers[`${base}/intraday`] = rows('2026-11-20', 1);
  assert.deepEqual(await told(), ['2026-11-18', 9, '']); // 19 Nov has none
  delete answers[`${base}/intraday?date=2026-11-18`];
  location.search = '?u=spy';
  for (const path of ['intraday', 'series']) answers[`/api/v1/gex/spy/${path}`] = answers[`${base}/${path}`];
  assert.deepEqual(await told(), ['2026-11-20', 1, '']);
  location.search = '?u=qqq';
  answers['/api/v1/gex/qqq/intraday'] = rows('2026-11-20', 2);
  assert.deepEqual(await told(), ['2026-11-20', 2, '']);
  location.search = '?u=qqq&date=2026-11-17';
  assert.deepEqual(await told(), ['', 0, 'No track is stored for this date.']);
  location.search = '?u=iwm'; // a server that began after the session stores it last
  const stored = (dates) => {
    answers['/api/v1/gex/iwm/series'] = { success: true, data: { columns: ['date'], rows: dates.map((d) => [d]) } };
    for (const d of dates) answers[`/api/v1/gex/iwm/intraday?date=${d}`] = rows(d, 9);
  };
  answers['/api/v1/gex/iwm/intraday'] = rows('2026-11-20', 1);
  stored(['2026-11-18']);
  assert.deepEqual(await told(() => { stored(['2026-11-18', '2026-11-20']); tryAgain(); }), [['2026-11-18', 9, ''], ['2026-11-20', 9, '']]);
});

test('a row of the track gives the levels of its moment; the closes end with their date', () => {
  const track = { session_date: '2026-11-20', columns: ['spot', 'effective_spot', 'zero_gamma_flip', 'net_gex_dollars', 'flip_low', 'flip_high'], rows: [[101, 100, 98, 5, 97, 99], [102, 102, null, -5, null, null]] };
  const d = { symbol: 'SPX', session_date: '2026-11-20', spot: 110, spot_change_pct: 10, net_gex_dollars: 9 };
  const { spot_change_pct: change, flip_distance_pct: distance, ...m } = atRow(d, track, 0);
  assert.ok(Math.abs(change - 1) < 1e-9 && Math.abs(distance - 2) < 1e-9);
  assert.deepEqual([m.symbol, m.spot, m.effective_spot, m.net_gex_dollars, m.flip_band, m.call_wall], ['SPX', 101, 100, 5, { low: 97, high: 99 }, null]);
  assert.deepEqual(rungs(atRow({ ...d, vol_trigger: 90, abs_gamma_strike: 90, walls: { gross: { call: 90 } }, zero_dte: { pin_strike: 90, remaining_move: 1 } }, track, 0)).map((r) => r.price), [99, 98, 97]); // no row has the others
  assert.deepEqual([atRow(d, track, 1).flip_status, atRow(d, track, 1).flip_band, atRow(null, track, 1).spot_change_pct], ['none', null, null]);
  const closes = daily({ columns: ['date', 'spot'], rows: [['2026-11-18', 1], ['2026-11-19', 2], ['2026-11-20', 3]] }, '2026-11-19');
  assert.deepEqual([closes.dates, closes.column('spot'), closes.column('other')], [['2026-11-18', '2026-11-19'], [1, 2], [null, null]]);
});

test('rows of a session: those up to 20 minutes apart join, a longer time is a gap, and quotes after the close are its end', () => {
  const at = (clock) => `2026-11-27T${clock}:00Z`;
  const track = { session_date: '2026-11-27', columns: ['as_of', 'spot'], rows: ['14:30', '14:31', '14:32', '14:33', '14:34', '14:35', '14:45', '15:00', '15:31', '16:10'].map((clock, i) => [at(clock), i]) };
  const gaps = (t) => points(t).column('spot').flatMap((v, i) => (v === null ? [i] : []));
  assert.deepEqual([points(track).gaps, gaps(track), points({ ...track, rows: track.rows.slice(-4) }).gaps], [2, [8, 10], 0]);
  const close = points({ ...track, rows: [[at('17:45'), 1], [at('18:14'), 2]] });
  assert.deepEqual([close.xs[1], close.column('spot')], [Date.parse(at('18:00')), [1, 2, 2]]);
  const d = { session_date: '2026-11-27', spot: 9 };
  const ended = whole(track, d, Date.parse(at('18:14')));
  assert.deepEqual([ended.rows.at(-1).at(-1), gaps(ended)], [9, [8, 10, 12]]);
  for (const [other, clock] of [[d, '17:30'], [{ ...d, session_date: '2026-11-25' }, '18:14'], [null, '18:14']]) assert.equal(whole(track, other, Date.parse(at(clock))), track);
  assert.equal(whole(null, null, NaN), null);
});

test('gamma by strike through a session: the bars of a moment, and the cells of the map', () => {
  const at = (clock) => Date.parse(`2026-11-20T${clock}:00Z`);
  const through = { columns: ['as_of', 'effective_spot', 'strikes', 'net_gex_dollars'], rows: [
    ['2026-11-20T14:30:00Z', 100, [99, 100, 102], [5, null, -10]], ['2026-11-20T14:35:00Z', 100, [99, 100, 102], [5, 6, 7]], ['2026-11-20T15:35:00Z', 101, [100, 102], [1, 2]]] };
  assert.equal(barsAt(null, 0) ?? barsAt(through, at('14:29')) ?? barsAt(through, at('15:00')), null);
  assert.deepEqual(barsAt(through, at('14:34')), { at: at('14:30'), by_strike: [{ strike: 99, net_gex_dollars: 5 }, { strike: 100, net_gex_dollars: null }, { strike: 102, net_gex_dollars: -10 }] });
  assert.deepEqual(cellsOf(through, at('14:32')), [[at('14:30'), at('14:35'), 98.5, 99.5, 0.5], [at('14:30'), at('14:35'), 101, 103, -1]]);
  assert.deepEqual(cellsOf(through).slice(0, 3), [[at('15:35'), at('15:40'), 99.5, 101, 0.1], [at('15:35'), at('15:40'), 101, 103, 0.2], [at('14:35'), at('14:40'), 98.5, 99.5, 0.5]]); // then there is a gap
  const moved = { ...through, rows: [[98, 99], [99, 100], [98, 99], [98, 99], [98, 99, 100]].map((strikes, i) => [`2026-11-20T14:3${i}:00Z`, 99, strikes, strikes]) };
  assert.deepEqual(cellsOf(moved).map(([from, to, low]) => [from, to, low].map((x, i) => (i < 2 ? new Date(x).getUTCMinutes() : x)).join()).toSorted(),
    ['30,31,98.5', '30,32,97.5', '31,32,98.5', '32,33,97.5', '32,33,98.5', '33,34,97.5', '33,34,98.5', '34,39,97.5', '34,39,98.5']); // the strikes at the edges come and go
});

test('what the matrix has of the first date after the session: both settlements together, and the largest strikes as walls', () => {
  const row = (expiration, net, share) => ({ expiration, net_gex_dollars: net, gross_share_pct: share });
  const d = { session_date: '2026-12-17', by_expiration: [row('2026-12-17', 50, 9), row('2026-12-18', 3, 1), row('2026-12-18', 4, 2), row('2026-12-21', 8, 3)] };
  const matrix = { expirations: d.by_expiration, strikes: [90, 100, 110, 120].map((strike) => ({ strike })), net_gex_dollars: [[9, -5, null, 1], [9, 7, 1, 1], [99, 2, 4, 1], [9, null, null, -9]] };
  const next = following(d, matrix);
  assert.deepEqual([next.on, next.net_gex_dollars, next.gross_share_pct, next.call_walls[0].strike, next.put_walls[0].strike], ['2026-12-18', 7, 3, 100, 90]);
  assert.deepEqual(next.rows.map((r) => [r.strike, r.net_gex_dollars]), [[90, -5], [100, 8], [110, 6]]);
  assert.deepEqual([following(d, null), following({ ...d, session_date: '2026-12-21' }, matrix), following(d, { ...matrix, net_gex_dollars: null })], [null, null, null]);
});
