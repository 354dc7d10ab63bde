package compute

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// usable returns the contract of a right if its quote is a price, and the strike does not contradict the others, else nil.
func (r *strike) usable(right Right) *Contract {
	if c := r.contracts[right]; c != nil && c.TwoSided() && !r.contradicts {
		return c
	}
	return nil
}

// quoted says whether call and put of a strike are usable, also side by side.
func (r *strike) quoted() bool { return !r.off && r.usable(Call) != nil && r.usable(Put) != nil }

// outOf returns the right that is out of the money at a strike.
func (s *series) outOf(k float64) Right {
	if k >= s.forward {
		return Call
	}
	return Put
}

// outward yields the strikes at which a right is out of the money, nearest the forward first.
func (s *series) outward(right Right) iter.Seq[*strike] {
	first, _ := find(s.strikes, s.forward)
	step := 1
	if right == Put {
		first, step = first-1, -1
	}
	return func(yield func(*strike) bool) {
		for i := first; i >= 0 && i < len(s.strikes) && yield(&s.strikes[i]); i += step {
		}
	}
}

const (
	// A parity forward is the median over at most parityStrikes and at least minParityStrikes strikes.
	parityStrikes, minParityStrikes = 7, 3
	// leastSlack is how far C - P may be off parity at any spread, USD: the forward and two locked quotes are rounded to ticks of up to 0.10.
	leastSlack = 0.20
	// rateSlack is how far the rate may be off, per year: then C - P has another slope on K.
	rateSlack = 0.05
	// crossReach is how many options nearer the money an option is compared with.
	crossReach = 8
)

// vote is a strike with two prices, and what they say of the forward.
type vote struct {
	row          *strike
	gap, forward float64
}

// parityForward returns the median of K + e^(rT)(C - P) over the strikes at which the mids C and P are closest to each other, of those
// that are not off: the strikes that contradict the median of the first set of voters of which most agree with it, or else of the set
// of which the most agree. They are marked.
func (s *series) parityForward() (f float64, ok bool) {
	var votes []vote
	for i := range s.strikes {
		row := &s.strikes[i]
		if !row.quoted() {
			continue
		}
		d := row.contracts[Call].Mid() - row.contracts[Put].Mid()
		gap := math.Round(math.Abs(d)*1e6) / 1e6 // gaps that are equal as decimals must compare as equal
		votes = append(votes, vote{row, gap, row.k + d/s.discount})
	}
	slices.SortFunc(votes, func(a, b vote) int { return cmp.Or(cmp.Compare(a.gap, b.gap), cmp.Compare(a.row.k, b.row.k)) })
	agreed := 0
	for rest, voters := votes, 0; len(rest) >= minParityStrikes && 2*agreed <= voters; rest = rest[voters:] {
		voters = min(len(rest), parityStrikes)
		middle, n := medianForward(rest[:voters]), 0
		for _, v := range rest[:voters] {
			if x, _ := s.beyond(v.row, middle); x <= 0 {
				n++
			}
		}
		if n > agreed {
			f, agreed = middle, n
		}
	}
	if agreed == 0 {
		return 0, false
	}
	for _, v := range votes {
		european, american := s.beyond(v.row, f)
		v.row.off = s.american && american > 0 || !s.american && european > 0
	}
	votes = slices.DeleteFunc(votes, func(v vote) bool { return v.row.off })
	f = medianForward(votes[:min(len(votes), parityStrikes)])
	return f, f > 0 && finite(f)
}

func medianForward(votes []vote) float64 {
	forwards := make([]float64, len(votes))
	for i, v := range votes {
		forwards[i] = v.forward
	}
	return median(forwards)
}

// beyond returns by how much C - P is further off e^(-rT)(F - K) than both spreads and a wrong rate explain; american by how much further
// than exercise explains, too: S - dividends - K <= C - P <= S - K·e^(-rT), and a forward of calls that are worth more exercised is too
// high by at most the dividends.
//
// Source: Hull, Options, Futures and Other Derivatives, ch. 11.4 and 11.7.
func (s *series) beyond(r *strike, f float64) (european, american float64) {
	call, put := r.contracts[Call], r.contracts[Put]
	european = decimal(math.Abs(call.Mid()-put.Mid()-s.discount*(f-r.k)) -
		max(call.Ask-call.Bid+put.Ask-put.Bid, leastSlack) - rateSlack*s.years*math.Abs(f-r.k))
	return european, european - math.Abs(r.k*(1-s.discount)) - math.Abs(s.spot-s.discount*f)
}

// findCrossed marks strikes whose out-of-the-money option is dearer than one of its right that must be dearer, its bid above the ask
// there: one nearer the money, or one of the nearest in the money, which are not marked. Of such a pair, the option is wrong whose C - P
// is off, else the one that contradicts more of its neighbours, both if they contradict as many.
func (s *series) findCrossed() {
	for _, right := range [...]Right{Put, Call} {
		var rows []*strike
		for row := range s.outward(Call + Put - right) {
			if row.usable(right) != nil && len(rows) < crossReach {
				rows = append(rows, row)
			}
		}
		slices.Reverse(rows)
		inside := len(rows)
		for row := range s.outward(right) {
			if row.usable(right) != nil {
				rows = append(rows, row)
			}
		}
		var pairs [][2]int
		counts := make([]int, len(rows))
		for i, far := range rows {
			if far.off {
				counts[i] += crossReach
			}
			for j := max(i-crossReach, 0); i >= inside && j < i; j++ {
				if far.contracts[right].Bid > rows[j].contracts[right].Ask {
					pairs = append(pairs, [2]int{i, j})
					counts[i]++
					counts[j]++
				}
			}
		}
		for _, p := range pairs {
			for at, i := range p {
				if i >= inside && counts[i] >= counts[p[1-at]] {
					rows[i].contradicts = true
				}
			}
		}
	}
}

// findWrong marks strikes whose C - P is off because of the out-of-the-money option: by parity, the other option has a volatility that
// is nearer that of the strikes around.
func (s *series) findWrong() {
	sure := s.smile(func(r *strike) bool { return !r.off })
	for i := range s.strikes {
		row, inner := &s.strikes[i], Call+Put-s.outOf(s.strikes[i].k)
		if !row.off || row.step != volImplied || len(sure) == 0 {
			continue
		}
		around := sure.at(max(sure[0].x, min(logMoneyness(row.k, s.forward), sure[len(sure)-1].x)))
		other, ok := ImpliedTotalVolatility(inner, row.contracts[inner].Mid()/s.discount, s.forward, row.k, row.v)
		if ok && math.Abs(other-math.Sqrt(around)) < math.Abs(row.v-math.Sqrt(around)) {
			row.contradicts, row.step = true, volNone
		}
	}
}

func (s *series) contradictory() (n int) {
	for i := range s.strikes {
		if row := &s.strikes[i]; row.off || row.contradicts {
			n++
		}
	}
	return n
}
