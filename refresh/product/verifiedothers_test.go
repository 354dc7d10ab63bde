package product

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/snapshots"
)

// quoteDocument is a quote as the upstream writes it; change is its change in points.
func quoteDocument(symbol string, price, change float64, asOf time.Time) []byte {
	return fmt.Appendf(nil, `{"timestamp":%q,"data":{"symbol":%q,"current_price":%v,"price_change":%v,"last_trade_time":%q}}`,
		asOf.Add(15*time.Minute).UTC().Format(time.DateTime), symbol, price, change, asOf.In(compute.NewYork).Format("2006-01-02T15:04:05"))
}

// historyDocument is a daily history of closes that end with the session before a date.
func historyDocument(symbol string, before compute.Date, closes []string) []byte {
	rows, d := make([]string, len(closes)), before
	for i := len(closes) - 1; i >= 0; i-- {
		d = calendar.Previous(d)
		rows[i] = fmt.Sprintf(`{"date":%q,"close":%s}`, d, closes[i])
	}
	return fmt.Appendf(nil, `{"symbol":%q,"data":[%s]}`, symbol, strings.Join(rows, ","))
}

// settlementFile draws a settlement file of a date, whose monthly prices often differ by exactly the threshold of the shape. Its first
// months may be missing.
func settlementFile(g *rand.Rand, date compute.Date) ([]byte, []float64) {
	b := bytes.NewBufferString("Product,Symbol,Expiration Date,Price\r\nVX,VX42/V6,2026-10-21,17.5\r\nIBHY,IBHY/V6,2026-10-01,140.1\r\n")
	y, m, _ := date.Midnight().Date()
	month, price := int(m)+g.IntN(2), 15+float64(g.IntN(200))/20
	var prices []float64
	for range 1 + g.IntN(9) {
		year := y + (month-1)/12
		code := (month - 1) % 12
		expiration := calendar.VIXExpiration(year, time.Month(code+1))
		if g.IntN(12) == 0 {
			expiration-- // the file's date counts
		}
		fmt.Fprintf(b, "VX,VX/%c%d,%s,%.4f\r\n", "FGHJKMNQUVXZ"[code], year%10, expiration, price)
		if expiration > date {
			prices = append(prices, price)
		}
		month++
		price = math.Round((price+[]float64{0, 0.05, 0.1, 0.1001, 0.4, -0.05, -0.1, -0.1001, -0.4, 2, -2}[g.IntN(11)])*1e4) / 1e4
	}
	return b.Bytes(), prices
}

// curve adds the answer of a made settlement file with closes, quotes and stored curves, and that of the series of curves.
func (a *answers) curve(g *rand.Rand, date compute.Date) *snapshots.Snapshot {
	a.Helper()
	file, prices := settlementFile(g, date)
	for len(prices) == 0 {
		file, prices = settlementFile(g, date)
	}
	inputs := []madeInput{{Name: "settlement/" + date.String() + ".csv", Body: file}}
	vix := []float64{14.99, 15, 19.9, 20, 25, 30}[g.IntN(6)]
	vix3m := vix / []float64{0.85, 0.8499, 0.917, 0.95, 1, 1.1}[g.IntN(6)]
	for i, symbol := range []string{"VIX", "VIX3M"} { // in a fixed order: each takes random numbers
		level := []float64{vix, vix3m}[i]
		switch g.IntN(3) {
		case 0:
			inputs = append(inputs, madeInput{Name: "charts/historical/_" + symbol + ".json",
				Body: historyDocument("_"+symbol, calendar.Next(date), []string{"0", `"17.5"`, fmt.Sprintf("%.4f", level)})})
		case 1:
			asOf := calendar.Close(date).Add([]time.Duration{14 * time.Minute, 14*time.Minute - time.Second, time.Hour}[g.IntN(3)])
			inputs = append(inputs, madeInput{Name: "quotes/_" + symbol + ".json", Body: quoteDocument("^"+symbol, level, g.Float64()-0.5, asOf)})
		}
	}
	slices.SortFunc(inputs[1:], func(a, b madeInput) int { return strings.Compare(a.Name, b.Name) })
	for _, symbol := range []string{"VIX1D", "VIX6M", "VXN", "RVX"} {
		if g.IntN(3) > 0 {
			inputs = append(inputs, madeInput{Name: "quotes/_" + symbol + ".json",
				Body: quoteDocument("^"+symbol, 20+80*g.Float64(), g.Float64()-0.5, calendar.Open(calendar.Next(date)).Add(time.Hour))})
		}
	}
	type stored struct {
		Date        compute.Date       `json:"date"`
		Contango    *float64           `json:"contango_m1_m2_pct"`
		Basis       *float64           `json:"spot_basis_pct"`
		Settlements map[string]float64 `json:"settlements"`
	}
	history := []stored{}
	for i := range g.IntN(3) * 15 {
		s := stored{Date: date - compute.Date(60-i)}
		if g.IntN(5) > 0 {
			s.Contango, s.Basis = new(math.Round(g.NormFloat64()*5e4)/1e4), new(math.Round(g.NormFloat64()*5e4)/1e4)
		}
		history = append(history, s)
	}
	if n := len(history); n > 0 {
		history[n-1].Settlements = map[string]float64{"VX/V6": 18.25, "VX/X6": 19.1234, "VX/Z6": 20}
	}
	body, err := json.Marshal(history)
	must(a, err)
	inputs = append(inputs, madeInput{Name: "state/vix-history", Body: body})
	s, row := a.sealRow(VIXResource, 0, inputs...)
	a.seal(VIXSeriesResource, 0, inputs[0], row)
	return s
}

// The curve of every made settlement file agrees, with its classes, percentiles and volatility indices.
func TestMadeCurvesAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, a := newGenerator(51, 52), newAnswers(t)
	for i := range 150 {
		g.figures("", dataOf[any](t, a.curve(g.Rand, calendar.OnOrBefore(compute.NewDate(2026, time.September, 1)+compute.Date(i/2)))))
	}
	a.verify()
	g.saw(t, "shape upward", "shape downward", "shape humped", "shape trough", "shape mixed", "shape flat", "regime_basis m1_m2", "regime_basis m2_m3",
		"regime steep_contango", "regime contango", "regime flat", "regime backwardation", "regime steep_backwardation", "cash_regime deep_contango", "cash_regime contango",
		"cash_regime flattening", "cash_regime inverted", "vol_level low", "vol_level normal", "vol_level elevated", "vol_level stress", "final_settlement",
		"cm30_extrapolated", "spot_basis_pct.percentile", "curve.change")
}

// rotation adds the answer of made quotes and histories of funds. Some funds lack their quote, their history or a part of it.
func (a *answers) rotation(g *rand.Rand, asOf time.Time) *snapshots.Snapshot {
	a.Helper()
	var inputs []madeInput
	session := calendar.SessionDate(asOf)
	for i, symbol := range compute.FundSymbols() {
		if g.IntN(15) == 0 && i > 1 {
			continue
		}
		at, price := asOf, 40+100*g.Float64()
		if g.IntN(15) == 0 {
			at = calendar.Open(calendar.Previous(session)).Add(time.Hour)
		}
		change := []float64{0, 0.25, 0.25, -0.5, 3 * g.NormFloat64()}[g.IntN(5)]
		quote := quoteDocument(symbol, price, change, at)
		if g.IntN(12) == 0 {
			quote = bytes.Replace(quote, []byte(`"price_change":`), []byte(`"price_change_percent":1001,"not_there":`), 1)
		}
		inputs = append(inputs, madeInput{Name: "quotes/" + symbol + ".json", Body: quote})
		if g.IntN(12) == 0 && i > 1 {
			continue
		}
		price -= change
		closes := make([]string, []int{3, 40, 134, 135, 136, 200, 300, 300}[g.IntN(8)])
		split, factor := g.IntN(5*len(closes)), []float64{2, 0.1, 1.231, 1.45, 0.96, 0.94}[g.IntN(6)]
		for j := range closes { // the newest first
			if j == split {
				price *= factor
			}
			text := fmt.Sprintf("%.2f", price)
			price *= math.Exp(0.01 * g.NormFloat64())
			switch g.IntN(60) {
			case 0:
				text = "null"
			case 1:
				text = `"` + text + `"`
			case 2:
				text = `"n/a"`
			}
			closes[len(closes)-1-j] = text
		}
		rows := historyDocument(symbol, session, closes)
		if g.IntN(3) == 0 { // of the session that goes on, and of a Sunday
			rows = bytes.Replace(rows, []byte(`[`), fmt.Appendf(nil, `[{"date":%q,"close":99},{"date":"2026-02-08","close":99},`, session), 1)
		}
		inputs = append(inputs, madeInput{Name: "charts/historical/" + symbol + ".json", Body: rows})
	}
	return a.seal(SectorsResource, 0, inputs...)
}

// The rotation of every made set of funds agrees.
func TestMadeRotationsAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	g, a := newGenerator(53, 54), newAnswers(t)
	for i := range 40 {
		s := a.rotation(g.Rand, calendar.Open(calendar.OnOrBefore(compute.NewDate(2026, time.March, 31)+compute.Date(7*i))).Add(time.Hour))
		g.figures("", dataOf[any](t, s))
		g.note("jump", bytes.Contains(s.Meta.Quality, []byte("price_jump")))
	}
	a.verify()
	g.saw(t, "mixed_session", "1 missing", "no sectors.rrg", "rrg.quadrant leading", "rrg.quadrant weakening", "rrg.quadrant lagging", "rrg.quadrant improving",
		"no returns_pct.ytd", "no returns_pct.day", "tone risk_on", "tone risk_off", "tone mixed", "jump")
}

// The clocks of §0 agree where no answer shows them alone: the quote instant and the date of open interest around every boundary of a week
// with a holiday and an early close, of a week with two holidays, and of a change of the clock.
func TestClocksAreVerified(t *testing.T) {
	long(t)
	t.Parallel()
	var in, want bytes.Buffer
	for _, from := range []string{"2026-11-23T00:00:00Z", "2026-12-23T00:00:00Z", "2026-03-05T00:00:00Z", "2026-06-29T00:00:00Z", "2021-11-15T00:00:00Z", "2024-08-20T00:00:00Z", "2025-01-04T00:00:00Z", "2026-01-30T00:00:00Z"} {
		start, err := time.Parse(time.RFC3339, from)
		must(t, err)
		for minutes := 0; minutes < 11*24*60; minutes += 5 {
			for second := -1; second <= 1; second++ {
				captured := start.Add(time.Duration(minutes)*time.Minute + time.Duration(second)*time.Second)
				date, state := compute.OpenInterestDate(captured, calendar)
				fmt.Fprintf(&in, "%d", captured.Unix())
				fmt.Fprintf(&want, "%s %s", date, state)
				for _, symbol := range []string{"SPX", "RUT", "XLK", "AAPL", "IBIT"} { // NDX has the hours of a fund, XSP those of SPX
					for _, age := range []time.Duration{0, 10 * time.Minute, 3 * time.Hour} {
						u := compute.UnderlyingQuote{Symbol: symbol, Spot: 100, AsOf: captured.Add(-age), CapturedAt: captured}
						chain := &compute.Chain{UnderlyingQuote: u}
						fmt.Fprintf(&want, " %d", chain.QuoteInstant(calendar).Unix())
					}
				}
				in.WriteString("\n")
				want.WriteString("\n")
			}
		}
	}
	cmd := verifier(t, "-c", `
import sys, datetime as dt, verify as v
for line in sys.stdin:
    captured = dt.datetime.fromtimestamp(int(line), dt.timezone.utc)
    out = [str(x) for x in v.open_interest_date(captured)]
    for symbol in ("SPX", "RUT", "XLK", "AAPL", "IBIT"):
        for minutes in (0, 10, 180):
            out.append(str(int(v.quote_instant(symbol, captured - dt.timedelta(minutes=minutes), captured).timestamp())))
    print(*out)`)
	asked := strings.Split(in.String(), "\n")
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, wanted := strings.Split(string(out), "\n"), strings.Split(want.String(), "\n")
	if len(got) != len(wanted) {
		t.Fatalf("%d lines, want %d", len(got), len(wanted))
	}
	for i := range got {
		if got[i] != wanted[i] {
			t.Fatalf("%s: the second program has %s, want %s", asked[i], got[i], wanted[i])
		}
	}
}

// A row of a series says by which method it was made, and whether the shares were split since the session before, and when it was known. A row of an earlier
// method has null in the columns that were added since.
func TestSeriesMarkSplitsAndMethods(t *testing.T) {
	a := newAnswers(t)
	day := time.Date(2026, time.November, 20, 16, 0, 0, 0, time.UTC)
	before := quietMarket(t, "NVDA", "", "NVDA", day.AddDate(0, 0, -1), 1200)
	const earlier = `{"snapshot":"","row":["2026-11-18","2026-11-18",1,2,3,4,5,6,7,"positive","2026-11-17",8,"cboe","gex/6","2026-11-18T21:00:00Z"]}`
	for _, c := range []struct {
		now      synthetic
		previous string
		split    string
	}{
		{quietMarket(t, "NVDA", "", "NVDA", day, 1210), "previous/options/NVDA.json", "false"},
		{halved(t, quietMarket(t, "NVDA", "", "NVDA", day, 1210)), "previous/options/NVDA.json", "true"},
		{quietMarket(t, "NVDA", "", "NVDA", day, 1210), "", "null"},
	} {
		now := madeInput{Name: "options/NVDA.json", Body: c.now.body}
		inputs := []madeInput{now}
		if c.previous != "" {
			inputs = append(inputs, madeInput{Name: c.previous, Body: before.body})
		}
		_, rows := a.sealRow("gex/nvda", 0.04, inputs...)
		rows.Body = bytes.Replace(rows.Body, []byte("[{"), []byte("["+earlier+",{"), 1)
		data := a.seal("gex/nvda/series", 0.04, now, rows).Data()
		for _, want := range []string{`8,"cboe",null,"gex/6","2026-11-18T21:00:00Z"],["2026-11-20",`, fmt.Sprintf(`,"made",%s,"gex/9","2026-12-01T12:00:00Z"]]`, c.split)} {
			if !bytes.Contains(data, []byte(want)) {
				t.Errorf("split %s: want %s in %s", c.split, want, data)
			}
		}
	}
	a.verify()
}
