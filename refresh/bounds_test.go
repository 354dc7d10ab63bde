package refresh

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

// Numbers that no market has count as absent and are counted. A document without a usable price, or with another symbol
// than its name, is refused.
func TestBoundsOfQuotesAndHistories(t *testing.T) {
	quote := func(symbol, current, closed, percent string) []byte {
		return fmt.Appendf(nil, `{"timestamp":"2026-11-20 16:00:00","data":{"symbol":%q,"current_price":%s,"close":%s,"price_change_percent":%s,`+
			`"last_trade_time":"2026-11-20T10:45:00"},"symbol":"x"}`, symbol, current, closed, percent)
	}
	absurd := strings.Repeat("9", 301)
	for _, c := range []struct {
		name          string
		body          []byte
		price, change float64 // NaN: absent
		bad           int
		reason        upstream.Reason
	}{
		{"XLK", quote("XLK", "187.5", "187", "-0.5"), 187.5, -0.5, 0, ""},
		{"XLK", quote("XLK", "0", "187", "-0.5"), 187, -0.5, 0, ""}, // 0 stands for no price
		{"XLK", quote("XLK", absurd, "187", "-0.5"), 187, -0.5, 1, ""},
		{"XLK", quote("XLK", "187.5", "1e7", "1e4"), 187.5, math.NaN(), 2, ""},
		{"XLK", quote("XLK", "-187.5", "1e7", "1"), 0, 0, 0, upstream.Empty},
		{"XLK", quote("XLF", "187.5", "187", "1"), 0, 0, 0, upstream.Malformed},
		{"_VIX", quote("^VIX", "18", "17", "1"), 18, 1, 0, ""},
		{"_VIX", quote("^VIX", "1000.5", "17", "1"), 17, 1, 1, ""},
		{"_VIX", quote("^VIX", absurd, "0.5", "1"), 0, 0, 0, upstream.Empty},
		{"_VIX3M", quote("^VIX3M", "1e5", "20", "1"), 20, 1, 1, ""},
	} {
		d, err := newDocument(&upstream.Document{Name: upstream.Quotes(c.name), Body: c.body})
		if c.reason != "" || err != nil {
			if err == nil || reasonOf(err) != c.reason {
				t.Errorf("%.200s: %v, want %q", c.body, err, c.reason)
			}
			continue
		}
		if same := d.quote.PriceChangePercent == c.change || math.IsNaN(d.quote.PriceChangePercent) && math.IsNaN(c.change); d.quote.Spot != c.price || !same || d.bad != c.bad {
			t.Errorf("%.200s: price %v, change %v, %d bad", c.body, d.quote.Spot, d.quote.PriceChangePercent, d.bad)
		}
	}
	history := []byte(`{"data":[{"date":"2000-01-03","close":0},{"date":"2026-11-17","close":17.5},{"date":"2026-11-18","close":"5000.0"},{"date":"2026-11-19","close":1e300}]}`)
	for name, want := range map[string][2]int{"XLK": {2, 1}, "_VIX": {1, 2}} {
		d, err := newDocument(&upstream.Document{Name: upstream.History(name), Body: history})
		if err != nil || len(d.closes) != want[0] || d.bad != want[1] {
			t.Errorf("history of %s: %+v, %v", name, d, err)
		}
	}
	fund := compute.Fund{
		Quote:  compute.UnderlyingQuote{AsOf: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)},
		Closes: []compute.Close{{Date: compute.NewDate(2026, 11, 19), Price: 1}},
	}
	q := qualityOf("XLK", fund, compute.NewDate(2026, 11, 20), compute.NewCalendar(nil, nil), 3)
	if q.Note == nil || !strings.HasPrefix(*q.Note, "3 numbers count as absent") {
		t.Errorf("note %v", q.Note)
	}
}

// The quality of each answer counts the numbers of its documents that count as absent because no market has them.
func TestBadNumbersAreCountedInTheQuality(t *testing.T) {
	chain := func(current, change, bid, delta string) map[upstream.Name]string {
		return map[upstream.Name]string{chainOf("SPX"): fmt.Sprintf(`{"timestamp":"2026-11-20 16:00:00","data":{"options":[`+
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
		in := &inputs{calendar: compute.NewCalendar(nil, nil)}
		in.parameters.RiskFreeRate, in.parameters.StaleSessionsTo = &rate, new(compute.NewDate(2026, 11, 20))
		for _, name := range []upstream.Name{chainOf("SPX"), upstream.Settlement("2026-11-19"), upstream.Quotes(vixIndex), upstream.History(vix3mIndex)} {
			if body := c.documents[name]; body != "" {
				d, err := newDocument(&upstream.Document{Name: name, Body: []byte(body), FileDate: "2026-11-19"})
				must(t, err)
				in.documents = append(in.documents, d)
			}
		}
		must(t, in.addState(historyState, []vixSummary{}))
		a, err := productOf(c.product).compute(in)
		if err != nil {
			t.Fatalf("%s: %v", c.product, err)
		}
		quality, err := json.Marshal(a.quality)
		if err != nil || strings.Contains(string(quality), "bad_numbers") != (c.bad != "") || !strings.Contains(string(quality), c.bad) {
			t.Errorf("%s of %v: quality %s, %v; want %q", c.product, c.documents, quality, err, c.bad)
		}
	}
}
