package simulated

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
)

// role is a reason why an expiration is listed. One date can play several roles: then its series has the longest life and the widest
// strikes of them.
type role struct {
	am    bool                                       // settled at the open, under a root of its own
	plays func(*compute.Calendar, compute.Date) bool // whether a date, which is a session, plays the role
	life  int                                        // days from the listing to the expiration
	width float64                                    // factor of the bands of strikes
	// interest is the typical open interest, in contracts, of a strike near the money on the last day. Before that day it is multiplied by
	// the share of life that has passed, to the power of growth.
	interest, growth float64
}

// band is a range of strikes: the multiples of step from below under to above over the trend of the price. With a taper, the band opens
// taper days before the expiration and widens from nothing to its full width at the expiration.
type band struct {
	step         int32   // strike units, see instrument.unit
	below, above float64 // share of the price
	taper        int     // days; 0 for a band of constant width
}

func anySession(*compute.Calendar, compute.Date) bool { return true }

// weekEnd says whether the date is the last session up to a Friday.
func weekEnd(cal *compute.Calendar, d compute.Date) bool {
	return cal.OnOrBefore(d+compute.Date(time.Friday-d.Weekday())) == d
}

// monthly says whether the date is the third Friday, or the session before it if that Friday is a holiday.
func monthly(cal *compute.Calendar, d compute.Date) bool {
	return d == cal.OnOrBefore(compute.ThirdFriday(d.Year(), d.Month()))
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
	settles moment
	since   compute.Date // the session it was listed on
	life    int          // days from its listing
	roles   []role       // the roles that the date plays
	strikes []strike     // rising
	key     noise
}

// strike is a listed strike of a series.
type strike struct {
	thousandths int32        // of a USD
	since       compute.Date // the session it was listed on
}

// days returns the calendar days from a date to the expiration.
func (s *series) days(from compute.Date) int { return int(s.date - from) }

const longestLife = 1970 // days, the maximum of all roles

// listing returns the series of a chain that are listed on a session: first the AM-settled ones, each kind by date.
func (m *Market) listing(in *instrument, listed compute.Date) (all []series) {
	for _, am := range []bool{true, false} {
		for d := listed; d <= listed+longestLife; d = m.calendar.Next(d) {
			if s := m.series(in, d, listed, am); s.life > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}

// series returns the series of an expiration date, with the strikes that are listed on a session. Its life is 0 when the date plays no
// role.
func (m *Market) series(in *instrument, date, listed compute.Date, am bool) series {
	s, width := series{root: strings.TrimPrefix(in.symbol, "_"), date: date, am: am}, 0.0
	if !am {
		s.root += in.chain.pm
	}
	for _, r := range in.chain.roles {
		if r.am == am && s.days(listed) <= r.life && r.plays(m.calendar, date) {
			s.life, width, s.roles = max(s.life, r.life), max(width, r.width), append(s.roles, r)
		}
	}
	if s.life > 0 {
		s.settles = m.settles(date, am)
		s.since = m.calendar.Next(date - compute.Date(s.life) - 1)
		s.key = m.key.named("options").named(s.root).child(uint64(date))
		s.strikes = m.ladder(in, &s, width, listed)
	}
	return s
}

// settles returns the open or the close of a session.
func (m *Market) settles(date compute.Date, am bool) moment {
	i := m.factors.index(date)
	if am {
		return m.factors.opening(i)
	}
	return moment{m.calendar.Close(date), float64(i + 1)}
}

// lastQuote returns the moment of the last quote of an index in a session, which is its close.
func (m *Market) lastQuote(date compute.Date) moment {
	at := m.settles(date, false)
	at.time = at.time.Add(indexTail - time.Second)
	return at
}

// interest returns the open interest of a typical strike near the money, contracts.
func (s *series) interest(on compute.Date) float64 {
	most := 0.0
	for _, r := range s.roles {
		if age := 1 - float64(s.days(on))/float64(r.life); age > 0 {
			most = max(most, r.interest*math.Pow(age, r.growth))
		}
	}
	return most
}

// ladder returns the strikes of a series that are listed on a session. Their center is the trend of the price on a fixed date, about
// when most of them are listed, so that a listed strike stays.
func (m *Market) ladder(in *instrument, s *series, width float64, listed compute.Date) (strikes []strike) {
	center := in.level * math.Exp(in.beta*(trend(s.date-compute.Date(min(s.life, 200)))-trend(pricedOn))) * 1000 / float64(in.unit)
	for _, b := range in.chain.bands {
		below, above := min(b.below*width, 0.97)*center, b.above*width*center
		step := b.step * m.every
		for k := int32(center-below)/step*step + step; float64(k) <= center+above; k += step {
			since := s.since
			if b.taper > 0 {
				away := max((center-float64(k))/below, (float64(k)-center)/above) // 1 at the end of the band
				since = max(since, m.calendar.Next(s.date-compute.Date(float64(b.taper)*(1-away))-1))
			}
			if since <= listed {
				strikes = append(strikes, strike{k * in.unit, since})
			}
		}
	}
	slices.SortFunc(strikes, func(a, b strike) int {
		return cmp.Or(cmp.Compare(a.thousandths, b.thousandths), cmp.Compare(a.since, b.since))
	})
	return slices.CompactFunc(strikes, func(a, b strike) bool { return a.thousandths == b.thousandths })
}
