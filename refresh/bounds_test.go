package refresh

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

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
	_, err := newDocument(&upstream.Document{Name: upstream.History("_VIX"), Body: []byte(`{"data":[{"date":"2026-11-17","close":1e5}]}`)})
	var e *upstream.Error
	if !errors.As(err, &e) || e.Reason != upstream.Empty {
		t.Errorf("a history without a usable close: %v", err)
	}
	q := qualityOf("XLK", compute.Fund{Closes: []compute.Close{{Date: compute.NewDate(2026, 11, 19), Price: 1}}}, true, 3)
	if q.Note == nil || !strings.HasPrefix(*q.Note, "3 numbers count as absent") {
		t.Errorf("note %v", q.Note)
	}
}
