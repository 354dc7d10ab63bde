package compute_test

import (
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
