package cboe

import (
	"errors"
	"testing"
	"time"

	"strikecache/compute"
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

func TestDecodeChainReadsEveryColumn(t *testing.T) {
	c, err := DecodeChain(wantChain())
	if err != nil {
		t.Fatal(err)
	}
	if c.Symbol != "SPX" || c.Spot != 7728.2002 || c.PriceChangePercent != -0.3213 {
		t.Errorf("head: %+v", c.Underlying)
	}
	if want := time.Date(2026, 8, 11, 20, 14, 59, 0, time.UTC); !c.AsOf.Equal(want) || c.AsOf.Location() != time.UTC {
		t.Errorf("as_of %v, want %v: last_trade_time is New York time", c.AsOf, want)
	}
	if want := time.Date(2026, 8, 11, 20, 36, 41, 0, time.UTC); !c.CapturedAt.Equal(want) {
		t.Errorf("captured_at %v, want %v: timestamp is UTC", c.CapturedAt, want)
	}
	if len(c.Contracts) != 2 || c.Listed != 2 {
		t.Fatalf("%d contracts of %d listed", len(c.Contracts), c.Listed)
	}
	want := compute.Quote{Bid: 330.1, Ask: 331.9, Last: 330.5, OpenInterest: 2960, Volume: 4, IV: 0.1235, Gamma: 0.0011, Delta: 0.9,
		LastTrade: time.Date(2026, 8, 11, 14, 31, 50, 0, time.UTC).Unix()}
	if got := c.Contracts[0]; got.Quote != want || got.Symbol() != "SPXW260821C07400000" || got.Settlement != compute.PM {
		t.Errorf("call: %+v", got)
	}
	if got := c.Contracts[1]; got.LastTrade != 0 || got.Ask != 0.05 || got.Right != compute.Put {
		t.Errorf("put: %+v", got)
	}
}
