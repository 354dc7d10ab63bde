package simulated_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"strikecache/refresh/upstream"
)

// form returns a regular expression. A name in angle brackets stands for a value as the upstream spells it: a number <n1> has
// a point and one decimal, <n2> and <n4> have up to 2 and 4 without trailing zeros, <n> has any decimals, <i> has no point.
func form(text string) *regexp.Regexp {
	const whole = `-?(?:0|[1-9]\d*)`
	return regexp.MustCompile("^" + strings.NewReplacer(
		"<n1>", whole+`\.\d`, "<n2>", whole+`\.\d[1-9]?`, "<n4>", whole+`\.(?:\d|\d{1,3}[1-9])`, "<n>", whole+`\.\d+(?:e-\d\d)?`,
		"<i>", whole, "<name>", `"[_^]?[A-Z]+"`, "<type>", `"(?:stock|index)"`, "<tick>", `"(?:up|down|no_change)"`,
		"<option>", `"[A-Z]{1,6}\d?\d{6}[CP]\d{8}"`, "<trade>", `"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"`,
		"<stamp>", `"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"`, "<date>", `"\d{4}-\d\d-\d\d"`,
	).Replace(text) + "$")
}

const (
	head  = `{"timestamp":<stamp>,"data":{`
	price = `"symbol":<name>,"security_type":<type>,"exchange_id":<i>,"current_price":<n4>,"price_change":<n4>,` +
		`"price_change_percent":<n4>,"bid":<n4>,"ask":<n4>,"bid_size":<i>,"ask_size":<i>,"open":<n4>,"high":<n4>,"low":<n4>,` +
		`"close":<n4>,"prev_day_close":<n4>,"volume":<i>,"iv30":<n4>,"iv30_change":<n4>,"iv30_change_percent":(?:<n4>|null),` +
		`"seqno":<i>,"last_trade_time":<trade>,"tick":<tick>},"symbol":<name>}`
)

var (
	chainForm = form(head + `"options":\[`)
	rowForm   = form(`{"option":<option>,"bid":<n2>,"bid_size":<n1>,"ask":<n2>,"ask_size":<n1>,"iv":<n4>,"open_interest":<n1>,` +
		`"volume":<n1>,"delta":<n4>,"gamma":<n4>,"vega":<n4>,"theta":<n4>,"rho":<n4>,"theo":<n4>,"change":<n4>,"open":<n2>,` +
		`"high":<n2>,"low":<n2>,"tick":<tick>,"last_trade_price":<n2>,"last_trade_time":(?:<trade>|null),` +
		`"percent_change":<n>,"prev_day_close":<n>}`)
	tailForm  = form(price)
	quoteForm = form(head + price)
	// The values of an index are strings.
	historyForm = form(`{"symbol":<name>,"data":\[(?:{"date":<date>,"open":<n4>,"high":<n4>,"low":<n4>,"close":<n4>,"volume":<i>},?)+\]}`)
	indexForm   = form(`{"symbol":<name>,"data":\[(?:{"date":<date>,"open":"<n4>","high":"<n4>","low":"<n4>","close":"<n4>",` +
		`"volume":"<i>"},?)+\]}`)
)

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
	if !chainForm.MatchString(head) || !tailForm.MatchString(tail) {
		t.Errorf("written %s … %s", head, tail)
	}
	wrong := 0
	for _, row := range rows {
		if !rowForm.MatchString(row) || strings.Contains(row, ":-0.0,") {
			if wrong++; wrong < 5 {
				t.Errorf("written %s", row)
			}
		}
	}
}

func TestDocumentsHaveTheUpstreamsForm(t *testing.T) {
	for symbol, at := range map[string]string{
		"_SPX": "2026-08-11 16:36:50", "SPY": "2026-08-12 02:00:00", "TSLA": "2026-08-11 12:00:00", "XLK": "2026-08-21 15:00:00",
	} {
		body := documentAt(t, market, upstream.Options(symbol), ny(at)).Body
		if !json.Valid(body) {
			t.Errorf("%s: not JSON", symbol)
		}
		checkChain(t, body)
	}
	for _, symbol := range append(chains, "_VIX", "_VIX3M") {
		body := string(documentAt(t, market, upstream.Quotes(symbol), ny("2026-08-11 12:00:00")).Body)
		name, history := `"symbol":"`+symbol+`","security_type":"stock"`, historyForm
		if symbol[0] == '_' {
			name, history = `"symbol":"^`+symbol[1:]+`","security_type":"index"`, indexForm
		}
		if !quoteForm.MatchString(strings.ReplaceAll(body, "VIX3M", "VIX")) || !strings.Contains(body, name) {
			t.Errorf("written %s", body)
		}
		body = string(documentAt(t, market, upstream.History(symbol), ny("2026-08-11 12:00:00")).Body)
		if !history.MatchString(strings.ReplaceAll(body, "VIX3M", "VIX")) || !strings.HasPrefix(body, `{"symbol":"`+symbol+`"`) {
			t.Errorf("written %.300s", body)
		}
	}
}

func TestRecordedDocumentsHaveTheForm(t *testing.T) {
	checkChain(t, recorded(t, "replay/options/_SPX.json.gz"))
	for _, symbol := range []string{"XLK", "_VIX", "_VIX3M"} {
		body := string(recorded(t, "replay/quotes/"+symbol+".json"))
		if !quoteForm.MatchString(strings.NewReplacer(`": `, `":`, `, "`, `,"`, "VIX3M", "VIX").Replace(body)) {
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
	want, got := shares(recorded(t, "replay/options/_SPX.json.gz")), shares(documentAt(t, market, spxChain, ny("2026-08-11 16:36:50")).Body)
	for key, within := range map[string]float64{
		"bytes": 10, "iv": 0.04, "open_interest": 0.07, "volume": 0.12, "gamma": 0.1, "bid": 0.05, "last_trade_time": 0.07,
	} {
		if d := got[key] - want[key]; d > within || d < -within {
			t.Errorf("%s: %.3f, recorded %.3f", key, got[key], want[key])
		}
	}
}
