package cboe

import (
	"errors"
	"strings"
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

func TestDecodeChainRefusals(t *testing.T) {
	ok := string(wantChain())
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"html":                     {"\n <!DOCTYPE html><html></html>", ErrHTML},
		"empty body":               {"", ErrMalformed},
		"array":                    {"[]", ErrMalformed},
		"two documents":            {ok + ok, ErrMalformed},
		"empty options":            {string(document("2026-08-11 20:36:41", `"options":[],`+head)), compute.ErrEmptyChain},
		"no options":               {string(document("2026-08-11 20:36:41", head)), compute.ErrEmptyChain},
		"null options":             {string(document("2026-08-11 20:36:41", `"options":null,`+head)), compute.ErrEmptyChain},
		"options twice":            {string(document("2026-08-11 20:36:41", `"options":[],"options":[`+rowC+`],`+head)), ErrMalformed},
		"no data":                  {`{"timestamp":"2026-08-11 20:36:41","symbol":"_SPX"}`, compute.ErrNoSpot},
		"no timestamp":             {strings.Replace(ok, "timestamp", "time", 1), ErrNoClock},
		"bad timestamp":            {strings.Replace(ok, "2026-08-11 20:36:41", "2026-08-11 25:36:41", 1), ErrNoClock},
		"timestamp with a zone":    {strings.Replace(ok, "20:36:41", "20:36:41Z", 1), ErrNoClock},
		"no last trade":            {strings.Replace(ok, `"last_trade_time":"2026-08-11T16:14:59"`, `"last_trade_time":null`, 1), ErrNoClock},
		"no price":                 {strings.NewReplacer(`"current_price":7728.2002`, `"current_price":null`, `"close":7728.1`, `"close":0`).Replace(ok), compute.ErrNoSpot},
		"only the close before":    {strings.NewReplacer(`"current_price":7728.2002,"close":7728.1`, `"current_price":0`).Replace(ok), compute.ErrNoSpot},
		"control character":        {strings.Replace(ok, "up", "u\x01p", 1), ErrMalformed},
		"number cut to a bare dot": {strings.Replace(ok, "330.1", "330.", 1), ErrMalformed},
	} {
		if _, err := DecodeChain([]byte(c.body)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// Clocks are read right before and after both changes of daylight saving time.
func TestClocksAcrossDST(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-06T16:14:59": "2026-03-06T21:14:59Z", "2026-03-08T01:59:59": "2026-03-08T06:59:59Z", "2026-03-08T03:00:00": "2026-03-08T07:00:00Z",
		"2026-03-09T09:30:00": "2026-03-09T13:30:00Z", "2026-10-30T16:14:59": "2026-10-30T20:14:59Z", "2026-11-01T00:30:00": "2026-11-01T04:30:00Z",
		"2026-11-01T02:30:00": "2026-11-01T07:30:00Z", "2026-11-02T09:30:00": "2026-11-02T14:30:00Z", "2026-11-02 09:30:00.250": "2026-11-02T14:30:00Z",
	} {
		if got, ok := parseClock(text, compute.NewYork); !ok || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"", "2026-08-11", "2026-08-11T16:14", "2026-08-11X16:14:59", "2026-13-11T16:14:59", "2026-08-11T24:00:00", "2026-08-11T16:60:00",
		"2026-08-11T1x:14:59", "2026-08-11T9:14:59.25", "2026-08-11T16:14:59Z", "2026-02-30T16:14:59"} {
		if got, ok := parseClock(bad, compute.NewYork); ok {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
