package compute_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strikecache/compute"
)

// volatilityOf returns the volatility of a chain without history.
func volatilityOf(chain *compute.Chain, rate float64) compute.VolatilityResult {
	return compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: rate}).Volatility.With(nil, cal)
}

// figures are the figures of an answer that are known and no ratio of positions, by name; those of an expiration have its date and settlement
// before.
func figures(v *compute.Volatility) map[string]float64 {
	all := map[string]float64{}
	put := func(at string, of any) {
		for f, x := range reflect.ValueOf(of).Fields() {
			name := f.Tag.Get("json")
			if x.Kind() == reflect.Pointer && !x.IsNil() && !strings.HasPrefix(name, "put_call") {
				all[at+name] = x.Elem().Float()
			}
		}
	}
	put("", *v)
	for _, e := range v.Expirations {
		at := fmt.Sprintf("%s %s ", e.Expiration, e.Settlement)
		put(at, e)
		all[at+"forward"] = float64(e.Forward)
	}
	return all
}

// vectors returns the chain of testdata/volatility_vectors.json, which testdata/volatility_vectors.py made with mpmath 1.3.0 and 30 digits,
// and the figures of it.
func vectors(t *testing.T) (rows []row, want map[string]float64) {
	var file struct {
		Underlying  map[string]json.Number
		Expirations []map[string]json.Number
		Rows        [][3]any
	}
	decodeFile(t, "volatility_vectors.json", &file)
	want = map[string]float64{}
	dates := []string{"", "2026-08-12 pm ", "2026-09-04 pm ", "2026-09-09 pm ", "2026-09-11 pm ", "2026-10-16 am "}
	for i, figures := range append([]map[string]json.Number{file.Underlying}, file.Expirations...) {
		for name, x := range figures {
			var err error
			want[dates[i]+name], err = x.Float64()
			must(t, err)
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
	r := compute.GammaExposure(compute.GammaInput{Chain: build(t, index(7000, vectorTime), rows...), Calendar: cal, RiskFreeRate: 0.04})
	v := r.Volatility.With(nil, cal)
	near(t, "expected_move_1d", r.Data.ExpectedMove, want["2026-08-12 pm expected_move"]/math.Sqrt(1+4/6.5), 1e-7) // from noon to the next close
	got := figures(&v.Data)
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
	all.Symbol = "XSP" // of which every expiration counts
	near(t, "model_free_30d of all dates", volatilityOf(&all, 0.04).Data.ModelFree30, 15.00, 0.005)
	near(t, "atm_30d", v.Data.ATM30, 12.2533, 5e-5)
	near(t, "risk_reversal_25_30d", v.Data.RiskReversal30, -3.1610, 5e-5)
	near(t, "term_slope", v.Data.TermSlope, 1.9653, 5e-5)
	equal(t, "dates", v.Quality.Expirations, compute.VolatilityDates{Listed: 59, Used: 59})
	for _, e := range v.Data.Expirations {
		for name, reason := range e.Unknown {
			if e.Expiration == day("2026-08-12") && (strings.HasPrefix(name, "risk_reversal_") || strings.HasPrefix(name, "butterfly_")) {
				equal(t, name+" of 23.6 hours", reason, "under_one_day")
				continue
			}
			known := map[string]string{"2026-09-17 put_call_open_interest": "no_calls", "2030-12-20 risk_reversal_10": "not_bracketed", "2030-12-20 butterfly_10": "not_bracketed",
				"2027-06-30 model_free_volatility": "quote_gap", "2030-12-20 model_free_volatility": "quote_gap"} // their strikes end where a put costs over 5 % of Q(K₀)
			equal(t, e.Expiration.String()+" "+name, reason, known[e.Expiration.String()+" "+name])
		}
		if e.ATM != nil && e.Straddle != nil {
			nearly(t, e.Expiration.String()+" straddle", float64(*e.Straddle / *e.ExpectedMove), 0.798, 0.012) // 2/√2π
		}
	}
}

// smileMarket is a chain of a year's smile with the quotes of a liquid market: two dates around 30 days, strikes 10 points apart to both ends, and
// no bid where a price is under 3 cents.
func smileMarket() (rows []row) {
	for _, series := range []string{"SPXW260904", "SPXW260911"} {
		t := term(series, at(vectorTime))
		f := 7000 * math.Exp(0.03*t)
		smile := func(k float64) float64 {
			x := math.Log(k/f) / math.Sqrt(t)
			return 0.13 - 0.12*x + 0.2*x*x
		}
		rows = append(rows, priced(series, vectorTime, f, 0.04, strikes(5800, 7800, 10), smile, func(_ float64, _ compute.Right, price float64) compute.Quote {
			half := math.Max(0.025, 0.004*price)
			return quoted(math.Max(0, math.Round(20*(price-half))/20), math.Round(20*(price+half)+0.5)/20, 0)
		})...)
	}
	return rows
}

// When a strike loses its bid, no figure moves by more than the quotes leave open: by more than its range between the sides of the quotes,
// which are calls at the bid or the ask with puts at the bid or the ask.
func TestVolatilityOfALostBid(t *testing.T) {
	t.Parallel()
	rows := smileMarket()
	compute := func(rows []row) map[string]float64 {
		v := volatilityOf(build(t, index(7000, vectorTime), rows...), 0.04)
		return figures(&v.Data)
	}
	base := compute(rows)
	equal(t, "figures", len(base), 3+2*9)
	width := map[string]float64{}
	for corner := range 4 {
		moved := slices.Clone(rows)
		for i := range moved {
			q, call := &moved[i].Quote, moved[i].symbol[len(moved[i].symbol)-9] == 'C'
			if q.Bid > 0 && (corner&1 == 0) == call && corner < 2 || q.Bid > 0 && corner == 2 {
				q.Ask = q.Bid
			} else if q.Bid > 0 {
				q.Bid = q.Ask
			}
		}
		for name, x := range compute(moved) {
			width[name] = math.Max(width[name], math.Abs(x-base[name]))
		}
	}
	lost := 0
	for i := range rows {
		if rows[i].Bid == 0 || i%4 > 1 && math.Abs(float64(i%402-240)) > 60 { // far from the money every second strike
			continue
		}
		without := slices.Clone(rows)
		without[i].Bid = 0
		lost++
		got := compute(without)
		for name, x := range base {
			y, known := got[name]
			if !known {
				equal(t, rows[i].symbol+" makes null", name[14:], "atm_straddle")
			} else if !(math.Abs(y-x) <= width[name]) {
				t.Errorf("%s without a bid: %s moves from %v to %v, the quotes by %v", rows[i].symbol, name, x, y, width[name])
			}
		}
	}
	if lost < 200 {
		t.Errorf("only %d quotes", lost)
	}
}

// single returns the only row of a chain of SPXW260904, whose strikes around a forward of 7000 have the given quotes of call and put.
func single(t *testing.T, strikes []float64, quotes func(k float64) (call, put compute.Quote)) compute.ExpirationVolatility {
	t.Helper()
	var rows []row
	for _, k := range strikes {
		call, put := quotes(k)
		rows = append(rows, row{symbolOf("SPXW260904C", k), call}, row{symbolOf("SPXW260904P", k), put})
	}
	v := volatilityOf(build(t, index(7000, vectorTime), rows...), 0)
	equal(t, "rows", len(v.Data.Expirations), 1)
	return v.Data.Expirations[0]
}

// fair returns quotes around the price at a volatility of 16 %, with half a spread that is a part of the price.
func fair(spread float64) func(k float64) (call, put compute.Quote) {
	return func(k float64) (call, put compute.Quote) {
		v := 0.16 * math.Sqrt(years(24*24+4))
		c, p := compute.BlackValue(compute.Call, 7000, k, v), compute.BlackValue(compute.Put, 7000, k, v)
		call, put = quoted(c*(1-spread), c*(1+spread), 10), quoted(p*(1-spread), p*(1+spread), 20)
		call.Volume, put.Volume = 4, 3
		return call, put
	}
}

// A risk reversal and a butterfly need a day to the settlement.
func TestWingsOfTheLastDay(t *testing.T) {
	for asOf, want := range map[string]int{"2026-08-11T20:00:00Z": 0, "2026-08-11T20:00:01Z": 4} {
		v := volatilityOf(build(t, index(7000, asOf), made(7000, asOf, "260812")...), 0)
		unknown := 0
		for name, reason := range v.Data.Expirations[0].Unknown {
			if name != "put_call_volume" {
				equal(t, name, reason, "under_one_day")
				unknown++
			}
		}
		equal(t, asOf, unknown, want)
	}
}

// What quotes do not determine is null, and the reason says why: after noise, too, there is no number that no market means.
func TestVolatilityOfNoise(t *testing.T) {
	smile := []string{"atm_volatility", "risk_reversal_25", "risk_reversal_10", "butterfly_25", "butterfly_10", "expected_move", "model_free_volatility"}
	lone := func(k float64, of func(call, put *compute.Quote)) func(float64) (compute.Quote, compute.Quote) {
		return func(strike float64) (compute.Quote, compute.Quote) {
			call, put := fair(0.01)(strike)
			if strike == k {
				of(&call, &put)
			}
			return call, put
		}
	}
	all := strikes(6000, 8000, 50)
	for name, c := range map[string]struct {
		strikes []float64
		quotes  func(k float64) (call, put compute.Quote)
		fields  []string
		reason  string // of the model-free volatility also quote_gap: it ends while options are dear
	}{
		"fair":   {all, fair(0.01), nil, ""},
		"locked": {all, fair(0), nil, ""},
		"locked at one price": {all, func(k float64) (call, put compute.Quote) {
			call, put = fair(0)(k)
			call.Bid, call.Ask, put.Bid, put.Ask = 5, 5, 5, 5
			return call, put
		}, smile, "flat_prices"},
		"three strikes": {strikes(6950, 7050, 50), fair(0.01), smile, "few_strikes"},
		"one-cent bids": {strikes(6500, 7500, 50), func(k float64) (call, put compute.Quote) {
			call, put = fair(0.01)(k)
			if k > 7050 {
				call.Bid = 0.01
			} else if k < 6950 {
				put.Bid = 0.01
			}
			return call, put
		}, smile, "few_strikes"},
		"asks of exactly three bids": {strikes(6900, 7100, 50), func(k float64) (call, put compute.Quote) {
			call, put = fair(0.01)(k)
			for _, q := range []*compute.Quote{&call, &put} {
				nickels := math.Round((q.Bid + q.Ask) / 4 / 0.05)
				q.Bid, q.Ask = nickels*5/100, nickels*15/100
			}
			return call, put
		}, append(smile[1:5:5], smile[6]), "not_bracketed"}, // and not few_strikes
		"far strikes":    {[]float64{5500, 6000, 6500, 7400, 8000, 8500}, fair(0.01), smile, "wide_gap"},
		"narrow strikes": {strikes(6900, 7100, 25), fair(0.01), append(smile[1:5:5], smile[6]), "not_bracketed"},
		"center lost":    {all, lone(7000, func(call, _ *compute.Quote) { call.Bid = 0 }), []string{"atm_straddle"}, "no_quote"},
		"two dear are lost": {all, func(k float64) (call, put compute.Quote) {
			call, put = fair(0.01)(k)
			if k == 7100 || k == 7150 {
				call.Bid = 0
			}
			return call, put
		}, smile[6:], "quote_gap"},
		"wild far quote": {all, lone(8000, func(call, _ *compute.Quote) { call.Bid, call.Ask = 0.01, 90 }), nil, ""},
	} {
		e := single(t, c.strikes, c.quotes)
		equal(t, name+": unknown fields", len(e.Unknown), len(c.fields))
		for _, field := range c.fields {
			if e.ModelFree == nil && e.ATM != nil && field == smile[6] {
				equal(t, name+": "+field, e.Unknown[field], "quote_gap")
				continue
			}
			equal(t, name+": "+field, e.Unknown[field], c.reason)
		}
		if e.Unknown["atm_volatility"] == "" {
			near(t, name, e.ATM, 16, 0.2)
		} else {
			isNull(t, name, e.ATM)
			isNull(t, name, e.RiskReversal10)
			isNull(t, name, e.ExpectedMove)
			isNull(t, name, e.ModelFree)
		}
		if name == "fair" || name == "locked" {
			near(t, name, e.RiskReversal25, 0, 0.01)
			near(t, name, e.Butterfly10, 0, 0.01)
			near(t, name, e.ModelFree, 16, 0.05)
			near(t, name, e.PutCallOpenInterest, 2, 0)
		}
	}
}

// A row needs an hour and a parity forward, an expected move a spot that the quotes do not contradict, and a ratio calls.
func TestVolatilityWithoutARow(t *testing.T) {
	var rows []row
	add := func(series string, scale, openInterest float64, strikes ...float64) {
		for _, k := range strikes {
			call, put := fair(0.01)(k / scale)
			call.Bid, call.Ask, put.Bid, put.Ask = call.Bid*scale, call.Ask*scale, put.Bid*scale, put.Ask*scale
			call.OpenInterest = openInterest
			rows = append(rows, row{symbolOf(series+"C", k), call}, row{symbolOf(series+"P", k), put})
		}
	}
	near := strikes(6000, 8000, 50)
	add("SPXW260811", 1, 1, near...)
	add("SPXW260821", 1, 1, 6950, 7050)
	add("SPXW260904", 1, 0, near...)
	v := volatilityOf(build(t, index(7000, "2026-08-11T19:00:01Z"), rows...), 0)
	equal(t, "dates", v.Quality.Expirations, compute.VolatilityDates{Listed: 3, Used: 1, Near: 1, NoForward: 1})
	e := v.Data.Expirations[0]
	equal(t, "date", e.Expiration, day("2026-09-04"))
	isNull(t, "put/call", e.PutCallOpenInterest)
	equal(t, "reason", e.Unknown["put_call_open_interest"], "no_calls")
	for _, field := range []string{"atm_30d", "model_free_30d", "risk_reversal_25_30d", "term_slope"} {
		equal(t, field, v.Quality.Unknown[field], "no_expirations")
	}
	equal(t, "an hour", volatilityOf(build(t, index(7000, "2026-08-11T19:00:00Z"), rows...), 0).Quality.Expirations.Used, 2)

	rows = nil
	for _, series := range []string{"SPXW260813", "SPXW260814", "SPXW260818", "SPXW260821", "SPXW260828", "SPXW260904"} {
		add(series, 1.2, 1, strikes(7200, 9600, 60)...)
	}
	v = volatilityOf(build(t, index(7000, vectorTime), rows...), 0)
	e = v.Data.Expirations[5]
	equal(t, "contradiction", e.Unknown["expected_move"], "spot_mismatch")
	isNull(t, "move", e.ExpectedMove)
	if e.ATM == nil || e.ModelFree == nil {
		t.Error("the smile does not rest on the spot")
	}
}

// Of SPX, the 30 days of the formula rest on third Fridays AM and other Fridays PM, also where a third Friday is a holiday.
func TestVolatilityIndexDates(t *testing.T) {
	var rows []row
	for i, series := range []string{"SPXW260612", "SPXW260615", "SPXW260618", "SPX260618", "SPXW260626"} { // 2026-06-19 is Juneteenth
		rows = append(rows, priced(series, "2026-05-15T20:00:00Z", 7000, 0, strikes(5600, 8400, 50), always(0.14+0.02*float64(i)), func(_ float64, _ compute.Right, price float64) compute.Quote {
			return quoted(price*0.99, price*1.01, 1)
		})...)
	}
	figure := func(without string) *compute.Ratio {
		some := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return without != "" && r.symbol[:len(r.symbol)-9] == without })
		return volatilityOf(build(t, index(7000, "2026-05-15T20:00:00Z"), some...), 0).Data.ModelFree30
	}
	whole := figure("")
	for _, other := range []string{"SPXW260615", "SPXW260618", "SPXW260626"} {
		near(t, "without "+other, figure(other), float64(*whole), 0)
	}
	for _, taken := range []string{"SPXW260612", "SPX260618"} {
		if got := figure(taken); got != nil && *got == *whole {
			t.Errorf("%s is not taken", taken)
		}
	}
}

// The rank counts today among the last 252 sessions, a percentile counts equal values half, and both need 60. Realised volatility is that
// of the last closes, scaled to the sessions between them.
func TestVolatilityHistory(t *testing.T) {
	today := compute.VolatilityDay{Session: day("2026-08-11"), Close: new(100.0), ATM30: new(15.0)}
	result := compute.VolatilityResult{Today: today, Data: compute.Volatility{ATM30: (*compute.Ratio)(today.ATM30)}, Quality: compute.VolatilityQuality{Unknown: map[string]string{}}}
	history := func(n int, of func(i int, d *compute.VolatilityDay)) (days []compute.VolatilityDay) {
		for i := n; i > 0; i-- {
			d := compute.VolatilityDay{Session: cal.Back(today.Session, i), Close: new(100.0 + float64(i%2)), ATM30: new(10 + float64(i%11))}
			if of != nil {
				of(i, &d)
			}
			days = append(days, d)
		}
		return days
	}
	r := result.With(history(250, nil), cal)
	v := &r.Data
	near(t, "rank", v.Rank, 50, 1e-12)
	equal(t, "sessions", v.Sessions, 251)
	near(t, "percentile", v.Percentile, (114+24*0.5)/251*100, 1e-12) // 114 are below, 24 equal
	step := math.Log(1.01)
	near(t, "20 days", v.Realised20, 100*math.Sqrt(252)*step, 1e-9)
	near(t, "60 days", v.Realised60, 100*math.Sqrt(252)*step, 1e-9)
	near(t, "difference", v.ImpliedMinusRealised, 15-100*math.Sqrt(252)*step, 1e-9)
	equal(t, "unknown", len(r.Quality.Unknown), 0)

	why := func(name string, days []compute.VolatilityDay, field, reason string) *compute.Volatility {
		t.Helper()
		r := result.With(days, cal)
		equal(t, name, r.Quality.Unknown[field], reason)
		return &r.Data
	}
	isNull(t, "rank of 59", why("59 sessions", history(58, nil), "rank_1y", "few_sessions").Rank)
	near(t, "rank of 60", why("60 sessions", history(59, nil), "percentile_1y", "").Rank, 50, 1e-12)
	equal(t, "none", why("no session", nil, "realised_20d", "few_sessions").Sessions, 1)
	flat := why("flat", history(59, func(_ int, d *compute.VolatilityDay) { d.ATM30 = today.ATM30 }), "rank_1y", "no_range")
	near(t, "percentile of equal values", flat.Percentile, 50, 1e-12)
	isNull(t, "rank of equal values", flat.Rank)
	isNull(t, "20 closes", why("20 closes", history(19, nil), "implied_minus_realised", "few_sessions").Realised20)
	missing := func(n int) []compute.VolatilityDay {
		return history(60, func(i int, d *compute.VolatilityDay) {
			if i > 3 && i <= 3+n {
				d.Close = nil
			}
		})
	}
	near(t, "five closes are missing", why("a gap", missing(5), "realised_20d", "").Realised20, 100*math.Sqrt(252.0/25*19)*step, 1e-9) // the closes around the gap are equal
	why("a longer gap", missing(6), "realised_20d", "missing_sessions")
	why("a split", history(60, func(i int, d *compute.VolatilityDay) {
		if i > 10 {
			d.Close = new(400.0)
		}
	}), "realised_20d", "price_jump")
	unknown := compute.VolatilityResult{Today: compute.VolatilityDay{Session: today.Session}, Quality: result.Quality}.With(history(100, nil), cal)
	equal(t, "unknown today", unknown.Quality.Unknown["rank_1y"], "no_expirations")
	equal(t, "sessions without today", unknown.Data.Sessions, 100)
}

// A forward by parity is that of the quotes, to the last digit, whatever the spot is: at a forward that is a strike, the strike is at x = 0.
func TestForwardAtAStrike(t *testing.T) {
	var rows []row
	for _, q := range []struct{ k, call, put float64 }{{40, 0, 0.02}, {45, 5.25, 0.25}, {50, 1.5, 1.5}, {55, 0.25, 5.25}, {60, 0.05, 0}} {
		for i, mid := range []float64{q.call, q.put} {
			if mid > 0 {
				rows = append(rows, row{symbolOf("AAPL260821"+"CP"[i:i+1], q.k), quoted(mid*0.75, mid*1.25, 10)})
			}
		}
	}
	for cents := range 200 {
		u := index(float64(4900+cents)/100, "2026-08-11T16:00:00Z")
		u.Symbol = "AAPL"
		v := volatilityOf(build(t, u, rows...), 0)
		e := v.Data.Expirations[0]
		equal(t, fmt.Sprint("forward at ", u.Spot), float64(e.Forward), 50)
		equal(t, fmt.Sprint("unknown at ", u.Spot, " ", e.Unknown["atm_volatility"]), e.ATM == nil, false)
	}
}
