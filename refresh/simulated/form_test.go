package simulated_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/refresh/folder"
	"strikecache/refresh/upstream"
)

// The shapes of the upstream's documents: the members in their order, numbers with a point as 0.0 and without one as 0, strings empty.
const (
	rowShape = `{"option":"","bid":0.0,"bid_size":0.0,"ask":0.0,"ask_size":0.0,"iv":0.0,"open_interest":0.0,"volume":0.0,"delta":0.0,` +
		`"gamma":0.0,"vega":0.0,"theta":0.0,"rho":0.0,"theo":0.0,"change":0.0,"open":0.0,"high":0.0,"low":0.0,"tick":"",` +
		`"last_trade_price":0.0,"last_trade_time":"","percent_change":0.0,"prev_day_close":0.0}`
	headShape  = `{"timestamp":"","data":{`
	priceShape = `"symbol":"","security_type":"","exchange_id":0,"current_price":0.0,"price_change":0.0,"price_change_percent":0.0,` +
		`"bid":0.0,"ask":0.0,"bid_size":0,"ask_size":0,"open":0.0,"high":0.0,"low":0.0,"close":0.0,"prev_day_close":0.0,"volume":0,` +
		`"iv30":0.0,"iv30_change":0.0,"iv30_change_percent":0.0,"seqno":0,"last_trade_time":"","tick":""},"symbol":""}`
	historyShape = `{"symbol":"","data":[{"date":"","open":0.0,"high":0.0,"low":0.0,"close":0.0,"volume":0},`
	indexShape   = `{"symbol":"","data":[{"date":"","open":"","high":"","low":"","close":"","volume":""},` // strings, for an index
)

var (
	spaces  = regexp.MustCompile(`([:,]) `)
	texts   = regexp.MustCompile(`:"[^"]*"`)
	points  = regexp.MustCompile(`:-?\d+\.\d+(e-\d\d)?`)
	wholes  = regexp.MustCompile(`:-?\d+([,}])`)
	absents = strings.NewReplacer(`"last_trade_time":null`, `"last_trade_time":""`, `"iv30_change_percent":null`, `"iv30_change_percent":0.0`)
)

func shape(text string) string {
	text = texts.ReplaceAllString(spaces.ReplaceAllString(text, "$1"), `:""`)
	return absents.Replace(wholes.ReplaceAllString(points.ReplaceAllString(text, ":0.0"), ":0$1"))
}

// rowsOf returns the rows of a chain document as written, and the text before and after them.
func rowsOf(t *testing.T, body []byte) (head string, rows []string, tail string) {
	t.Helper()
	at, end := strings.Index(string(body), `"options":[`)+11, strings.LastIndex(string(body), "],")
	if at < 11 || end < at {
		t.Fatalf("no options in %.100s", body)
	}
	return string(body[:at]), strings.Split(strings.ReplaceAll(string(body[at:end]), "},{", "}\n{"), "\n"), string(body[end+2:])
}

func checkChain(t *testing.T, body []byte) {
	t.Helper()
	head, rows, tail := rowsOf(t, body)
	if shape(head) != headShape+`"options":[` || shape(tail) != priceShape {
		t.Errorf("written %s … %s", head, tail)
	}
	for _, row := range rows {
		if shape(row) != rowShape || strings.Contains(row, ":-0.0,") {
			t.Fatalf("written %s", row)
		}
	}
}

// recorded returns a recorded document, unpacked.
func recorded(t testing.TB, name upstream.Name) []byte {
	t.Helper()
	source, err := folder.NewRecorded(testkit.Shared(t, "recorded/replay"))
	testkit.Must(t, err)
	doc, err := source.Fetch(t.Context(), name, nil)
	testkit.Must(t, err)
	return doc.Body
}

func TestDocumentsHaveTheUpstreamsForm(t *testing.T) {
	for _, symbol := range []string{"_SPX", "_NDX", "IWM", "TSLA"} {
		body := documentAt(t, market, upstream.Options(symbol), ny("2026-08-11 16:36:50")).Body
		if !json.Valid(body) {
			t.Errorf("%s: not JSON", symbol)
		}
		checkChain(t, body)
	}
	for _, symbol := range append(chains, "_VIX", "_VIX3M") {
		name, history := `"symbol":"`+symbol+`","security_type":"stock"`, historyShape
		if symbol[0] == '_' {
			name, history = `"symbol":"^`+symbol[1:]+`","security_type":"index"`, indexShape
		}
		body := string(documentAt(t, market, upstream.Quotes(symbol), ny("2026-08-11 12:00:00")).Body)
		if shape(body) != headShape+priceShape || !strings.Contains(body, name) {
			t.Errorf("written %s", body)
		}
		body = string(documentAt(t, market, upstream.History(symbol), ny("2026-08-11 12:00:00")).Body)
		if !strings.HasPrefix(shape(body), history) || !strings.HasPrefix(body, `{"symbol":"`+symbol+`"`) {
			t.Errorf("written %.300s", body)
		}
	}
}

func TestRecordedDocumentsHaveTheForm(t *testing.T) {
	checkChain(t, recorded(t, spxChain))
	for _, symbol := range []string{"XLK", "_VIX", "_VIX3M"} {
		if body := string(recorded(t, upstream.Quotes(symbol))); shape(body) != headShape+priceShape {
			t.Errorf("written %s", body)
		}
	}
}

// TestRowsAreLikeTheRecordedOnes compares shares of the rows with those of 2026-08-11.
func TestRowsAreLikeTheRecordedOnes(t *testing.T) {
	shares := func(body []byte) map[string]float64 {
		_, rows, _ := rowsOf(t, body)
		out := map[string]float64{"bytes": float64(len(body)) / float64(len(rows))}
		for _, row := range rows {
			for _, key := range []string{"iv", "open_interest", "volume", "gamma", "bid", "last_trade_time"} {
				if strings.Contains(row, `"`+key+`":0.0,`) || strings.Contains(row, `"`+key+`":null`) {
					out[key] += 1 / float64(len(rows))
				}
			}
		}
		return out
	}
	want, got := shares(recorded(t, spxChain)), shares(documentAt(t, market, spxChain, ny("2026-08-11 16:36:50")).Body)
	for key, within := range map[string]float64{
		"bytes": 10, "iv": 0.04, "open_interest": 0.07, "volume": 0.12, "gamma": 0.1, "bid": 0.05, "last_trade_time": 0.07,
	} {
		if d := got[key] - want[key]; d > within || d < -within {
			t.Errorf("%s: %.3f, recorded %.3f", key, got[key], want[key])
		}
	}
}
