package simulated

import (
	"testing"
	"time"

	"strikecache/compute"
)

// TestSpellings has values of the recorded chain of 2026-08-11.
func TestSpellings(t *testing.T) {
	for want, got := range map[string][]byte{
		"2960.0":            appendFixed(nil, 2960, 1),
		"0.05":              appendFixed(nil, 0.05, 2),
		"0.0":               appendFixed(nil, -0.00001, 4),
		"-0.0067":           appendFixed(nil, -0.0067, 4),
		"7553.55":           appendFixed(nil, 7553.55, 2),
		"-24.9":             appendFixed(nil, -24.9, 4),
		"7728.2002":         appendFixed(nil, 7728.2002, 4),
		"7548.34985351562":  appendSignificant(nil, middle(754040, 755630), 15),
		"7149.5":            appendSignificant(nil, middle(714000, 715900), 15),
		"0.025000000372529": appendSignificant(nil, middle(0, 5), 15),
		"242.0":             appendSignificant(nil, middle(24100, 24300), 15),
		"0.0665065":         appendSignificant(nil, 0.066506454, 6),
		"-99.8951":          appendSignificant(nil, -99.895104, 6),
		"100.0":             appendSignificant(nil, 100, 6),
		"-1.49012e-06":      appendSignificant(nil, -1.490116e-06, 6),
	} {
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Whenever a trade is counted, its time has come; the next one is still to come; and all are done at the end.
func TestTradesHappenInOrder(t *testing.T) {
	m := New(Config{Seed: 1, Calendar: compute.NewCalendar(nil, nil)})
	f, _ := m.frame(time.Date(2026, time.August, 11, 16, 0, 0, 0, time.UTC))
	table := m.table(m.bySymbol["TSLA"], &f)
	traded := 0
	for i := range table.series {
		s := &table.series[i]
		for j, strike := range s.strikes {
			c, key := &table.contracts[s.first+2*j], s.contractKey(j, 0)
			if c.trades == 0 {
				continue
			}
			traded++
			length := table.tradingTime(s)
			if n := table.tradesBy(s, c, key, length); n != c.trades {
				t.Fatalf("%d of %d trades at the end", n, c.trades)
			}
			before := uint32(0)
			for passed := time.Duration(0); passed < length; passed += length / 50 {
				n := table.tradesBy(s, c, key, passed)
				if n < before {
					t.Fatalf("trades fall from %d to %d", before, n)
				}
				if n > 0 {
					if after, _ := table.trade(s, c, key, n, float64(strike)/1000, 0); after > passed {
						t.Fatalf("trade %d is counted after %v and happens after %v", n, passed, after)
					}
				}
				before = n
			}
		}
	}
	if traded < 100 {
		t.Errorf("%d contracts trade", traded)
	}
}

func TestNoise(t *testing.T) {
	var sum, squares, units float64
	const n = 20_000
	for i := range uint64(n) {
		k := noise(1).child(i)
		x := k.normal()
		sum, squares, units = sum+x, squares+x*x, units+k.child(0).unit()
	}
	if mean, variance := sum/n, squares/n; mean*mean > 0.001 || variance < 0.95 || variance > 1.05 || units/n < 0.49 || units/n > 0.51 {
		t.Errorf("mean %.3f, variance %.3f, mean of units %.3f", mean, variance, units/n)
	}
	middle := 0.0
	for i := range uint64(400) {
		dst := noise(2).child(i).bridge()
		if dst[0] != 0 || dst[knots] != 0 {
			t.Fatal("a bridge does not end at 0")
		}
		middle += dst[knots/2] * dst[knots/2] / 400
	}
	if middle < 0.2 || middle > 0.3 { // u(1-u)
		t.Errorf("variance of a bridge in its middle is %.3f, want 0.25", middle)
	}
}
