package refresh_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// checked runs `strikecache check` on files of a folder, each given as name and content, in order.
func checked(t testing.TB, files ...string) (report string, err error) {
	t.Helper()
	var paths []string
	for i := 0; i < len(files); i += 2 {
		paths = append(paths, written(t, t.TempDir(), files[i], files[i+1]))
	}
	return checkedIn(t, paths...)
}

// written writes a file below a folder, and returns its path.
func written(t testing.TB, dir, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(dir, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// checkedIn runs `strikecache check` on files and folders.
func checkedIn(t testing.TB, paths ...string) (report string, err error) {
	t.Helper()
	c := refresh.CheckCommand{Files: paths}
	must(t, c.Validate())
	var out bytes.Buffer
	err = c.Run(&out)
	return out.String(), err
}

// says checks that a report has these texts.
func says(t testing.TB, what, report string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(report, text) {
			t.Errorf("%s: want %q in\n%s", what, text, report)
		}
	}
}

// row is a row of the minimal chain that server/deploy documents.
func row(symbol string, change ...string) string {
	text := `{"option":"` + symbol + `","bid":10.5,"ask":11.5,"open_interest":1000,"volume":700,"last_trade_price":11.4,"last_trade_time":"2026-11-20T14:00:00","iv":0.2,"delta":0.5}`
	for i := 0; i < len(change); i += 2 {
		text = regexp.MustCompile(change[i]).ReplaceAllString(text, change[i+1])
	}
	return text
}

const minimalHead = `{"timestamp":"2026-11-20 19:15:00","data":{"symbol":"SPX","current_price":7500,"last_trade_time":"2026-11-20T14:00:00","options":[`

// minimal returns a minimal chain of 40 contracts with a change in every row.
func minimal(change ...string) string {
	var rows []string
	for strike := 7450; strike < 7550; strike += 5 {
		rows = append(rows, row(fmt.Sprintf("SPXW261218C%08d", 1000*strike), change...), row(fmt.Sprintf("SPXW261218P%08d", 1000*strike), change...))
	}
	return minimalHead + strings.Join(rows, ",") + "]}}"
}

func TestCheckMinimalChain(t *testing.T) {
	report, err := checked(t, "options/_SPX.json", minimal())
	says(t, "whole", report, "accepted as options/_SPX.json", "SPX: price 7500", "last trade 2026-11-20T19:00:00Z, made 2026-11-20T19:15:00Z",
		"40 rows, 40 contracts of 1 expirations", "40 contracts with open_interest over 0", "gex/spx rests on 40 contracts; left out: none",
		"spx-max-pain has 1 expirations", "options/flow/spx scores 40 contracts; left out: none")
	if err != nil || strings.Contains(report, "skipped") {
		t.Errorf("%v\n%s", err, report)
	}
	chain, err := cboe.DecodeChain([]byte(minimal()))
	must(t, err)
	for _, item := range compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: calendar}).Items {
		if item.Side != "ask" {
			t.Errorf("the side of %s is %s", item.Contract, item.Side)
		}
	}
	const all, none, unusable = "gex/spx rests on 40 contracts", "gex/spx rests on 0 contracts", "no contract of the chain can be used: "
	const scored, unscored = "options/flow/spx scores 40 contracts", "options/flow/spx scores 0 contracts"
	for field, want := range map[string][]string{ // what each missing field costs
		"open_interest":    {"REFUSED as open_interest_missing: the open interest of 40 of 40 contracts cannot be read\n"},
		"bid":              {"0 contracts with bid and ask: ", all, scored},
		"ask":              {"0 contracts with bid and ask: ", all, scored},
		"iv":               {"0 contracts with iv: ", all, scored},
		"volume":           {"0 contracts with volume: ", all, unscored},
		"delta":            {"0 contracts with delta: ", all, scored},
		"last_trade_price": {"0 contracts with last_trade_price: ", all, scored},
		"last_trade_time":  {"0 contracts with last_trade_time: ", all, unscored},
	} {
		body := minimal(`"`+field+`":("[^"]*"|[0-9.]+)`, `"other":1`)
		chain, err := cboe.DecodeChain([]byte(body))
		must(t, err)
		for _, item := range compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: calendar}).Items {
			if item.Side != "unknown" {
				t.Errorf("without %s, the side of %s is known: %s", field, item.Contract, item.Side)
			}
		}
		report, err := checked(t, "options/_SPX.json", body)
		says(t, "without "+field, report, want...)
		if (err != nil) != (field == "open_interest") {
			t.Errorf("without %s: %v", field, err)
		}
	}
	report, _ = checked(t, "options/_SPX.json", strings.ReplaceAll(minimal(), "SPXW261218", "SPXW261119"))
	says(t, "all settled", report, unusable+"40 settled\n")
	report, err = checked(t, "options/_SPX.json", minimal(`"(bid|iv)":[0-9.]+`, `"other":1`))
	says(t, "without bid and iv", report, none, "40 no_volatility", "NO ANSWER: upstream_empty: gex/spx: no contract can be used: 40 no_volatility")
	if err == nil || !strings.Contains(err.Error(), "could not make 5 answers") {
		t.Errorf("without bid and iv: %v", err)
	}
	report, err = checked(t, "options/_SPX.json", minimal(`"open_interest":1000`, `"open_interest":0`))
	says(t, "open interest of 0", report, "0 contracts with open_interest over 0: ", none, "40 no_open_interest", scored, "NO ANSWER: upstream_empty: spx-max-pain: no")
	if err == nil || !strings.Contains(err.Error(), "could not make 6 answers") {
		t.Errorf("open interest of 0: %v", err)
	}
	for field, reason := range map[string]string{"symbol": "upstream_malformed", "current_price": "upstream_empty", "timestamp": "upstream_malformed", "options": "upstream_empty"} {
		report, err := checked(t, "options/_SPX.json", strings.Replace(minimal(), `"`+field+`"`, `"other"`, 1))
		says(t, "without "+field, report, "REFUSED as "+reason)
		if err == nil {
			t.Errorf("without %s: no error", field)
		}
	}
}

// A chain under a name that no server reads is not said to be used.
func TestCheckOtherName(t *testing.T) {
	for name, c := range map[string][2]string{"options/SPX.json": {"SPX", "options/_SPX.json"}, "options/XSP.json": {"XSP", "options/_XSP.json"}, "options/_AAPL.json": {"AAPL", "options/AAPL.json"}} {
		report, err := checked(t, name, strings.NewReplacer(`"symbol":"SPX"`, `"symbol":"`+c[0]+`"`, "SPXW", c[0]).Replace(minimal()))
		says(t, name, report, "NOT USED: a server reads the chain of "+c[0]+" from "+c[1]+"\n")
		if err != nil || strings.Contains(report, "it is used if") {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
	}
}

// Skipped rows are counted by reason, with an example of each.
func TestCheckSkippedRows(t *testing.T) {
	report, err := checked(t, "options/_SPX.json", minimalHead+strings.Join([]string{
		row("SPXW261218C07500000"), row("SPXW261218C07500000"), row("SPX1261218C07500000"), row("what"), row("ever"), row("SPXW261218P07500000", `"open_interest":1000`, `"open_interest":-1`), row("SPXW261218P07505000", `10.5`, `1e30`),
	}, ",")+"]}}")
	says(t, "skipped", report, "7 rows, 2 contracts of 1 expirations", "skipped rows: 1 bad_number, 2 bad_symbol, 1 duplicate, 1 unknown_root\n",
		`such as "SPXW261218P07500000": bad_number`, `such as "what": bad_symbol`, `such as "SPXW261218C07500000": duplicate`, `such as "SPX1261218C07500000": unknown_root`, "2 numbers count as absent")
	if err != nil {
		t.Error(err)
	}
}

// A document that a server would refuse is refused with its reason. Two files of one document go through the guard.
func TestCheckRefused(t *testing.T) {
	future := strings.Replace(minimal(), "2026-11-20 19:15:00", "2099-01-01 00:00:00", 1)
	small := minimalHead + row("SPXW261218C07500000") + "]}}"
	for what, c := range map[string]struct {
		files []string
		want  []string
	}{
		"half written":  {[]string{"options/_SPX.json", minimal()[:900]}, []string{"REFUSED as upstream_malformed", "then rename it"}},
		"the future":    {[]string{"options/_SPX.json", future}, []string{"REFUSED as clock_ahead: timestamp 2099-01-01T00:00:00Z", "timestamp is UTC"}},
		"half the rows": {[]string{"options/_SPX.json", minimal(), "options/_SPX.json", small}, []string{"accepted", "REFUSED as shrunk: 1 readable rows", "the file checked before"}},
		"no chain":      {[]string{"options/_SPX.json", "<html>"}, []string{"REFUSED as upstream_html"}},
		"half a gzip":   {[]string{"options/_SPX.json.gz", "\x1f\x8bx"}, []string{"REFUSED as upstream_truncated", "then rename it"}},
		"no number":     {[]string{"options/_SPX.json", strings.Replace(minimal(), "10.5", "NaN", 1)}, []string{"REFUSED as upstream_malformed", "NaN at byte"}},
		"elsewhere":     {[]string{"spx.json", minimal()}, []string{"REFUSED as upstream_missing", "options/SYMBOL.json"}},
		"no date":       {[]string{"settlement/today.csv", "Product,Symbol,Expiration Date,Price\nVX,VX/Z6,2026-12-16,18.5\n"}, []string{"REFUSED as upstream_malformed"}},
		"no month":      {[]string{"settlement/2026-11-20.csv", "Product,Symbol,Expiration Date,Price\nVX,VX48/Z6,2026-12-02,18.5\n"}, []string{"REFUSED as upstream_empty", "no monthly VIX future"}},
		"no rows":       {[]string{"settlement/2026-11-20.csv", "Product,Symbol,Expiration Date,Price\n"}, []string{"REFUSED as upstream_empty"}},
		"too large":     {[]string{"quotes/XLK.json", strings.Repeat(" ", 70_000)}, []string{"REFUSED as upstream_too_large: quotes/XLK.json has 70000 bytes"}},
	} {
		report, err := checked(t, c.files...)
		says(t, what, report, c.want...)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a server would refuse 1 of %d files", len(c.files)/2)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if (&refresh.CheckCommand{Files: []string{"-"}}).Validate() == nil {
		t.Error("standard input is no error")
	}
	long, short := `{"data":[{"date":"2026-11-19","close":17.5},{"date":"2026-11-20","close":17.6}]}`, `{"data":[{"date":"2026-11-19","close":17.5}]}`
	for symbol, refused := range map[string]bool{"XLK": true, "_VIX": false} { // only histories of funds are compared
		name := "charts/historical/" + symbol + ".json"
		if report, err := checked(t, name, long, name, short); (err != nil) != refused {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
	}
}

// An answer that a server could not make of a chain is named, and the others are described.
func TestCheckFailedAnswer(t *testing.T) {
	for _, panics := range []bool{false, true} {
		restore := refresh.Spoil(product.GammaResource, panics)
		report, err := checked(t, "options/_SPX.json", minimal())
		restore()
		says(t, "spoiled", report, "accepted as", "  NO ANSWER: ", "gex/spx", "spx-max-pain has 1 expirations", "scores 40 contracts")
		if err == nil || !strings.Contains(err.Error(), "could not make 1 answers") || strings.Count(report, "NO ANSWER") != 1 {
			t.Errorf("panics %v: %v\n%s", panics, err, report)
		}
	}
}

// Every kind of document of the simulated market is accepted, and the report says which resource rests on it.
func TestCheckEveryKind(t *testing.T) {
	now := ny(t, "2026-11-20 15:00")
	market := simulated.New(simulated.Config{Seed: 7, Now: func() time.Time { return now }, Calendar: calendar})
	for name, want := range map[upstream.Name]string{
		upstream.Options("XLF"): "options/flow/xlf scores", upstream.Quotes("XLK"): "sectors/rotation rests on", upstream.Quotes("_VIX"): "vix-term-structure takes the close",
		upstream.Quotes("_SKEW"): "the newest level of the index",
		upstream.History("XLK"):  "price history: ", upstream.Quotes("XLZ"): "NOT USED", upstream.Settlement("2026-11-19"): "vix-term-structure has 9 months",
	} {
		body := `{"timestamp":"2026-11-20 19:15:00","data":{"symbol":"XLZ","current_price":7500,"last_trade_time":"2026-11-20T14:00:00"}}`
		if name != upstream.Quotes("XLZ") {
			doc, err := market.Fetch(t.Context(), name, nil)
			must(t, err)
			body = string(doc.Body)
		}
		report, err := checked(t, string(name), body)
		says(t, string(name), report, "accepted as "+string(name), want)
		if err != nil || strings.Contains(report, "gex/spx rests") {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
	}
}

// The files that server/deploy/SOURCE.md shows are accepted, by name and with their folder. What is no document of the folder is passed over.
func TestCheckDocumentedFiles(t *testing.T) {
	text, err := os.ReadFile("../server/deploy/SOURCE.md")
	must(t, err)
	var files []string
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for begin, name := range map[string]string{`{"timestamp"`: "options/_SPX.json", `{"symbol"`: "charts/historical/XLK.json", "Product": "settlement/2026-11-20.csv"} {
			if strings.HasPrefix(block[1], begin) {
				files = append(files, name, block[1])
			}
		}
	}
	report, err := checked(t, files...)
	says(t, "documented", report, "gex/spx rests on", "2 contracts with delta", "price history: 2 closes, from 2026-11-18", "vix-term-structure has 2 months")
	if err != nil || len(files) != 6 {
		t.Errorf("%q: %v\n%s", files, err, report)
	}
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		written(t, dir, files[i], files[i+1])
		written(t, dir, files[i]+".tmp", files[i+1][:9])
	}
	whole, err := checkedIn(t, dir)
	if says(t, "folder", whole, "options/_SPX.json: accepted as options/_SPX.json", "gex/spx rests on", "price history: 2 closes", "vix-term-structure has 2 months"); err != nil {
		t.Errorf("%v\n%s", err, whole)
	}
}
