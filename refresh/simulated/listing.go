package simulated

import (
	"math"
	"time"

	"strikecache/compute"
)

// role is why an expiration is listed: it says on which dates, how long before, and with which strikes. One date
// can play several; its series is listed as long, and has all the strikes, that any of them gives.
type role struct {
	plays func(*compute.Calendar, compute.Date) bool // the date is a session
	life  int                                        // days from the listing to the expiration
	// calm says that strikes are added as the trend of the price moves on, else as the price moves.
	calm  bool
	bands []band
	// interest is the typical open interest, in contracts, of a strike near the money on the last day; before
	// that it is less by the power growth of the share of life that has passed.
	interest, growth float64
}

// band is a range of the ladder of strikes: the multiples of step from below under to above over the spot, listed
// when the expiration is at most within days away. A taper widens it from nothing to its full width until then.
type band struct {
	step         float64 // strike units, see instrument.unit
	below, above float64 // share of instrument.price
	within       int     // days, 0 for always
	taper        bool
}

// reach returns the share of its width that the band has days before expiration.
func (b *band) reach(days int) float64 {
	switch {
	case b.within > 0 && days > b.within:
		return 0
	case b.taper:
		return 1 - float64(days)/float64(b.within)
	}
	return 1
}

func anySession(*compute.Calendar, compute.Date) bool { return true }

// weekEnd says whether the date is the last session up to a Friday.
func weekEnd(cal *compute.Calendar, d compute.Date) bool {
	friday := d + compute.Date(time.Friday-d.Weekday())
	return cal.OnOrBefore(friday) == d
}

// monthly says whether the date is the third Friday, or the session before when that is a holiday.
func monthly(cal *compute.Calendar, d compute.Date) bool {
	return d == monthlyDate(cal, d.Year(), d.Month())
}

func monthlyDate(cal *compute.Calendar, year int, month time.Month) compute.Date {
	return cal.OnOrBefore(compute.ThirdFriday(year, month))
}

func monthlyIn(months ...time.Month) func(*compute.Calendar, compute.Date) bool {
	return func(cal *compute.Calendar, d compute.Date) bool {
		for _, month := range months {
			if d.Month() == month {
				return monthly(cal, d)
			}
		}
		return false
	}
}

func monthEnd(cal *compute.Calendar, d compute.Date) bool { return cal.Next(d).Month() != d.Month() }

func quarterEnd(cal *compute.Calendar, d compute.Date) bool {
	return d.Month()%3 == 0 && monthEnd(cal, d)
}

// series is one root and expiration of a chain.
type series struct {
	root    string
	date    compute.Date
	am      bool
	settles time.Time
	roles   []*role
	since   compute.Date // the session it was listed on
	strikes []int32      // thousandths of a USD, rising
	key     noise
	first   int // index of its first contract in the table
}

// days returns the calendar days from a date to the expiration.
func (s *series) days(from compute.Date) int { return int(s.date - from) }

// interest returns the typical open interest of a strike near the money, in contracts.
func (s *series) interest(on compute.Date) (level float64) {
	for _, r := range s.roles {
		if age := 1 - float64(s.days(on))/float64(r.life); age > 0 {
			level = max(level, r.interest*math.Pow(age, r.growth))
		}
	}
	return level
}

// expirations returns the series of a listing, in the order of the wire, without strikes.
func (m *Market) expirations(in *instrument, listed compute.Date) []series {
	spec := in.chain
	all := m.rootSeries(in, listed, spec.amRoles, true)
	all = append(all, m.rootSeries(in, listed, spec.pmRoles, false)...)
	if spec.adjusted {
		for _, s := range all {
			if monthly(m.calendar, s.date) && s.days(listed) > 20 {
				s.root += "1"
				return append(all, s)
			}
		}
	}
	return all
}

func (m *Market) rootSeries(in *instrument, listed compute.Date, roles []role, am bool) (all []series) {
	root := in.root(am)
	longest := 0
	for i := range roles {
		longest = max(longest, roles[i].life)
	}
	for d := listed; d <= listed+compute.Date(longest); d = m.calendar.Next(d) {
		s := series{root: root, date: d, am: am, since: d}
		for i := range roles {
			r := &roles[i]
			if int(d-listed) <= r.life && r.plays(m.calendar, d) {
				s.roles = append(s.roles, r)
				s.since = min(s.since, d-compute.Date(r.life))
			}
		}
		if s.roles == nil {
			continue
		}
		s.since = m.calendar.Next(s.since - 1)
		s.settles = compute.PM.Instant(d, m.calendar)
		if am {
			s.settles = compute.AM.Instant(d, m.calendar)
		}
		all = append(all, s)
	}
	return all
}

// root returns the root of an instrument's options.
func (in *instrument) root(am bool) string {
	switch {
	case in.symbol != spx:
		return in.symbol
	case am:
		return "SPX"
	}
	return "SPXW"
}

// anchorEvery is how many sessions pass before strikes are added around a spot that has moved.
const anchorEvery = 5

// span is a range of strikes, in thousandths of a USD: the multiples of step from one to another.
type span struct{ step, from, to int32 }

// ladder returns the strikes of a series on the session listed: all that its bands have covered, since a listed
// strike stays until it lies far from the price.
func (m *Market) ladder(in *instrument, s *series, listed int) []int32 {
	var spans []span
	highest := int32(0)
	for _, r := range s.roles {
		for i := range r.bands {
			if sp, ok := m.covered(in, s, r, &r.bands[i], listed); ok {
				spans = append(spans, sp)
				highest = max(highest, sp.to)
			}
		}
	}
	member := make([]bool, highest/in.unit+1)
	count := 0
	for _, sp := range spans {
		for k := sp.from; k <= sp.to; k += sp.step {
			if yes := &member[k/in.unit]; !*yes {
				*yes = true
				count++
			}
		}
	}
	strikes := make([]int32, 0, count)
	for i, yes := range member {
		if yes {
			strikes = append(strikes, int32(i)*in.unit)
		}
	}
	return strikes
}

// covered returns what a band covers of what it has covered since the series was listed.
func (m *Market) covered(in *instrument, s *series, r *role, b *band, listed int) (found span, ok bool) {
	found.step = int32(b.step * float64(in.unit))
	var left span // beyond it strikes are taken off that the price has left behind
	newest := max(listed-1, 0) / anchorEvery * anchorEvery
	for anchor := newest; anchor >= 0; anchor -= anchorEvery {
		days := s.days(m.factors.dates[anchor])
		if days > r.life && anchor < newest {
			break
		}
		reach := b.reach(min(days, r.life))
		if reach <= 0 {
			continue
		}
		center, width := m.closing(in, anchor)*1000/float64(found.step), reach*in.price*1000/float64(found.step)
		if r.calm {
			center = math.Exp(in.logPrice(trend(m.factors.dates[anchor]), volMean, 0, 0)) * 1000 / float64(found.step)
		}
		from := max(int32(center-b.below*width)+1, 1) * found.step
		to := int32(center+b.above*width) * found.step
		if !ok {
			found.from, found.to, ok = from, to, true
			left = span{from: from - int32(0.12*b.below*width)*found.step, to: to + int32(0.25*b.above*width)*found.step}
		}
		found.from, found.to = max(min(found.from, from), left.from), min(max(found.to, to), left.to)
	}
	return found, ok
}
