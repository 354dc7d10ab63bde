//go:build unix

package e2e

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// inbox is the folder of a server with --source folder.
type inbox struct {
	t      *testing.T
	dir    string
	market *simulated.Market
}

func newInbox(t *testing.T) *inbox {
	return &inbox{t, t.TempDir(), simulated.New(simulated.Config{Seed: 7, Every: 5, Now: time.Now, Calendar: compute.NewCalendar(nil, nil)})}
}

func (i *inbox) path(name upstream.Name) string {
	return filepath.Join(i.dir, filepath.FromSlash(string(name)))
}

// made returns the document of a name as the simulated market has it now.
func (i *inbox) made(name upstream.Name) string {
	i.t.Helper()
	doc, err := i.market.Fetch(i.t.Context(), name, nil)
	must(i.t, err)
	return string(doc.Body)
}

// put replaces a document as a collector does: it renames another file.
func (i *inbox) put(name upstream.Name, body string) {
	i.t.Helper()
	path := i.path(name)
	must(i.t, os.Rename(writeFile(i.t, path+".tmp", body), path))
}

// What a collector puts into a folder is served under the name of its vendor, and is recomputed under this name. The tests of package
// refresh have files that are half-written, replaced or refused.
func TestSourceOfOnesOwn(t *testing.T) {
	t.Parallel()
	spx, xlf := upstream.Options("_SPX"), upstream.Options("XLF")
	in, dir := newInbox(t), t.TempDir()
	p := serve(t, "--data-dir", dir, "--source", "folder", "--folder", in.dir, "--source-name", "acme-data", "--underlyings", "SPX,XLF,ZZZ")
	if !strings.Contains(p.logged(), `underlyings_without_file="[XLF ZZZ]"`) || p.answers(gammaPath, http.StatusOK) {
		t.Errorf("an empty folder: %s", p.logged())
	}
	in.put(spx, in.made(spx))
	p.until("the chain is served", func() bool { return p.answers(gammaPath, http.StatusOK) })
	if source := p.envelope(gammaPath).Meta.Source; source != "acme-data" {
		t.Errorf("the source is %s", source)
	}
	if _, page := p.get("/"); !strings.Contains(string(page), "<strong>acme-data</strong>") {
		t.Error("the page does not show the name of the source")
	}
	in.put(xlf, in.made(xlf))
	p.until("the flow has the chain of XLF", func() bool {
		_, body := p.get(flowPath)
		return strings.Contains(string(body), `{"symbol":"XLF"`)
	})
	if n := strings.Count(p.logged(), "ZZZ"); n != 1 {
		t.Errorf("a symbol without a file is named %d times", n)
	}
	p.stop()
	if out := does(t, "recompute", "--data-dir", dir, "--source", "acme-data", "--date", "current", "--product", "gex/spx"); !strings.Contains(out, "gex/spx identical") {
		t.Errorf("recompute: %s", out)
	}
	if out := does(t, "check", in.path(spx), in.path(xlf)); strings.Count(out, ": accepted as options/") != 2 {
		t.Errorf("check: %s", out)
	}
}

// collect runs the example collector to its end.
func collect(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return run(t, exec.Command(installed(t, "python3"), append([]string{filepath.Join(root, "bench", "clients", "collector.py")}, args...)...))
}

// The snapshots of two contracts, as both versions of the terminal write them.
var snapshotsV2 = map[string]string{
	"quote.csv": "root,expiration,strike,right,ms_of_day,bid_size,bid_exchange,bid,bid_condition,ask_size,ask_exchange,ask,ask_condition,date\n" +
		"SPXW,20261218,7500500,C,53999123,1,5,120.5,50,1,5,121.5,50,20261120\nSPX,20261218,7500000,P,53998000,1,5,60.5,50,1,5,61.5,50,20261120\n",
	"interest.csv": "root,expiration,strike,right,ms_of_day,open_interest,date\nSPXW,20261218,7500500,C,23400000,1200,20261120\n",
	"ohlc.csv": "root,expiration,strike,right,ms_of_day,open,high,low,close,volume,count,date\n" +
		"SPXW,20261218,7500500,C,53880000,1,2,3,121.2,900,20,20261120\nSPX,20261218,7500000,P,53880000,1,2,3,61,800,20,20261119\n",
	"greeks.csv": "root,expiration,strike,right,ms_of_day,bid,ask,delta,implied_vol,date\nSPXW,20261218,7500500,C,53880000,1,2,0.51,0.18,20261120\n",
}

var snapshotsV3 = map[string]string{
	"quote.csv": "timestamp,symbol,expiration,strike,right,bid_size,bid_exchange,bid,bid_condition,ask_size,ask_exchange,ask,ask_condition\n" +
		"2026-11-20T14:59:59.123,SPXW,2026-12-18,7500.500,CALL,1,5,120.5,50,1,5,121.5,50\n2026-11-20T14:59:58.000,SPX,2026-12-18,7500.000,PUT,1,5,60.5,50,1,5,61.5,50\n",
	"interest.csv": "timestamp,symbol,expiration,strike,right,open_interest\n2026-11-20T06:30:00.000,SPXW,2026-12-18,7500.500,CALL,1200\n",
	"ohlc.csv": "timestamp,symbol,expiration,strike,right,open,high,low,close,volume,count\n" +
		"2026-11-20T14:58:00.000,SPXW,2026-12-18,7500.500,CALL,1,2,3,121.2,900,20\n2026-11-19T14:58:00.000,SPX,2026-12-18,7500.000,PUT,1,2,3,61,800,20\n",
	"greeks.csv": "symbol,expiration,strike,right,timestamp,bid,ask,delta,implied_vol\nSPXW,2026-12-18,7500.500,CALL,2026-11-20T14:58:00.000,1,2,0.51,0.18\n",
}

const collected = `{"timestamp":"2026-11-20 20:15:00","data":{"symbol":"SPX","current_price":7500.25,"last_trade_time":"2026-11-20T14:59:59","options":[` +
	`{"option":"SPX261218P07500000","bid":60.5,"ask":61.5,"open_interest":0.0,"volume":0.0,"last_trade_price":0.0,"last_trade_time":null},` +
	`{"option":"SPXW261218C07500500","bid":120.5,"ask":121.5,"open_interest":1200.0,"volume":900.0,"last_trade_price":121.2,"last_trade_time":"2026-11-20T14:58:00","iv":0.18,"delta":0.51}]}}`

// The collector makes the same chain of the snapshots of both versions, and check accepts it. A wrong file is named with its line
// and column, the chain before it stays, and nothing half-written is left.
func TestCollector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	chain := filepath.Join(dir, "options", "_SPX.json")
	args := []string{"--symbol", "SPX", "--price", "7500.25", "--made", "2026-11-20T20:15:00", dir}
	for version, files := range map[int]map[string]string{2: snapshotsV2, 3: snapshotsV3} {
		paths := map[string]string{}
		for name, body := range files {
			paths[name] = writeFile(t, filepath.Join(t.TempDir(), name), body)
		}
		all := []string{paths["ohlc.csv"], paths["greeks.csv"], paths["quote.csv"], paths["interest.csv"]}
		if out, stderr, code := collect(t, append(args, all...)...); code != 0 || !strings.Contains(out, "_SPX.json: 2 contracts") {
			t.Fatalf("version %d: exit %d, %s%s", version, code, out, stderr)
		}
		if body, err := os.ReadFile(chain); err != nil || string(body) != collected {
			t.Errorf("version %d: %s %v", version, body, err)
		}
		for _, wrong := range []struct{ file, old, new, says string }{
			{"quote.csv", "120.5", "1x", "line 2 column bid: '1x' is not a number"},
			{"quote.csv", "121.5", "nan", "line 2 column ask: 'nan' is not a number from 0"},
			{"quote.csv", "SPX,", "SPY,", "line 3 column " + map[int]string{2: "root", 3: "symbol"}[version] + ": 'SPY' is none of SPX, SPXW"},
			{"quote.csv", "1,5,121.5,", "", "line 2: has "},
			{"quote.csv", "strike", "stroke", "line 1: has no column strike"},
			{"quote.csv", ",bid,", ",bod,", "line 1: has the columns of no quote"},
			{"interest.csv", "1200", "", "line 2 column open_interest: '' is empty"},
			{"interest.csv", "C", "X", "line 2 column right: "},
			{"ohlc.csv", "2026", "20x6", "line 2 column "},
		} {
			if !strings.Contains(files[wrong.file], wrong.old) {
				t.Fatalf("version %d: %s has no %q", version, wrong.file, wrong.old)
			}
			bad := writeFile(t, filepath.Join(t.TempDir(), wrong.file), strings.Replace(files[wrong.file], wrong.old, wrong.new, 1))
			given := strings.Split(strings.ReplaceAll(strings.Join(all, "\n"), paths[wrong.file], bad), "\n")
			if out, stderr, code := collect(t, append(args, given...)...); code != 1 || !strings.Contains(stderr, bad+" "+wrong.says) || out != "" {
				t.Errorf("version %d, %s for %s: exit %d, %q %q, want %q", version, wrong.new, wrong.old, code, out, stderr, wrong.says)
			}
		}
		if out, stderr, code := collect(t, append(args, paths["quote.csv"])...); code != 1 || !strings.Contains(stderr, "no row of open interest") {
			t.Errorf("without open interest: exit %d, %s%s", code, out, stderr)
		}
	}
	left, err := os.ReadDir(filepath.Dir(chain))
	if body, read := os.ReadFile(chain); err != nil || read != nil || len(left) != 1 || string(body) != collected {
		t.Errorf("%v %v: %s", left, errors.Join(err, read), body)
	}
	out := does(t, "check", chain)
	for _, want := range []string{"accepted as options/_SPX.json", "2 rows, 2 contracts", "1 contracts with open_interest over 0", "2 contracts with bid and ask", "1 contracts with delta"} {
		if !strings.Contains(out, want) {
			t.Errorf("check does not say %q: %s", want, out)
		}
	}
	quotes := writeFile(t, filepath.Join(t.TempDir(), "quote.csv"), regexp.MustCompile("SPXW?").ReplaceAllString(snapshotsV3["quote.csv"], "XSP"))
	interest := writeFile(t, filepath.Join(t.TempDir(), "interest.csv"), strings.Replace(snapshotsV3["interest.csv"], "SPXW", "XSP", 1))
	if out, stderr, code := collect(t, "--symbol", "XSP", "--price", "750", dir, quotes, interest); code != 0 || !strings.Contains(out, "_XSP.json: 2 contracts") {
		t.Errorf("the chain of XSP: exit %d, %s%s", code, out, stderr)
	}
	if out, _, code := collect(t, "--help"); code != 0 || !strings.Contains(out, "tenths of a cent") {
		t.Errorf("--help: exit %d, %s", code, out)
	}
}
