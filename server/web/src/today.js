// The session as it unfolds: the levels now, and their track through the day. Of a stored date: its last levels, and its track.

import { h, options, picker, say } from './dom.js';
import { date, dollars, level, newYorkDay, percent, rough, share, shortDate, spotName, time, title, unknown, weekday } from './format.js';
import { Hero } from './hero.js';
import { Panel, day, follow } from './panel.js';
import { marketNow } from './poll.js';
import { choose, here, onChoice } from './state.js';
import { current as path, past } from './strikes.js';
import { refill, term } from './terms.js';
import { followTrack, records, whole } from './track.js';

/** todayPanel builds the panel. The promise is kept when the first chart is drawn, or when there is nothing to draw. */
export function todayPanel() {
  const dates = picker('Date', (d) => choose({ date: d }, true));
  let track = null;
  let why = '';
  const heading = document.getElementById('today-heading');
  const levels = h('dl', { class: 'levels' }, levelTiles(null));
  const regime = h('p', { class: 'reading' });
  const texts = () => {
    const data = hero.moment;
    refill(levels, ...levelTiles(data, track));
    if (data) refill(regime, ...reading(data));
  };
  const hero = new Hero(texts);
  const show = () => {
    name();
    const { data = null, meta } = panel.document ?? {};
    hero.show(data, whole(track, data, Date.parse(meta?.as_of)), why, meta?.freshness.state === 'fresh' && !day());
    texts();
  };
  const panel = new Panel({
    id: 'today', controls: [hero.span.element, hero.under.element, hero.figure.element, hero.expiring.element],
    render: show,
  });
  const head = document.getElementById('head');
  document.querySelector('.pick').append(dates.element);
  head.append(levels, regime);
  panel.body.append(hero.element);
  const name = () => say(heading, day() ? date(day()) : panel.document && panel.shown === here(path) ? sessionName(panel.document.meta, track) : 'Today');
  onChoice(name);

  const first = new Promise((done) => {
    followTrack((document, reason) => {
      track = document?.data ?? null;
      why = reason;
      show();
      done();
    });
  });
  panel.followDay(path, past);
  first.then(() => {
    offerDates(dates.select);
    hero.begin();
  });
  return first;
}

/** offerDates keeps the stored dates in the picker, newest first, and the chosen one picked. */
function offerDates(select) {
  let stored = [];
  const show = () => {
    const missing = day() && !stored.includes(day()) ? [[day(), `${date(day())}: not stored`]] : [];
    options(select, [['', 'Now'], ...missing, ...stored.toReversed().map((d) => [d, date(d)])]);
    select.value = day();
  };
  follow(`${path}/series`, (feed, fresh) => {
    if (!fresh) return;
    stored = records(feed.document?.data).map((row) => row.date);
    show();
  });
  onChoice(show);
  show();
}

/** sessionName names the session of an answer of now, which on a Saturday is that of Friday, or that of the track if it is another. */
const sessionName = (meta, track) => (track && track.session_date !== meta.session_date ? `Track of ${shortDate(track.session_date)}`
  : meta.session_date === newYorkDay(marketNow(meta.source)) ? 'Today' : weekday(meta.session_date));

/** levelTiles returns the tiles of an answer. Before the first answer they have their place and no value. */
function levelTiles(d, track) {
  const sign = d?.gamma_regime === 'positive' || d?.gamma_regime === 'negative' ? d.gamma_regime : '';
  return [
    ['spot', 'Spot', () => [level(d.spot), spotNote(d)]],
    ['net', 'Net gamma', () => [dollars(d.net_gex_dollars), 'per 1 % move']],
    ['flip', 'Zero-gamma flip', () => [level(d.zero_gamma_flip), flipNote(d)]],
    ['call_wall', 'Call wall', () => [level(d.call_wall), fromSpot(d.call_wall, d)]],
    ['put_wall', 'Put wall', () => [level(d.put_wall), fromSpot(d.put_wall, d)]],
    ['zero_dte', '0DTE share', () => expiring(d, track)],
  ].map(([key, name, of]) => {
    const [value, note] = d ? of() : [unknown, '\u00a0'];
    return h('div', { class: `tile ${key === 'net' ? sign : ''}` }, h('dt', null, term(key, name)), h('dd', null, value, h('small', { title: note.trim() || null }, note)));
  });
}

const fromSpot = (x, d) => (x === null ? 'none' : `spot ${percent((x / d.effective_spot - 1) * 100)}`);

/** expiring returns the share of what expires the same day, and a note. After the close it has settled, and the track says what it was. */
function expiring(d, track) {
  if (!d.zero_dte?.settled) return [share(d.zero_dte?.gross_share_pct), `of gross; net ${dollars(d.zero_dte?.net_gex_dollars)}`];
  const last = track?.session_date === d.session_date && records(track).findLast((row) => row.zero_dte_net_gex_dollars !== null);
  if (!last) return [unknown, `nothing of ${shortDate(d.session_date)} is open`];
  return [share(last.zero_dte_gross_share_pct), `of gross at ${time(Date.parse(last.as_of), true)}; net ${dollars(last.zero_dte_net_gex_dollars)}`];
}

function spotNote(d) {
  const move = d.expected_move_1d === null ? 'exp. move unknown' : `exp. move ±${rough(d.expected_move_1d)}`;
  const change = typeof d.spot_change_pct === 'number' ? `${percent(d.spot_change_pct)}; ` : ''; // days of gex/4 have none
  return `${change}${spotName(d) === 'Spot' ? '' : `${spotName(d).toLowerCase()} ${level(d.effective_spot)}; `}${move}`;
}

const noFlip = { none_all_positive: ['positive', -1], none_all_negative: ['negative', 1] };

function flipNote(d) {
  if (d.zero_gamma_flip === null) {
    const [sign, other] = noFlip[d.flip_status] ?? [];
    if (!sign) return title(d.flip_status);
    return d.profile.some((p) => p.net_gex_dollars * other > 0) ? `none: ${sign} but for traces` : `none: all ${sign} within 15\u00a0%`;
  }
  return d.flip_band ? `band ${level(d.flip_band.low)} to ${level(d.flip_band.high)}` : 'no band';
}

const inBand = (d) => d.flip_band && d.flip_band.low <= d.effective_spot && d.effective_spot <= d.flip_band.high;

/** reading says in a sentence what the regime means. The word regime is explained. */
function reading(d) {
  if (d.flip_status === 'spot_mismatch') return ['The options and the index are more than 10 % apart: the document contradicts itself, so no figure is shown.'];
  if (d.flip_status === 'open_interest_missing') return ['The document lacks open interest of some options, so no sum over all of them is known.'];
  const where = d.zero_gamma_flip === null ? 'There is no flip within 15 % of spot.'
    : `The flip is ${Math.abs(d.flip_distance_pct) < 0.005 ? 'at' : `${percent(Math.abs(d.flip_distance_pct)).replace('+', '')} ${d.flip_distance_pct > 0 ? 'below' : 'above'}`} ${spotName(d).toLowerCase()}${inBand(d) ? `, and spot is within its band${d.gamma_regime === 'neutral' ? '' : ': a scenario has the other sign'}` : ''}.`;
  const what = {
    positive: 'modelled dealers trade against moves',
    negative: 'modelled dealers trade with moves',
    neutral: 'the model cannot tell the sign of net gamma',
  }[d.gamma_regime];
  return what ? [term('regime', `${title(d.gamma_regime)} regime`), `: ${what}. ${where}`] : [`The regime is unknown. ${where}`];
}

