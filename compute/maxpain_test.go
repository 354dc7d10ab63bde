package compute_test

import (
	"fmt"
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
	equal(t, "open interest", string(marshal(t, p.OpenInterest)), "[]")
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

// Sums are exact in thousandths, so a flat minimum is found even where the float64 of a strike times 1000 is not whole.
func TestMaxPainAtStrikesInThousandths(t *testing.T) {
	p := pains(t, 1.008, noon, painRows("SPXW260821", oi{1.004, 3, 3}, oi{1.008, 0, 0}, oi{1.013, 0, 3})...)[0]
	near(t, "max pain", p.MaxPain, 1.008, 0)
	equal(t, "range", *p.Range, [2]compute.Level{1.004, 1.013})
}

// Of strikes with the least payout, max pain is the nearest to the spot, or the lower of two that are equally near.
func TestMaxPainTies(t *testing.T) {
	flat := painRows("SPXW260821", oi{6900, 5, 0}, oi{6950, 0, 0}, oi{7000, 0, 0}, oi{7100, 0, 5}, oi{7200, 0, 0})
	for spot, want := range map[float64]float64{6000: 6900, 6974: 6950, 6975: 6950, 6976: 7000, 7050: 7000, 7300: 7100} {
		p := pains(t, spot, noon, flat...)[0]
		near(t, fmt.Sprint("max pain at ", spot), p.MaxPain, want, 0)
		equal(t, "range", *p.Range, [2]compute.Level{6900, 7100})
	}
}
