package compute_test

import (
	"fmt"
	"math"
	"testing"

	"strikecache/compute"
)

// pair is a call and a put of one strike whose mids differ by difference, quoted 2 wide.
func pair(series string, strike, difference float64) []row {
	call, put := 50+math.Max(difference, 0), 50+math.Max(-difference, 0)
	return []row{
		{symbolOf(series+"C", strike), quoted(call-1, call+1, 0)},
		{symbolOf(series+"P", strike), quoted(put-1, put+1, 0)},
	}
}

// parity returns a series whose three strikes all imply the forward f: C - P = e^{-rT}(F - K).
func parity(series string, f, rate, hours float64) []row {
	var rows []row
	for _, k := range []float64{6900, 7000, 7100} {
		rows = append(rows, pair(series, k, math.Exp(-rate*years(hours))*(f-k))...)
	}
	return rows
}

// forwards returns the forward and its source by settlement and expiration. Each date has one row per settlement.
func forwards(t *testing.T, r compute.GammaResult) map[string]compute.ExpirationGamma {
	t.Helper()
	out := map[string]compute.ExpirationGamma{}
	for _, e := range r.Data.ByExpiration {
		out[e.Settlement.String()+" "+e.Expiration.String()] = e
	}
	return out
}

func wantForward(t *testing.T, r compute.GammaResult, series string, f float64, source string) {
	t.Helper()
	got, ok := forwards(t, r)[series]
	if !ok {
		t.Errorf("%s is not listed", series)
		return
	}
	nearly(t, series, got.Forward, f, 1e-7)
	if string(got.ForwardSource) != source {
		t.Errorf("%s: source %s, want %s", series, got.ForwardSource, source)
	}
}

// The forward is the median of the votes K + C - P of METHODS.md §1.1 at r = 0.
func TestParityVotes(t *testing.T) {
	type vote struct{ strike, difference float64 }
	nine := []vote{{7000, 1}, {6975, 27}, {7025, -22}, {6950, 54}, {7050, -45}, {6925, 81}, {7075, -68}}
	for _, c := range []struct {
		name  string
		votes []vote
		want  float64
	}{
		// 7001 to 7007: the two farther strikes, which would vote 7900 and 8000, have no vote.
		{"seven nearest", append([]vote{{6900, 1000}, {7100, 900}}, nine...), 7004},
		{"six: the mean of 7003 and 7004", nine[:6], 7003.5},
		{"five", nine[:5], 7003},
		{"four", nine[:4], 7002.5},
		{"three", nine[:3], 7002},
		// Two strikes tie for the seventh vote. The lower one, 6918, votes 7000. The higher one would vote 7008 and make
		// the median 7001.
		{"tie", []vote{{7000, 1}, {6990, 12}, {7010, -7}, {6980, 20}, {7020, -20}, {6970, 30}, {6918, 82}, {7090, -82}}, 7000},
		{"outlier", []vote{{7000, 5}, {6950, 55}, {7050, -2000}}, 7005},
	} {
		var rows []row
		for _, v := range c.votes {
			rows = append(rows, pair("SPXW260821", v.strike, v.difference)...)
		}
		r := exposure(t, index(7000, noon), rows...)
		wantForward(t, r, "pm 2026-08-21", c.want, "parity")
	}
}

// Two differences that are equal as decimals tie, whatever their last bits as float64s: as float64s, 0.3 - 0.1 is more than
// 0.7 - 0.5. The seventh vote is tied between 6999.8, which votes 7000, and 7000.6, which votes 7000.4; the other six vote
// 7000 thrice, 7000.1 and 7000.2 twice.
func TestParityTiesOnPaper(t *testing.T) {
	var rows []row
	for _, v := range [][2]float64{{6999.99, 0.01}, {7000.01, -0.01}, {6999.95, 0.05}, {7000.05, 0.05}, {7000.06, 0.14}, {7000.07, 0.13}} {
		rows = append(rows, pair("SPXW260821", v[0], v[1])...)
	}
	rows = append(rows,
		row{"SPXW260821C06999800", quoted(0.3, 0.3, 0)}, row{"SPXW260821P06999800", quoted(0.1, 0.1, 0)},
		row{"SPXW260821C07000600", quoted(0.5, 0.5, 0)}, row{"SPXW260821P07000600", quoted(0.7, 0.7, 0)})
	wantForward(t, exposure(t, index(7000, noon), rows...), "pm 2026-08-21", 7000, "parity")
}

// Quotes that imply a negative forward are ignored.
func TestAbsurdParity(t *testing.T) {
	var rows []row
	for _, k := range []float64{6900, 7000, 7100} {
		rows = append(rows, pair("SPXW260821", k, -8000)...)
	}
	wantForward(t, exposure(t, index(7000, noon), append(rows, row{"SPXW260821C07200000", published(0.2, 5)})...), "pm 2026-08-21", 7000, "none")
}

// T in hours from noon of 2026-08-11 in New York: SPX settles at 09:30, SPXW at 16:00; 2026-12-18 is in winter.
const (
	hoursWeek = 3*24 + 4     // SPXW 2026-08-14
	hoursAM   = 10*24 - 2.5  // SPX 2026-08-21
	hoursPM   = 10*24 + 4    // SPXW 2026-08-21
	hoursSep  = 38*24 - 2.5  // SPX 2026-09-18
	hoursOct  = 66*24 + 4    // SPXW 2026-10-16
	hoursDec  = 129*24 + 5.0 // SPXW 2026-12-18
)

func TestForwardSources(t *testing.T) {
	const rate = 0.04
	var rows []row
	rows = append(rows, parity("SPXW260821", 7010, rate, hoursPM)...)
	rows = append(rows, parity("SPX260918", 7035, rate, hoursSep)...)
	for _, lone := range []string{"SPXW260814C07000000", "SPX260821C07000000", "SPXW261016C07000000", "SPXW261218C07000000",
		"SPXW260918P07000000", "SPXW260901P07000000"} {
		rows = append(rows, row{lone, published(0.15, 10)})
	}
	r := compute.GammaExposure(compute.GammaInput{Chain: build(t, index(7000, noon), rows...), Calendar: cal, RiskFreeRate: rate})
	near, far := math.Log(7010.0/7000), math.Log(7035.0/7000)
	wantForward(t, r, "pm 2026-08-21", 7010, "parity")
	wantForward(t, r, "am 2026-09-18", 7035, "parity")
	wantForward(t, r, "am 2026-08-21", 7010, "other_settlement")
	wantForward(t, r, "pm 2026-09-18", 7035, "other_settlement")
	wantForward(t, r, "pm 2026-08-14", 7000*math.Exp(near*hoursWeek/hoursPM), "interpolated") // from 0 at T = 0
	const hoursTuesday = 21*24 + 4.0                                                          // SPXW 2026-09-01, between both roots
	w := (hoursTuesday - hoursPM) / (hoursSep - hoursPM)
	wantForward(t, r, "pm 2026-09-01", 7000*math.Exp(near+w*(far-near)), "interpolated")
	wantForward(t, r, "pm 2026-10-16", 7000*math.Exp(far*hoursOct/hoursSep), "extrapolated")
	wantForward(t, r, "pm 2026-12-18", 7000*math.Exp(far*hoursDec/hoursSep), "extrapolated")
	equal(t, "counts", fmt.Sprint(r.Quality.Forwards),
		"map[extrapolated:2 interpolated:2 none:0 other_settlement:2 parity:2]")
}

// Two strikes are too few for a parity forward. When no series has one, F = S.
func TestNoForward(t *testing.T) {
	rows := append(pair("SPXW260821", 7000, 1), pair("SPXW260821", 6975, 27)...)
	r := exposure(t, index(7000, noon), append(rows, row{"SPX260821C07000000", published(0.15, 10)})...)
	wantForward(t, r, "pm 2026-08-21", 7000, "none")
	wantForward(t, r, "am 2026-08-21", 7000, "none")
	equal(t, "counts", fmt.Sprint(r.Quality.Forwards), "map[extrapolated:0 interpolated:0 none:2 other_settlement:0 parity:0]")
}
