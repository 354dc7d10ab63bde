package simulated

import (
	"math"
	"slices"
	"time"

	"strikecache/compute"
)

// role is a reason why an expiration is listed. One date can play several roles: its series is listed as long as any
// of them says, and with the widest strikes.
type role struct {
	am    bool                                       // settled at the open, under a root of its own
	plays func(*compute.Calendar, compute.Date) bool // the date is a session
	life  int                                        // days from the listing to the expiration
	width float64                                    // of the bands of strikes
	// interest is the typical open interest, in contracts, of a strike near the money on the last day; before
	// that it is less by the power growth of the share of life that has passed.
	interest, growth float64
}

// band is a range of strikes: the multiples of step from below under to above over the trend of the price. With a
// taper the band opens so many days before the expiration, and widens from nothing to its full width until then.
type band struct {
	step         int32   // strike units, see instrument.unit
	below, above float64 // share of the price
	taper        int     // days; 0 for a band that is always as wide
}

func anySession(*compute.Calendar, compute.Date) bool { return true }

// weekEnd says whether the date is the last session up to a Friday.
func weekEnd(cal *compute.Calendar, d compute.Date) bool {
	return cal.OnOrBefore(d+compute.Date(time.Friday-d.Weekday())) == d
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
		return slices.Contains(months, d.Month()) && monthly(cal, d)
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
	life    int          // days from its listing
	strikes []int32      // thousandths of a USD, rising
	key     noise
	first   int // index of its first contract
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

// listing returns the series of a chain that are listed on a session, AM-settled ones first, by date.
func (m *Market) listing(in *instrument, listed compute.Date) []series {
	all := append(m.rootListing(in, listed, true), m.rootListing(in, listed, false)...)
	if !in.chain.adjusted {
		return all
	}
	far := slices.IndexFunc(all, func(s series) bool { return monthly(m.calendar, s.date) && s.days(listed) > 20 })
	adjusted := all[far]
	adjusted.root += "1"
	return append(all, adjusted)
}

func (m *Market) rootListing(in *instrument, listed compute.Date, am bool) (all []series) {
	longest := 0
	for _, r := range in.chain.roles {
		longest = max(longest, r.life)
	}
	for d := listed; d <= listed+compute.Date(longest); d = m.calendar.Next(d) {
		s := series{root: in.root(am), date: d, am: am}
		for i := range in.chain.roles {
			r := &in.chain.roles[i]
			if r.am == am && s.days(listed) <= r.life && r.plays(m.calendar, d) {
				s.roles = append(s.roles, r)
				s.life = max(s.life, r.life)
			}
		}
		if s.roles == nil {
			continue
		}
		s.since = m.calendar.Next(d - compute.Date(s.life) - 1)
		s.strikes = s.ladder(in, listed)
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

// ladder returns the strikes that are listed on a session. They lie around the trend of the price rather than the
// price, so that a listed strike stays.
func (s *series) ladder(in *instrument, listed compute.Date) (strikes []int32) {
	center := in.level * math.Exp(in.beta*(trend(listed)-trend(pricedOn))) * 1000 / float64(in.unit)
	width := 0.0
	for _, r := range s.roles {
		width = max(width, r.width)
	}
	type span struct{ step, from, to int32 }
	var spans []span
	for _, b := range in.chain.bands {
		reach := center * width
		if b.taper > 0 {
			reach *= max(1-float64(s.days(listed))/float64(b.taper), 0)
		}
		spans = append(spans, span{b.step, int32(center - min(b.below*reach, 0.97*center)), int32(center + b.above*reach)})
	}
	widest := spans[len(spans)-1]
	for k := max(widest.from, 1); k <= widest.to; k++ {
		for _, sp := range spans {
			if k%sp.step == 0 && k >= sp.from && k <= sp.to {
				strikes = append(strikes, k*in.unit)
				break
			}
		}
	}
	return strikes
}
