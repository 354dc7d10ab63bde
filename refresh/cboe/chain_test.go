package cboe

import (
	"errors"
	"fmt"
	"math"
	"testing"
)

const (
	rowC = `{"option":"SPXW260821C07400000","bid":330.1,"bid_size":0.0,"ask":331.9,"ask_size":0.0,"iv":0.1235,"open_interest":2960.0,` +
		`"volume":4.0,"delta":0.9,"gamma":0.0011,"vega":1.0,"theta":-1.5,"rho":0.5,"theo":331.0,"change":1.0,"open":1.0,"high":1.0,` +
		`"low":1.0,"tick":"up","last_trade_price":330.5,"last_trade_time":"2026-08-11T10:31:50","percent_change":0.1,"prev_day_close":329.349985351562}`
	rowP = `{"option":"SPXW260821P07400000","bid":0.0,"ask":0.05,"iv":0.0,"open_interest":0.0,"volume":0.0,"delta":0.0,"gamma":0.0,` +
		`"last_trade_price":0.0,"last_trade_time":null}`
	head = `"symbol":"^SPX","current_price":7728.2002,"close":7728.1,"price_change_percent":-0.3213,"prev_day_close":7753.1,"seqno":16938026517,"last_trade_time":"2026-08-11T16:14:59"`
)

func document(timestamp, data string) []byte {
	return []byte(`{"timestamp":"` + timestamp + `","data":{` + data + `},"symbol":"_SPX"}`)
}

func wantChain() []byte {
	return document("2026-08-11 20:36:41", `"options":[`+rowC+`,`+rowP+`],`+head)
}

func TestASecondArrayOfOptionsIsRefused(t *testing.T) {
	body := document("2026-08-11 20:36:41", `"options":[],"options":[`+rowC+`],`+head)
	if _, err := DecodeChain(body); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// The change of a session is that of price_change, because price_change_percent is wrong late in the evening. The first case is of a
// recorded weekend.
func TestChangeOfASession(t *testing.T) {
	for _, c := range []struct {
		change, percent string
		want            float64 // NaN: unknown
		bad             int
	}{
		{"47.6801", "0.6146", 0.6184, 0},
		{"0.0", "0.5", 0, 0},
		{"null", "0.6146", 0.6146, 0},
		{"null", "null", math.NaN(), 0},
		{"7757.6401", "0.6146", 0.6146, 1}, // from a price of 0
		{"-1e300", "0.6146", 0.6146, 1},
		{"7700.0", "0.6146", 0.6146, 1}, // 13,359 %
	} {
		body := fmt.Sprintf(`{"timestamp":"2026-08-09 22:38:43","data":{"symbol":"^SPX","current_price":7757.6401,"price_change":%s,"price_change_percent":%s,"last_trade_time":"2026-08-07T16:14:59"}}`, c.change, c.percent)
		q, err := DecodeQuote([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := math.Round(q.PriceChangePercent*1e4) / 1e4; got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) || q.BadNumbers != c.bad {
			t.Errorf("%s and %s: %v, %d bad numbers, want %v and %d", c.change, c.percent, got, q.BadNumbers, c.want, c.bad)
		}
	}
}
