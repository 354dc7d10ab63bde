package compute_test

import (
	"encoding/json"
	"fmt"

	"math"
	"os"

	"testing"

	"strikecache/compute"
)

// volatilityOf returns the volatility of a chain without history.
func volatilityOf(chain *compute.Chain, rate float64) compute.VolatilityResult {
	return compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: rate}).Volatility.With(nil, cal)
}

// figures are the figures of an answer that are known, by name; those of an expiration have its date and settlement before.
func figures(t testing.TB, v *compute.Volatility) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	put := func(name string, x *compute.Ratio) {
		if x != nil {
			all[name] = float64(*x)
		}
	}
	put("atm_30d", v.ATM30)
	put("model_free_30d", v.ModelFree30)
	put("risk_reversal_25_30d", v.RiskReversal30)
	put("term_slope", v.TermSlope)
	for _, e := range v.Expirations {
		at := fmt.Sprintf("%s %s ", e.Expiration, e.Settlement)
		put(at+"atm_volatility", e.ATM)
		put(at+"risk_reversal_25", e.RiskReversal25)
		put(at+"risk_reversal_10", e.RiskReversal10)
		put(at+"butterfly_25", e.Butterfly25)
		put(at+"butterfly_10", e.Butterfly10)
		put(at+"model_free_volatility", e.ModelFree)
		put(at+"expected_move", (*compute.Ratio)(e.ExpectedMove))
		put(at+"atm_straddle", (*compute.Ratio)(e.Straddle))
		all[at+"forward"] = float64(e.Forward)
	}
	return all
}

// vectors returns the chain of testdata/volatility_vectors.json, which testdata/volatility_vectors.py made with mpmath 1.3.0 and 30 digits,
// and the figures of it.
func vectors(t *testing.T) (rows []row, want map[string]float64) {
	text, err := os.ReadFile("testdata/volatility_vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Underlying  map[string]string
		Expirations []map[string]string
		Rows        [][3]any
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	want = map[string]float64{}
	for name, text := range file.Underlying {
		want[name] = number(t, text)
	}
	dates := []string{"2026-08-12 pm ", "2026-09-04 pm ", "2026-09-09 pm ", "2026-09-11 pm ", "2026-10-16 am "}
	for i, e := range file.Expirations {
		for name, text := range e {
			want[dates[i]+name] = number(t, text)
		}
	}
	for i, r := range file.Rows {
		q := quoted(r[1].(float64), r[2].(float64), float64(i%7))
		q.Volume = float64(i % 5)
		rows = append(rows, row{r[0].(string), q})
	}
	return rows, want
}

const vectorTime = "2026-08-11T16:00:00Z"

// Every figure has 10 digits: of the smile, the formula of the VIX and 30 days, from quotes some of which are locked or have no bid.
func TestVolatilityOfManyDigits(t *testing.T) {
	rows, want := vectors(t)
	v := volatilityOf(build(t, index(7000, vectorTime), rows...), 0.04)
	got := figures(t, &v.Data)
	equal(t, "figures", len(got), 4+5*9)
	equal(t, "wanted", len(want), len(got))
	for name, x := range want {
		nearly(t, name, got[name], x, 1e-9*math.Max(1, math.Abs(x)))
	}
	equal(t, "unknown", len(v.Quality.Unknown), 5) // what rests on history
	equal(t, "dates", v.Quality.Expirations, compute.VolatilityDates{Listed: 5, Used: 5})
	var openInterest, volume [2]float64
	for _, r := range rows {
		right := map[byte]int{'C': 0, 'P': 1}[r.symbol[len(r.symbol)-9]]
		openInterest[right] += r.OpenInterest
		volume[right] += r.Volume
	}
	near(t, "put/call", v.Data.PutCallOpenInterest, openInterest[1]/openInterest[0], 1e-12)
	near(t, "put/call by volume", v.Data.PutCallVolume, volume[1]/volume[0], 1e-12)
}

// With all expirations, and with those of the VIX, the recorded chain has the figures on which an independent program agreed. Every date
// but the last ones has every figure.
func TestRecordedVolatility(t *testing.T) {
	chain := recordedChain(t, spxChain)
	v := volatilityOf(chain, 0.04)
	near(t, "model_free_30d", v.Data.ModelFree30, 15.28, 0.005)
	all := *chain
	all.Symbol = "XSP" // of which every expiration counts; its root is not that of the contracts, so they are given as they are
	fmt.Println()      // replaced below
	near(t, "atm_30d", v.Data.ATM30, 12.2554, 5e-5)
	near(t, "risk_reversal_25_30d", v.Data.RiskReversal30, -3.1616, 5e-5)
	near(t, "term_slope", v.Data.TermSlope, 1.9637, 5e-5)
	equal(t, "dates", v.Quality.Expirations, compute.VolatilityDates{Listed: 59, Used: 59})
	for _, e := range v.Data.Expirations {
		for name, reason := range e.Unknown {
			known := map[string]string{"2026-09-17 put_call_open_interest": "no_calls", "2030-12-20 risk_reversal_10": "not_bracketed", "2030-12-20 butterfly_10": "not_bracketed"}
			equal(t, e.Expiration.String()+" "+name, reason, known[e.Expiration.String()+" "+name])
		}
		if e.ATM != nil && e.Straddle != nil {
			nearly(t, e.Expiration.String()+" straddle", float64(*e.Straddle / *e.ExpectedMove), 0.798, 0.012) // 2/√2π
		}
	}
}
