package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strikecache/compute"
)

// oi is a listed strike with its open calls and puts.
type oi struct{ strike, calls, puts float64 }

func painRows(series string, strikes ...oi) []row {
	var rows []row
	for _, s := range strikes {
		rows = append(rows, row{symbolOf(series+"C", s.strike), blank(s.calls)}, row{symbolOf(series+"P", s.strike), blank(s.puts)})
	}
	return rows
}

func pains(t *testing.T, spot float64, asOf string, rows ...row) []*compute.MaxPain {
	t.Helper()
	return compute.MaxPains(build(t, index(spot, asOf), rows...), cal)
}

// A third Friday has both settlements: the main figures are of all contracts of the date. After 09:30 only PM remains.
func TestMaxPainMixed(t *testing.T) {
	rows := append(painRows("SPX260821", oi{7000, 50, 0}, oi{7100, 0, 5}), painRows("SPXW260821", oi{7100, 2, 0}, oi{7200, 0, 9})...)
	rows = append(rows, painRows("SPXW260828", oi{7000, 1, 0})...)
	all := pains(t, 7000, "2026-08-21T13:29:59Z", rows...)
	p := all[0]
	equal(t, "settlement", p.Settlement, "mixed")
	equal(t, "symbol", p.Symbol, "SPX")
	equal(t, "next date", all[1].Expiration, day("2026-08-28"))
	equal(t, "days to it", all[1].DaysToExpiration, 7)
	equal(t, "calls", p.CallOpenInterest, 52)
	equal(t, "puts", p.PutOpenInterest, 14)
	near(t, "max pain", p.MaxPain, 7000, 0)
	near(t, "payout", p.Payout, (5*100+9*200)*100, 0)
	equal(t, "expirations", fmt.Sprint(p.Expirations), "[{2026-08-21 mixed 66} {2026-08-28 pm 1}]")
	equal(t, "same for all", fmt.Sprint(all[1].Expirations), fmt.Sprint(p.Expirations))

	p = pains(t, 7000, "2026-08-21T13:30:00Z", rows...)[0]
	equal(t, "settlement", p.Settlement, "pm")
	isNull(t, "AM", p.BySettlement.AM)
	near(t, "max pain", p.MaxPain, 7200, 0)
	equal(t, "days", p.DaysToExpiration, 0)
	all = pains(t, 7000, "2026-08-21T20:00:00Z", rows...)
	equal(t, "dates after the close", len(all), 1)
	equal(t, "AM alone", pains(t, 7000, noon, painRows("SPX260821", oi{7000, 1, 1})...)[0].Settlement, "am")
}

// Without open interest, the fields that need a minimum are null and the curve is all zeros.
func TestMaxPainWithoutOpenInterest(t *testing.T) {
	p := pains(t, 7000, noon, painRows("SPXW260821", oi{6900, 0, 0}, oi{7000, 0, 0})...)[0]
	isNull(t, "max pain", p.MaxPain)
	isNull(t, "range", p.Range)
	isNull(t, "flatness", p.Flatness)
	isNull(t, "payout", p.Payout)
	isNull(t, "distance", p.Distance)
	isNull(t, "ratio", p.PutCallRatio)
	equal(t, "curve", fmt.Sprint(p.Curve), "[{6900 0 0 0} {7000 0 0 0}]")
	if body := string(marshal(t, p)); !strings.Contains(body, `"open_interest":[],`) && !strings.Contains(body, `"open_interest":[]`) {
		t.Error(body)
	}
}

// The default is the nearest date with open interest, else the nearest date, and -1 without a date.
func TestDefaultMaxPain(t *testing.T) {
	near, far := painRows("SPXW260814", oi{7000, 0, 0}), painRows("SPXW260821", oi{7000, 0, 1})
	equal(t, "second", compute.DefaultMaxPain(pains(t, 7000, noon, append(near, far...)...)), 1)
	equal(t, "first", compute.DefaultMaxPain(pains(t, 7000, noon, far...)), 0)
	equal(t, "no open interest", compute.DefaultMaxPain(pains(t, 7000, noon, near...)), 0)
	equal(t, "none", compute.DefaultMaxPain(nil), -1)
	equal(t, "settled", compute.DefaultMaxPain(pains(t, 7000, "2026-08-22T15:00:00Z", far...)), -1)
}

// bruteForce computes METHODS.md §4 in whole tenths of a dollar: strikes in thousandths, every strike against every
// contract.
type bruteForce struct {
	call, put []int64
	best      float64
	lo, hi    float64
	flat      compute.Band
}

func force(strikes []oi, spot float64) bruteForce {
	var b bruteForce
	least := int64(math.MaxInt64)
	for _, x := range strikes {
		var call, put int64
		for _, s := range strikes {
			d := int64(math.Round(1000 * (x.strike - s.strike)))
			call += int64(s.calls) * max(d, 0)
			put += int64(s.puts) * max(-d, 0)
		}
		b.call, b.put = append(b.call, call), append(b.put, put)
		least = min(least, call+put)
	}
	b.best, b.lo, b.flat.Low = math.NaN(), math.NaN(), compute.Level(math.NaN())
	for i, x := range strikes {
		total := b.call[i] + b.put[i]
		if total == least {
			if math.IsNaN(b.lo) {
				b.lo, b.best = x.strike, x.strike
			}
			b.hi = x.strike
			if math.Abs(x.strike-spot) < math.Abs(b.best-spot) {
				b.best = x.strike
			}
		}
		if 100*total <= 101*least {
			if math.IsNaN(float64(b.flat.Low)) {
				b.flat.Low = compute.Level(x.strike)
			}
			b.flat.High = compute.Level(x.strike)
		}
	}
	return b
}

func checkSide(t *testing.T, name string, side *compute.PainSide, strikes []oi, spot float64) {
	t.Helper()
	want := force(strikes, spot)
	if len(side.Curve) != len(strikes) {
		t.Fatalf("%s: %d points, %d strikes", name, len(side.Curve), len(strikes))
	}
	for i, p := range side.Curve {
		if float64(p.Price) != strikes[i].strike || float64(p.Call) != float64(want.call[i])/10 || float64(p.Put) != float64(want.put[i])/10 ||
			p.Payout != p.Call+p.Put {
			t.Fatalf("%s: %+v, want %v and %v at %v", name, p, want.call[i], want.put[i], strikes[i].strike)
		}
	}
	calls, puts, open := 0.0, 0.0, []compute.StrikeOI{}
	for _, s := range strikes {
		if calls, puts = calls+s.calls, puts+s.puts; s.calls+s.puts > 0 {
			open = append(open, compute.StrikeOI{Strike: compute.Level(s.strike), Call: compute.Count(s.calls), Put: compute.Count(s.puts)})
		}
	}
	equal(t, name+" open interest", fmt.Sprint(side.CallOpenInterest, side.PutOpenInterest, side.OpenInterest), fmt.Sprint(calls, puts, open))
	if calls == 0 {
		isNull(t, name+" ratio without calls", side.PutCallRatio)
	} else {
		near(t, name+" ratio", side.PutCallRatio, puts/calls, 1e-12)
	}
	if calls+puts == 0 {
		isNull(t, name, side.MaxPain)
		return
	}
	near(t, name+" distance", side.Distance, (want.best-spot)/spot*100, 1e-12)
	near(t, name+" max pain", side.MaxPain, want.best, 0)
	equal(t, name+" range", *side.Range, [2]compute.Level{compute.Level(want.lo), compute.Level(want.hi)})
	equal(t, name+" flatness", *side.Flatness, want.flat)
}

// Random chains agree with the brute force. They have few positions, so that flat minima and ties are common, AM and PM on
// one date, and strikes down to an eighth of a point.
func TestMaxPainAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	ties := 0
	for i := range 400 {
		step := []float64{0.125, 0.5, 1, 5, 25}[random.IntN(5)]
		spot := 1000 + step*float64(random.IntN(40))/2
		sides := map[string][]oi{}
		both := map[float64]oi{}
		var rows []row
		for _, root := range []string{"SPX", "SPXW"} {
			for k := range 1 + random.IntN(20) {
				s := oi{1000 + step*float64(k), float64(random.IntN(4) * random.IntN(2)), float64(random.IntN(4) * random.IntN(2))}
				sides[root] = append(sides[root], s)
				sum := both[s.strike]
				both[s.strike] = oi{s.strike, sum.calls + s.calls, sum.puts + s.puts}
			}
			rows = append(rows, painRows(root+"260821", sides[root]...)...)
		}
		var all []oi
		for k := range 20 {
			if s, ok := both[1000+step*float64(k)]; ok {
				all = append(all, s)
			}
		}
		name := fmt.Sprint("chain ", i)
		p := pains(t, spot, noon, rows...)[0]
		checkSide(t, name, &p.PainSide, all, spot)
		checkSide(t, name+" am", p.BySettlement.AM, sides["SPX"], spot)
		checkSide(t, name+" pm", p.BySettlement.PM, sides["SPXW"], spot)
		p = pains(t, spot, "2026-08-21T14:00:00Z", rows...)[0]
		checkSide(t, name+" after the open", &p.PainSide, sides["SPXW"], spot)
		if p.Range != nil && p.Range[0] < p.Range[1] {
			ties++
		}
	}
	if ties < 40 {
		t.Errorf("only %d flat minima", ties)
	}
}

// Sums are exact in thousandths, so a flat minimum is found even where the float64 of a strike times 1000 is not whole.
func TestMaxPainAtStrikesInThousandths(t *testing.T) {
	p := pains(t, 1.008, noon, painRows("SPXW260821", oi{1.004, 3, 3}, oi{1.008, 0, 0}, oi{1.013, 0, 3})...)[0]
	near(t, "max pain", p.MaxPain, 1.008, 0)
	equal(t, "range", *p.Range, [2]compute.Level{1.004, 1.013})
}
