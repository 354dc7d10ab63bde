// The hero: price through the session at the left, gamma by strike as bars at the right, and one price axis between them, on which
// flip, walls and the expected move run through both. Below: the slider of the replay, net gamma through the session and the profile.

import { Chart, together } from './chart.js';
import { h, say } from './dom.js';
import { legend, marks, placed, tracked } from './events.js';
import { axisDollars, closes, date, dollars, level, newYorkTime, number, ranged, rough, share, shortDate, spotName, time, unknown, words } from './format.js';
import { barsAt, cellsOf, endsOf, figure, mapped, read, rowsAt } from './heat.js';
import { day, follow, sentence } from './panel.js';
import { Replay } from './replay.js';
import { choices, choose, onChoice } from './state.js';
import { barsOf, comparisons, drawProfile, figures, matrix, past } from './strikes.js';
import { refill, term } from './terms.js';
import { atRow, clock, cones, daily, fit, late, outside, points, records, shown } from './track.js';

const parts = { '0dte': 'zero_dte', week: 'this_week' }; // of the expirations, by choice
const narrow = 560; // CSS pixels of the hero, from which on its tags have names
const sessions = 40; // at most, of the closes
const few = 5; // closes make no picture
const tagHeight = 19; // CSS pixels between the tags of two prices
const write = (band) => (band ? `${rough(band[0])} to ${rough(band[1])}` : unknown);

/** Hero draws what show is given. onMoment is called when the replay moves. */
export class Hero {
  #d = null; // the answer of gex/{u}
  #given = null; // the track, which may have one row
  #why = '';
  #live = false;
  #series = null; // the levels at the closes
  #before = null; // the answer of the close before
  #grid = null; // the matrix, while a part of the expirations is shown
  #strikes = null; // net gamma by strike through the session, while the bars or the map of a moment need it
  #drawn = '';
  #wide = false; // the price axis has all walls
  #range = [0, 1]; // of the price axis

  constructor(onMoment) {
    const options = { top: 22, right: true, pad: [0, 17] };
    this.lines = new Chart('Spot, flip and walls', 270, { ...options, sync: 'today', zoomed: () => this.draw() });
    this.bars = new Chart('By strike', 270, { top: 22, pad: [26, 2], sideways: true, along: 'strike',
      moved: ({ over, cursor }) => this.element.matches(':hover') || this.#point({ type: cursor.left >= 0 && document.querySelector('.u-over:hover') ? 'pointermove' : '', target: over, clientY: over.getBoundingClientRect().top + cursor.top }) });
    this.net = new Chart('Net gamma', 76, { ...options, sync: 'today', bare: true });
    this.profile = new Chart('Gamma profile', 76, { top: 18, pad: [8, 0], along: 'strike' });
    this.replay = new Replay(() => { this.through.look(); this.draw(); onMoment(); });
    this.span = choices('span', 'Time shown', [['session', 'Session'], ['so-far', 'So far'], ['hour', 'Last hour']], // until noon, a phone has no room for what is to come
      () => (this.#track && this.element.clientWidth < narrow && Date.parse(this.#last('as_of')) < newYorkTime(this.#track.session_date, '12:00:00') ? 'so-far' : 'session'));
    this.under = choices('heat', 'Behind the price', [['off', 'Cone'], ['on', 'Heat map']]);
    this.figure = choices('figure', 'Figure by strike', Object.entries(figures).map(([key, f]) => [key, f.text]));
    this.expiring = choices('expiring', 'Expirations by strike', [['all', 'All'], ['0dte', '0DTE'], ['week', 'Week']]);
    this.note = h('p', { class: 'about keep note', role: 'status' });
    this.lines.canvas.append(this.signs = h('p', { class: 'legend signs', 'aria-hidden': 'true' }));
    this.cross = h('div', { class: 'cross', 'aria-hidden': 'true', hidden: true }, h('b'));
    this.more = h('div', { class: 'tables' });
    const words = h('p', { class: 'about' }, 'Marked are the ', term('spot', 'spot'), ', the ', term('flip', 'flip'), ' with its ', term('flip_band', 'band'), ', the ', term('call_wall', 'call wall'),
      ', the ', term('put_wall', 'put wall'), ' and the ', term('expected_move', 'expected move'), ' of all expirations. Signs: ◆ the spot crossed the flip, ● the regime changed, ■ a wall moved, ★ large flow. A gap has no snapshot: there a heat map is hatched. A double click on the bars, or − and + there, shows all walls, or no longer.');
    for (const [name, chart] of Object.entries({ price: this.lines, bars: this.bars, strip: this.net, profile: this.profile })) chart.element.classList.add(name);
    this.bars.element.id = 'strikes';
    this.element = h('div', { class: 'hero', keydown: (event) => this.#key(event), pointermove: (event) => this.#point(event), pointerleave: (event) => this.#point(event) }, this.lines.element, this.bars.element,
      h('div', { class: 'scrubber' }, this.replay.slider, this.replay.said), h('div', { class: 'scrubber' }, this.replay.button), this.note, this.net.element, this.profile.element,
      words, this.cross, h('details', { class: 'more' }, h('summary', null, 'Other conventions and scenarios'), this.more));
    addEventListener('marks', () => this.draw());
    this.bars.element.addEventListener('dblclick', () => { this.#wide = !this.#wide; this.draw(); });
    onChoice(() => { if (this.#chosen() !== this.#drawn) this.draw(); });
    new ResizeObserver(() => requestAnimationFrame(() => { if (this.#gutter() !== this.lines.gutter) this.draw(); })).observe(this.element);
  }

  /** begin asks for what the hero has beside levels and track: after the first chart, because the network is for that until then. */
  begin() {
    follow('/api/v1/gex/{u}/series', ({ document }, fresh) => {
      if (!fresh) return;
      this.#series = document?.data ?? null;
      this.ghost.look();
      if (!this.#track) this.draw();
    });
    follow(() => (this.expiring.picked() === 'all' || day() ? '' : matrix), ({ document, failure }) => {
      this.#grid = document?.data ?? null;
      this.unknown = failure ? sentence(failure.message) : 'The figures of these expirations have not come yet.';
      this.draw();
    });
  }

  // Gamma by strike through the session. A server that stores none leaves the bars of a past moment pale.
  through = follow(() => {
    const of = this.#track?.session_date;
    const wanted = of && (this.replay.at !== null || this.under.picked() === 'on');
    return wanted ? `/api/v1/gex/{u}/strikes${day() || of !== this.#d?.session_date ? `?date=${of}` : ''}` : '';
  }, ({ document, failure }, fresh) => {
    if (!fresh && !failure) return;
    this.#strikes = document?.data ?? (failure && { columns: [], rows: [] });
    this.draw();
  });

  // The bars of the close before the session that is shown. An answer of a date does not change.
  ghost = follow(() => {
    const before = records(this.#series).map((row) => row.date).filter((d) => d < this.#d?.session_date).at(-1);
    return before && this.figure.picked() === 'net' ? `${past}?date=${before}` : '';
  }, ({ document }, fresh) => {
    if (!fresh) return;
    this.#before = document?.data ?? null;
    this.draw();
  });

  /** show draws an answer of gex/{u} and a track, or the closes where there is none: why says why. live: quotes of the session still come. */
  show(d, track, why, live) {
    if (track?.session_date !== this.#given?.session_date || d?.symbol !== this.#d?.symbol) this.replay.reset();
    if (d?.symbol !== this.#d?.symbol) this.#wide = false;
    [this.#d, this.#given, this.#why, this.#live] = [d, track, why, live];
    this.ghost.look();
    this.through.look();
    this.draw();
  }

  /** track is drawn. One row makes no line, so then the closes are drawn, if there are some. */
  get #track() {
    const least = this.#series?.rows.length >= few ? 2 : 1;
    return this.#given?.rows.length >= least ? this.#given : null;
  }

  /** moment returns the levels that are shown: those of the answer, or of a row of the track. */
  get moment() {
    if (this.replay.at === null && (this.#d || !this.#track)) return this.#d;
    return atRow(this.#d, this.#track, Math.max(0, Math.min(this.replay.index, this.#track.rows.length - 1)));
  }

  /** draw draws everything of the moment, at once: no chart shows another moment than the others. */
  draw() {
    const m = this.moment;
    for (const choice of [this.span, this.under]) choice.allow(...(this.#track ? [] : ['none']));
    this.expiring.allow(...(day() ? ['all'] : this.#d?.zero_dte?.settled ? ['all', 'week'] : []));
    this.#drawn = this.#chosen();
    this.#tellMoment(m);
    if (!m) {
      for (const chart of [this.lines, this.bars, this.net, this.profile]) chart.clear(chart === this.lines ? this.#why : '');
      return this.replay.set([], [0, 1]);
    }
    const left = this.#track ? this.#session() : this.#closes();
    const zoom = this.lines.zoom;
    for (const [chart, own] of [[this.net, this.#track && this.expiring.picked() === '0dte'], [this.profile]]) say(chart.element.querySelector('h3'), `${chart.title}${this.expiring.picked() === 'all' ? '' : own ? ', 0DTE' : ', all expirations'}`);
    const own = this.#own(m);
    const range = fit(left ?? { xs: [], column: () => [] }, zoom ?? left?.axis.range ?? [0, 0], (left?.expected ?? []).slice(0, this.replay.at === null ? 2 : 1), zoom, own, this.#d?.by_strike ?? [], this.#wide);
    this.#range = range;
    this.element.dataset.prices = range.map((x) => x.toFixed(2)).join(' to ');
    this.lines.gutter = this.net.gutter = this.#gutter();
    this.bars.lone = this.element.classList.toggle('alone', !left && !!this.#d && !!this.#why);
    if (left) this.#drawLeft(left, range, levelsOf(own));
    else for (const chart of [this.lines, this.net]) chart.clear(this.#why);
    this.replay.set(this.#track ? left.xs.filter((x) => left.rows.has(x)) : [], zoom ?? left?.axis.range ?? [0, 1]);
    const bars = this.replay.at !== null && this.figure.picked() === 'net' && this.expiring.picked() === 'all' ? barsAt(this.#strikes, this.replay.at) : null;
    if (this.#d) this.#drawBars(own, range, left?.expected?.at(-1), bars);
    const other = this.#track && this.#d && this.#track.session_date !== this.#d.session_date && !day();
    say(this.note, !this.#track && (left || this.#why) ? `${this.#absent()}${left ? ' Shown are the closes.' : ''}`
      : this.#track && this.under.picked() === 'on' && !this.#strikes?.rows.length ? (this.#strikes ? 'No heat map is stored.' : 'The heat map is loading.')
        : this.replay.at !== null ? (bars ? `Bars of ${time(bars.at, true)}` : 'The bars are of the last quotes.')
          : (this.expiring.picked() !== 'all' ? 'Pale lines are of all expirations.' : other ? `The bars are of ${shortDate(this.#d.session_date)}.` : ''));
    together([this.lines, this.bars, this.net, this.profile]);
  }

  /** tellMoment tells the page of which moment the hero is while that is not the last, and the ladder of its levels. The style sheet then makes pale what stays. */
  #tellMoment(m) {
    const before = Replay.levels;
    Replay.levels = this.replay.at === null ? null : { ...m, at: this.replay.at };
    if (Replay.levels !== before) dispatchEvent(new Event('moment'));
    const { dataset } = document.body;
    const moment = this.replay.at === null ? undefined : time(this.replay.at, true);
    if (moment === dataset.moment) return;
    if (moment) dataset.moment = moment;
    else delete dataset.moment;
    dispatchEvent(new Event('panelchange'));
  }

  #drawLeft({ axis, series, net, expected, mark, after = [], summary, netSummary, xs, column }, range, levels) {
    const events = this.#track ? [...tracked(this.#track), ...marks.filter((e) => e.kind === 'flow')] : [];
    const { glyphs, texts } = placed(events, xs, column('spot'), range, this.replay.at ?? Infinity);
    this.signs.replaceChildren(...legend(glyphs));
    const map = this.under.picked() === 'on' && this.#track && this.#strikes?.rows.length > 0;
    if (map) series = [series[0], { name: 'Net gamma', values: rowsAt(mapped(read(this.#strikes)), xs, series[0].values), format: figure, kind: 'cells', color: '--positive', negative: '--negative' }, ...series.slice(1).filter((s) => s.name !== 'Exp. move').map((s) => (s.kind === 'ribbon' ? { ...s, kind: 'none' } : s))]; // nothing covers the cells
    this.lines.draw({
      ...axis, series: [...series, { name: 'Event', values: texts, format: (text) => text, kind: 'none' }], glyphs, yRange: range, levels: levels.map((l) => ({ ...l, from: this.replay.at ?? xs.at(-1) })), marks: mark,
      ...(map ? { cells: cellsOf(this.#strikes, this.replay.at ?? Infinity, xs.at(-1)), scale: endsOf(this.#strikes).map(axisDollars) } : { bands: [...(expected ?? []).map((c, i) => ({ ...c.band, label: i ? '' : `Exp. move from ${time(c.from, true)}${expected[1] ? ', now' : ''}` })), ...after] }), yFormat: (y, digits) => number(y, digits, true), summary,
    });
    this.net.draw({ ...axis, series: net, marks: mark.map((x) => ({ ...x, label: '' })), yFormat: axisDollars, summary: netSummary });
  }

  #drawBars(m, range, cone, then) {
    const d = this.#d;
    const name = parts[this.expiring.picked()];
    const part = name && this.#grid?.parts?.find((p) => p.name === name);
    const move = cone?.range(cone.end) ?? (m.expected_move_1d ? [m.effective_spot - m.expected_move_1d, m.effective_spot + m.expected_move_1d] : null);
    const zones = [[move && { low: move[0], high: move[1] }, '--accent'], [m.zero_gamma_flip === null ? null : m.flip_band, '--flip']];
    const chosen = barsOf(then ?? d, part, figures[this.figure.picked()], this.#before, range, this.replay.at !== null && !then);
    const small = this.element.clientWidth < narrow;
    this.bars.pad = [this.bars.lone ? this.#gutter() + 8 : small ? 26 : 28, small ? 2 : 28];
    const net = chosen.series.find((s) => s.name === 'Net')?.values ?? [];
    const sums = then || small ? [] : outside(chosen.xs, net, range); // a past moment has few strikes
    const far = !name && sums.length && d.net_gex_dollars - net.reduce((sum, v) => sum + v, 0); // of the strikes that the answer does not list
    const beyond = sums.length ? [`Rest ↓ ${dollars(sums[0])} ↑ ${dollars(sums[1])}`, ...(far ? [`far ${dollars(far)}`] : [])].join(', ') : '';
    if (name && !part) this.bars.clear(this.unknown);
    else this.bars.draw({ ...chosen, beyond, summary: `${chosen.summary}${sums.length ? ` Net gamma of the strikes below: ${dollars(sums[0])}, above: ${dollars(sums[1])}${far ? `, more than 15 % away: ${dollars(far)}` : ''}.` : ''}`, view: `${day()} ${this.#drawn}`, range, start: m.effective_spot, levels: levelsOf(m), bands: zones.flatMap(([z, color]) => (z ? [{ from: z.low, to: z.high, color }] : [])) });
    drawProfile(this.profile, d);
    refill(this.more, ...comparisons(d));
  }

  /** session describes the left of the hero: the track up to the moment. */
  #session() {
    const track = this.#track;
    const { xs, column: all, name, gaps } = points(track);
    const until = this.replay.at ?? Infinity;
    const column = (key) => all(key).map((v, i) => (xs[i] <= until ? v : null));
    const range = shown(track, this.span.picked(), xs);
    const [highs, flips] = ['flip_high', 'zero_gamma_flip'].map(column);
    const bands = column('flip_low').map((low, i) => (low === null || flips[i] === null ? null : [low, highs[i]])); // without a flip it is the range of scenarios
    const last = bands.findLast((band) => band);
    const end = closes(track.session_date);
    const done = xs.at(-1) >= end - (this.#live ? 0 : late); // of a session that is over, the last quotes are of up to 15 minutes before the close or after it
    const expected = cones(track, xs, all, until, this.replay.at === null && this.#d?.session_date === track.session_date ? this.#d.zero_dte?.remaining_move : null);
    if (done && until === Infinity) expected.splice(1);
    const expired = done && until > end && this.#last('zero_dte_net_gex_dollars') === null && all('zero_dte_net_gex_dollars').some((x) => x !== null);
    const own = this.expiring.picked() === '0dte';
    const [net, other] = (own ? ['zero_dte_net_gex_dollars', 'net_gex_dollars'] : ['net_gex_dollars', 'zero_dte_net_gex_dollars']).map(column);
    return {
      xs, column: all, expected, rows: new Set(records(track).map((row) => Date.parse(row.as_of))),
      axis: { view: `${track.session_date} ${this.span.picked()}`, xs, range, ...clock(name) },
      mark: this.replay.at !== null ? [{ x: this.replay.at, label: '', color: '--accent' }] : done ? [{ x: Math.min(end, range[1]), label: this.element.clientWidth < narrow ? 'Close' : `Close ${level(this.#last('spot'))}${expired ? ', 0DTE expired' : ''}`, color: '--muted' }] : [],
      after: until > end && xs.at(-1) > end ? [{ from: end, to: xs.at(-1), color: '--muted' }] : [],
      series: [
        ...lines(column, { gaps: true, faint: this.expiring.picked() !== 'all' }),
        ...(last ? [{ name: 'Flip band', values: bands, format: write, kind: 'ribbon', color: '--flip' }] : []),
        ...(all('effective_spot').some((x, i) => x !== null && x !== all('spot')[i]) ? [{ name: 'Implied spot', values: column('effective_spot'), format: level, kind: 'none' }] : []),
        { name: 'Regime', values: column('gamma_regime'), format: words, kind: 'none' },
        ...expected.slice(0, 1).map(({ range: of }) => ({ name: 'Exp. move', values: xs.map(of), format: write, kind: 'none' })),
      ],
      summary: `Session of ${date(track.session_date)}: ${number(track.rows.length)} ${track.rows.length === 1 ? 'snapshot' : 'snapshots'}, from ${time(xs[0])} to ${time(xs.at(-1))} in New York` +
        `${gaps ? `, with ${gaps} ${gaps === 1 ? 'gap' : 'gaps'}` : ''}. ` +
        (last ? `The flip band is the range of the flip in the model and its scenarios, at last ${write(last)}. ` : '') +
        expected.map((c, i) => `${i ? 'What is left of it' : 'The cone is the expected move of the session'} from ${time(c.from, true)}, one standard deviation: at the close ${write(c.range(c.end))}. `).join(''),
      net: [
        { name: 'Net', values: net, format: dollars, kind: 'area', color: '--positive', negative: '--negative' },
        { name: `${own ? 'All expirations' : 'Expiring the same day'}, net`, values: other, format: dollars, kind: 'none' },
        { name: 'Their share of gross', values: column('zero_dte_gross_share_pct'), format: share, kind: 'none' },
      ],
      netSummary: told(net),
    };
  }

  /** closes describes the left of the hero of a date without a track: the levels at the closes up to it. A click opens a date. */
  #closes() {
    if (!this.#series) return null;
    const { xs, column, dates } = daily(this.#series, day() || '9');
    if (xs.length < few) return null;
    return {
      xs, column, mark: [],
      axis: { view: 'closes', xs, xName: 'Date', ticks: [1, 2, 5, 10, 20, 50, 100], range: [Math.max(0, xs.length - sessions) - 1.6, xs.length - 0.5],
        xFormat: (i, exact) => (dates[i] ? (exact ? date : shortDate)(dates[i]) : ''), onPick: (i) => choose({ date: dates[i] }, true) },
      series: lines(column),
      summary: `${this.#absent()} Shown are the levels at the closes of ${number(xs.length)} dates, to ${date(dates.at(-1))}. A click opens a date.`,
      net: [{ name: 'Net', values: column('net_gex_dollars'), format: dollars, kind: 'bars', color: '--positive', negative: '--negative' }],
      netSummary: told(column('net_gex_dollars')),
    };
  }

  /** own returns a moment with the flip and the walls of the chosen expirations. Only now are those of 0DTE known, and a week has none. */
  #own(m) {
    if (this.expiring.picked() === 'all') return m;
    const part = this.expiring.picked() === '0dte' ? m.zero_dte : null;
    return { ...m, part: '0DTE', zero_gamma_flip: part?.zero_gamma_flip, flip_band: null, call_wall: part?.call_walls?.[0]?.strike, put_wall: part?.put_walls?.[0]?.strike };
  }

  #absent() {
    return this.#given?.rows.length ? 'The session has one snapshot so far.' : this.#why || 'There is no track.';
  }

  #last(name) {
    return records(this.#track).at(-1)[name];
  }

  #gutter() {
    return this.element.clientWidth < narrow ? 54 : this.expiring.picked() === '0dte' ? 156 : 126; // the names of its tags are longer
  }

  #chosen() {
    return [this.span, this.under, this.figure, this.expiring].map((c) => c.picked()).join();
  }

  /** point draws one line through price and bars at the price under the pointer, here or on another chart by strike, with the price on their axis. */
  #point({ type, target, clientY }) {
    const over = type === 'pointermove' ? target.closest?.('.price .u-over, .bars .u-over') : null;
    this.cross.hidden = !over;
    if (!over) return;
    const [own, price, bars] = [this.element, ...[this.lines, this.bars].map((c) => c.canvas.querySelector('.u-over') ?? over)].map((e) => e.getBoundingClientRect());
    const [low, high] = this.#range;
    const y = clientY - price.top;
    const at = high - y / price.height * (high - low);
    const { tagged } = this.bars.lone ? this.bars : this.lines;
    const free = [y, ...tagged.flatMap((t) => [t - tagHeight, t + tagHeight])].filter((to) => tagged.every((t) => Math.abs(to - t) >= tagHeight)).sort((a, b) => Math.abs(a - y) - Math.abs(b - y))[0];
    this.cross.style = `left: ${price.left - own.left}px; top: ${clientY - own.top}px; width: ${bars.right - price.left}px; --tag: ${price.width + 5}px; --beside: ${free - y}px`;
    say(this.cross.firstChild, number(at, at < 1000 ? 2 : 1, true));
  }

  #key(event) {
    if (this.bars.canvas === event.target && (event.key === '+' || event.key === '-')) {
      this.#wide = event.key === '-';
      this.draw();
    }
    if (event.key !== ' ' || event.target.closest('button, summary, a, select')) return;
    event.preventDefault();
    this.replay.play();
  }
}

/** lines returns the series of the levels that run through the hero, by the name of a column. A flip that never was has none. */
function lines(column, more) {
  return [['Spot', 'spot', '--ink', 'line'], ['Flip', 'zero_gamma_flip', '--flip', 'line'], ['Call wall', 'call_wall', '--positive', 'step'], ['Put wall', 'put_wall', '--negative', 'step']]
    .map(([name, key, color, kind]) => ({ name, values: column(key), format: level, color, kind, ...more, ...(key === 'spot' && { width: 2.5, faint: false }) }))
    .filter((s) => s.name !== 'Flip' || s.values.some((x) => x !== null));
}

/** told says in words how net gamma was. */
function told(values) {
  const known = values.filter((v) => v !== null);
  return known.length ? ranged('Net gamma', known, dollars) : 'Net gamma is unknown.';
}

/** levelsOf returns the prices that run through the hero. Those of a part of the expirations are named after it. */
function levelsOf(m) {
  const spot = m.effective_spot;
  const named = (name) => (m.part ? `${m.part} ${name.toLowerCase()}` : name);
  return [[spotName(m), spot, '--ink'], [named('Flip'), m.zero_gamma_flip, '--flip'], [named('Call wall'), m.call_wall, '--positive'], [named('Put wall'), m.put_wall, '--negative']]
    .map(([name, at, color]) => ({ at, color, label: `${name} ${level(at)}`, short: number(at, at < 100 ? 2 : at < 1000 ? 1 : 0), beyond: `${number(Math.abs(at / spot - 1) * 100, 1)}\u00a0%` }));
}
