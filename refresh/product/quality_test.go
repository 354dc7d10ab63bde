package product

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// The quality of each answer counts the numbers of its documents that count as absent because no market has them.
func TestBadNumbersAreCountedInTheQuality(t *testing.T) {
	chain := func(current, change, bid, delta string) map[upstream.Name]string {
		return map[upstream.Name]string{feed.ChainOf("SPX"): fmt.Sprintf(`{"timestamp":"2026-11-20 16:00:00","data":{"options":[`+
			`{"option":"SPX261218C07000000","bid":%s,"ask":12.5,"iv":0.2,"open_interest":100,"volume":5000,"delta":%s,"gamma":0.001,"last_trade_price":12,"last_trade_time":"2026-11-20T10:40:00"}],`+
			`"symbol":"^SPX","current_price":%s,"close":7000,"price_change_percent":%s,"last_trade_time":"2026-11-20T10:45:00"}}`, bid, delta, current, change)}
	}
	curve := func(vix, close string) map[upstream.Name]string {
		return map[upstream.Name]string{
			upstream.Settlement("2026-11-19"): "Product,Symbol,Expiration Date,Price\nVX,VX/Z6,2026-12-16,18.5\n",
			upstream.Quotes(vixIndex):         fmt.Sprintf(`{"timestamp":"2026-11-19 22:00:00","data":{"symbol":"^VIX","current_price":%s,"close":17,"last_trade_time":"2026-11-19T16:15:00"}}`, vix),
			upstream.History(vix3mIndex):      fmt.Sprintf(`{"data":[{"date":"2026-11-18","close":%s},{"date":"2026-11-19","close":19}]}`, close),
		}
	}
	for _, c := range []struct {
		product   string
		documents map[upstream.Name]string
		bad       string // in the JSON of the quality
	}{
		{GammaResource, chain("7001", "0.5", "12", "0.5"), ""},
		{GammaResource, chain("7e7", "0.5", "12", "0.5"), `"bad_numbers":1`},
		{GammaResource, chain("0", "0", "0", "null"), ""}, // absent, and not bad
		{GammaResource, chain("1e999", "-101", "1e10", "-1e-9"), `"bad_numbers":4`},
		{GammaResource, chain("7001", "0.5", "-1", "5e8"), `"bad_numbers":2`},
		{PainResource, chain("7001", "0.5", "12", "0.5"), ""},
		{PainResource, chain("-7001", "0.5", "12", "0.5"), `"bad_numbers":1`},
		{FlowResource, chain("7001", "0.5", "12", "0.5"), ""},
		{FlowResource, chain("7001", "5000", "1e10", "0.5"), `"bad_numbers":2`},
		{VIXResource, curve("18", "19"), ""},
		{VIXResource, curve("1800", "0.1"), `"bad_numbers":2`},
	} {
		rate := 0.04
		in := &Inputs{calendar: calendar}
		in.parameters.RiskFreeRate, in.parameters.StaleSessionsTo = &rate, new(compute.NewDate(2026, 11, 20))
		for _, name := range []upstream.Name{feed.ChainOf("SPX"), upstream.Settlement("2026-11-19"), upstream.Quotes(vixIndex), upstream.History(vix3mIndex)} {
			if body := c.documents[name]; body != "" {
				d, err := feed.New(&upstream.Document{Name: name, Body: []byte(body), FileDate: "2026-11-19"})
				must(t, err)
				in.Documents = append(in.Documents, d)
			}
		}
		must(t, in.addState(historyState, []vixSummary{}))
		a, err := Named(c.product).Compute(in)
		if err != nil {
			t.Fatalf("%s: %v", c.product, err)
		}
		quality, err := json.Marshal(a.quality)
		if err != nil || strings.Contains(string(quality), "bad_numbers") != (c.bad != "") || !strings.Contains(string(quality), c.bad) {
			t.Errorf("%s of %v: quality %s, %v; want %q", c.product, c.documents, quality, err, c.bad)
		}
	}
	fund := compute.Fund{
		Quote:  compute.UnderlyingQuote{AsOf: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)},
		Closes: []compute.Close{{Date: compute.NewDate(2026, 11, 19), Price: 1}},
	}
	q := qualityOf("XLK", fund, compute.NewDate(2026, 11, 20), calendar, 3)
	if q.Note == nil || !strings.HasPrefix(*q.Note, "3 numbers count as absent") {
		t.Errorf("note %v", q.Note)
	}
}

// A figure that is not finite is null in data, row and quality, and the quality names it once.
func TestNotFiniteIsNullWithAReason(t *testing.T) {
	bad := compute.Dollars(math.NaN())
	g := compute.Gamma{Net: &bad, ByExpiration: []compute.ExpirationGamma{{Exposures: compute.Exposures{Delta: new(compute.Dollars(math.Inf(1)))}}}, ByStrike: []compute.StrikeGamma{{Call: &bad}, {Call: &bad}}}
	a := &Answer{Product: Named(GammaResource), Inputs: &Inputs{}, variants: only(&g), quality: compute.GammaQuality{SpotGap: new(compute.Ratio(math.Inf(-1)))}}
	a.row, a.summarise = []any{g.Net}, func(row seriesRow) any { return row }
	must(t, a.encode())
	for text, want := range map[string]string{
		string(a.Encoded[a.variants[""]]): `"net_gex_dollars":null,`, string(a.summary): `"row":[null,"gex/6"]`,
		string(a.QualityJSON): `{"not_finite":["by_expiration.delta_dollars","by_strike.call_gex_dollars","net_gex_dollars","spot_gap_pct"],"contracts":{`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in %.300s", want, text)
		}
	}
	g, a.quality = compute.Gamma{}, compute.GammaQuality{}
	if err := a.encode(); err != nil || strings.Contains(string(a.QualityJSON), "not_finite") {
		t.Errorf("finite: %v, %s", err, a.QualityJSON)
	}
}

// The reason of a percentile that is null is the history, or that today's value is unknown.
func TestUnknownVIX(t *testing.T) {
	known := new(compute.Ratio(1))
	c := compute.VIXCurve{ContangoM1M2: known}
	c.Percentiles.ContangoM1M2.Percentile = known
	why := unknownVIX(&c, compute.NewDate(2026, 11, 20))
	if why["percentiles"] != "" || !strings.Contains(why["vix"], "percentile") {
		t.Errorf("without a close of VIX: %v", why)
	}
	c.SpotBasis = known
	if why = unknownVIX(&c, compute.NewDate(2026, 11, 20)); why["percentiles"] == "" {
		t.Errorf("with a short history: %v", why)
	}
}
