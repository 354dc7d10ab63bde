package cboe

import (
	"errors"
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
