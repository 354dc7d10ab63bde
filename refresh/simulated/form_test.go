package simulated_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/refresh/upstream"
)

// The keys on the wire, in their order.
var (
	rowKeys = []string{
		"option", "bid", "bid_size", "ask", "ask_size", "iv", "open_interest", "volume", "delta", "gamma", "vega", "theta",
		"rho", "theo", "change", "open", "high", "low", "tick", "last_trade_price", "last_trade_time", "percent_change",
		"prev_day_close",
	}
	underlyingKeys = []string{
		"symbol", "security_type", "exchange_id", "current_price", "price_change", "price_change_percent", "bid", "ask",
		"bid_size", "ask_size", "open", "high", "low", "close", "prev_day_close", "volume", "iv30", "iv30_change",
		"iv30_change_percent", "seqno", "last_trade_time", "tick",
	}
)

// spelling says how the numbers of a key are written: the most decimals, and whether there is a point at all.
type spelling struct {
	decimals int
	whole    bool
	null     bool
}

func rowSpelling() map[string]spelling {
	all := map[string]spelling{
		"iv": {decimals: 4}, "delta": {decimals: 4}, "gamma": {decimals: 4}, "vega": {decimals: 4}, "theta": {decimals: 4},
		"rho": {decimals: 4}, "theo": {decimals: 4}, "change": {decimals: 4}, "percent_change": {decimals: 12},
		"prev_day_close": {decimals: 18}, "last_trade_time": {null: true},
	}
	for _, key := range []string{"bid", "ask", "open", "high", "low", "last_trade_price"} {
		all[key] = spelling{decimals: 2}
	}
	for _, key := range []string{"bid_size", "ask_size", "open_interest", "volume"} {
		all[key] = spelling{decimals: 1}
	}
	return all
}

func underlyingSpelling() map[string]spelling {
	all := map[string]spelling{"iv30": {decimals: 3}, "iv30_change": {decimals: 3}, "iv30_change_percent": {decimals: 4, null: true}}
	for _, key := range []string{"current_price", "price_change", "price_change_percent", "bid", "ask", "open", "high", "low", "close", "prev_day_close"} {
		all[key] = spelling{decimals: 4}
	}
	for _, key := range []string{"exchange_id", "bid_size", "ask_size", "volume", "seqno"} {
		all[key] = spelling{whole: true}
	}
	return all
}

var (
	numberForm = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.(\d+))?(e-\d\d)?$`)
	tradeForm  = regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"$`)
	tickForm   = regexp.MustCompile(`^"(up|down|no_change)"$`)
	optionForm = regexp.MustCompile(`^"[A-Z]{1,6}\d?\d{6}[CP]\d{8}"$`)
)

// wellSpelt says whether a value is written as the upstream does.
func wellSpelt(m member, spellings map[string]spelling) bool {
	s, known := spellings[m.key]
	switch {
	case m.value == "null":
		return s.null
	case m.key == "option":
		return optionForm.MatchString(m.value)
	case m.key == "last_trade_time":
		return tradeForm.MatchString(m.value)
	case m.key == "tick":
		return tickForm.MatchString(m.value)
	case !known:
		return strings.HasPrefix(m.value, `"`)
	}
	form := numberForm.FindStringSubmatch(m.value)
	if form == nil {
		return false
	}
	decimals := len(form[3])
	trailing := decimals > 1 && strings.HasSuffix(form[3], "0")
	return s.whole == (form[2] == "" && form[4] == "") && decimals <= s.decimals && !trailing
}

func checkForm(t *testing.T, name string, body []byte) {
	t.Helper()
	rows, underlying := parts(t, body)
	wrong := 0
	report := func(m member) {
		if wrong++; wrong <= 10 {
			t.Errorf("%s: %s is written %s", name, m.key, m.value)
		}
	}
	spellings := rowSpelling()
	for _, row := range rows {
		all := members(row)
		if !slices.Equal(keysOf(all), rowKeys) {
			t.Fatalf("%s: row has keys %q", name, keysOf(all))
		}
		for _, m := range all {
			if !wellSpelt(m, spellings) {
				report(m)
			}
		}
	}
	checkUnderlying(t, name, underlying, report)
}

func checkUnderlying(t *testing.T, name string, underlying []member, report func(member)) {
	t.Helper()
	if want := append(slices.Clone(underlyingKeys), "symbol"); !slices.Equal(keysOf(underlying), want) {
		t.Errorf("%s: underlying has keys %q", name, keysOf(underlying))
	}
	for _, m := range underlying {
		if !wellSpelt(m, underlyingSpelling()) {
			report(m)
		}
	}
}

func TestRecordedChainHasTheFormTestedFor(t *testing.T) {
	checkForm(t, "recorded", recorded(t, "replay/options/_SPX.json.gz"))
}

func TestChainsHaveTheUpstreamsForm(t *testing.T) {
	long(t)
	m := market
	for _, at := range []string{"2026-08-11 12:00:00", "2026-08-11 16:36:50"} {
		doc := documentAt(t, m, spxChain, ny(at))
		if !json.Valid(doc.Body) {
			t.Fatalf("%s: not JSON", at)
		}
		if head := `{"timestamp":"2026-08-`; !strings.HasPrefix(string(doc.Body), head) {
			t.Errorf("%s: begins with %.60s", at, doc.Body)
		}
		if tail := `"symbol":"_SPX"}`; !strings.HasSuffix(string(doc.Body), tail) {
			t.Errorf("%s: ends with %s", at, doc.Body[len(doc.Body)-60:])
		}
		checkForm(t, at, doc.Body)
	}
	for _, at := range []string{"2026-08-12 02:00:00", "2026-08-21 15:00:00"} {
		checkForm(t, at, documentAt(t, m, upstream.Options("SPY"), ny(at)).Body)
	}
	for _, symbol := range []string{"TSLA", "XLK"} {
		checkForm(t, symbol, documentAt(t, m, upstream.Options(symbol), ny("2026-08-11 12:00:00")).Body)
	}
}

func TestQuotesHaveTheUpstreamsForm(t *testing.T) {
	m := market
	check := func(name string, body []byte) []member {
		head, data, ok := strings.Cut(string(body), `"data":`)
		if !ok || !strings.HasPrefix(head, `{"timestamp":`) {
			t.Fatalf("%s begins with %s", name, head)
		}
		all := members(data)
		checkUnderlying(t, name, all, func(m member) { t.Errorf("%s: %s is written %s", name, m.key, m.value) })
		return all
	}
	for _, symbol := range append(m.Symbols(), "_SPX", "_VIX", "_VIX3M") {
		all := check(symbol, documentAt(t, m, upstream.Quotes(symbol), ny("2026-08-11 12:00:00")).Body)
		kind, exchange, name := "stock", "3", symbol
		if symbol[0] == '_' {
			kind, exchange, name = "index", "5", "^"+symbol[1:]
		}
		if valueOf(all, "security_type") != kind || valueOf(all, "exchange_id") != exchange || valueOf(all, "symbol") != name {
			t.Errorf("%s is %v", symbol, all[:3])
		}
		noBook := valueOf(all, "bid") == "0.0" && valueOf(all, "ask") == "0.0"
		if volatility := strings.HasPrefix(symbol, "_VIX"); noBook != volatility {
			t.Errorf("%s has bid %s and ask %s", symbol, valueOf(all, "bid"), valueOf(all, "ask"))
		}
	}
	for _, symbol := range []string{"XLK", "_VIX", "_VIX3M"} {
		t.Run("recorded "+symbol, func(t *testing.T) { check(symbol, recorded(t, "replay/quotes/"+symbol+".json")) })
	}
}

// TestRowsAreLikeTheRecordedOnes compares shares of the rows with those of 2026-08-11.
func TestRowsAreLikeTheRecordedOnes(t *testing.T) {
	shares := func(body []byte) map[string]float64 {
		rows, _ := parts(t, body)
		out := map[string]float64{"bytes": float64(len(body)) / float64(len(rows))}
		for _, row := range rows {
			for _, m := range members(row) {
				if m.value == "0.0" || m.value == "null" {
					out[m.key] += 1 / float64(len(rows))
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
