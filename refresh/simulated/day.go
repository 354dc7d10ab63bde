package simulated

import "math"

// tapesKept bounds the tapes that are kept: today's, and that of the night before the next session.
const tapesKept = 3

// tape returns the common factors' path of a session.
func (m *Market) tape(i int) *tape {
	for _, t := range m.tapes {
		if t.session == i {
			return t
		}
	}
	t := newTape()
	m.factors.record(t, i)
	if len(m.tapes) == tapesKept {
		m.tapes = m.tapes[1:]
	}
	m.tapes = append(m.tapes, t)
	return t
}

// closing returns the official close of session i.
func (m *Market) closing(in *instrument, i int) float64 {
	f := m.factors
	own := f.ownPath(in, i)
	return in.quoted(math.Exp(in.logPrice(f.market[i], f.vol[i], f.term[i], own[i])))
}

// closingSurface returns the surface at the close of session i.
func (m *Market) closingSurface(in *instrument, i int) surface {
	return in.surface(m.closing(in, i), m.factors.vol[i], m.factors.term[i], m.factors.ownPath(in, i)[i])
}

// day is one instrument during one session. u is the share of the session that has passed, 0 at the open and 1
// at the close.
type day struct {
	in      *instrument
	factors *factors
	session int
	tape    *tape
	logs    []float64 // logarithm of the price at each knot
	own     []float64 // the instrument's own factor at each knot
	before  float64   // official close of the session before
	length  float64   // seconds from the open to the close
}

// day returns an instrument's session i >= 1.
func (m *Market) day(in *instrument, i int) *day {
	d := &day{logs: make([]float64, knots+1), own: make([]float64, knots+1), tape: m.tape(i)}
	m.fillDay(d, in, i)
	return d
}

// fillDay makes d the session i of an instrument. Its tape must be that of the session.
func (m *Market) fillDay(d *day, in *instrument, i int) {
	date := m.factors.dates[i]
	d.in, d.factors, d.session, d.before = in, m.factors, i, m.closing(in, i-1)
	d.length = m.calendar.Close(date).Sub(m.calendar.Open(date)).Seconds()
	if in.own > 0 {
		var bridge [knots + 1]float64
		m.factors.ownLeg(in, i).fill(d.own, bridge[:])
	}
	for k := range d.logs {
		d.logs[k] = in.logPrice(d.tape.market[k], d.tape.vol[k], d.term(float64(k)/knots), d.own[k])
	}
}

func (d *day) term(u float64) float64 {
	from, to := d.factors.term[d.session-1], d.factors.term[d.session]
	if u >= 1 {
		return to
	}
	return from + (to-from)*u
}

// price returns the quoted price.
func (d *day) price(u float64) float64 { return d.in.quoted(math.Exp(interpolate(d.logs, u))) }

// surface returns the surface of implied volatility.
func (d *day) surface(u float64) surface {
	return d.in.surface(d.price(u), interpolate(d.tape.vol, u), d.term(u), interpolate(d.own, u))
}

// extremes returns the lowest and highest price up to u.
func (d *day) extremes(u float64) (low, high float64) {
	now := interpolate(d.logs, u)
	least, most := now, now
	for _, x := range d.logs[:min(int(u*knots), knots)+1] {
		least, most = min(least, x), max(most, x)
	}
	return d.in.quoted(math.Exp(least)), d.in.quoted(math.Exp(most))
}

// shares returns the volume up to u.
func (d *day) shares(u float64) int64 {
	if d.in.shares == 0 {
		return 0
	}
	i := d.session
	key := d.factors.key.named(d.in.symbol).named("shares").child(uint64(d.factors.dates[i]))
	busy := math.Abs(d.logs[knots]-d.logs[0]) / d.factors.deviation(i)
	return int64(d.in.shares * math.Exp(0.2*key.normal()+0.15*busy) * activity(u))
}

// activity returns the share of a session's trading that is done at u: more of it after the open and before the
// close.
func activity(u float64) float64 { return u + 0.6/(2*math.Pi)*math.Sin(2*math.Pi*u) }

// overnightSurface returns the surface of the options that trade alone in the night before session i.
func (m *Market) overnightSurface(in *instrument, i int, w float64) surface {
	f := m.factors
	own := 0.0
	if in.own > 0 {
		own = f.ownLeg(in, i).overnight(w)
	}
	vol := f.volLeg(i).overnight(w)
	price := math.Exp(in.logPrice(f.marketLeg(i).overnight(w), vol, f.term[i-1], own))
	return in.surface(price, vol, f.term[i-1], own)
}

// bar is one row of a daily history.
type bar struct {
	open, high, low, close float64
	shares                 int64
}

// bars returns the rows of the sessions 1 to i; the first session of the market, a day without a past, is flat.
func (m *Market) bars(in *instrument, i int) []bar {
	rows := m.history[in]
	if len(rows) == 0 {
		x := m.closing(in, 0)
		rows = append(rows, bar{open: x, high: x, low: x, close: x, shares: int64(in.shares)})
	}
	d := &day{logs: make([]float64, knots+1), own: make([]float64, knots+1), tape: newTape()}
	for k := len(rows); k <= i; k++ {
		m.factors.record(d.tape, k)
		m.fillDay(d, in, k)
		low, high := d.extremes(1)
		rows = append(rows, bar{open: d.price(0), high: high, low: low, close: d.price(1), shares: d.shares(1)})
	}
	m.history[in] = rows
	return rows[:i+1]
}
