//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"strikecache/refresh/upstream"
)

// The first lines of downloads of Cboe's website, in the layouts of today and of 2020, with a row each.
const (
	downloadToday = "\r\nS&P 500 INDEX,Last: 6711.2002,Change:  22.7402\r\n\"Date: %s\",Bid: 6661.1099,Ask: 6743.9702,Size: 1*1,\"Volume: 74,482,292\"\r\n" +
		"Expiration Date,Calls,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest,Strike,Puts,Last Sale,Net,Bid,Ask,Volume,IV,Delta,Gamma,Open Interest\r\n" +
		"Fri Apr 17 2026,SPX260417C06700000,388.5,0,387.5,388.9,7,0.17,0.59,0.0004,1200,6700.00,SPX260417P06700000,251.2,-7.4,251.5,252.6,3,0.1701,-0.41,0.0004,%d\r\n"
	download2020 = "SPY (SPDR S&P 500 ETF Trust),310.68,1.98\nJun 22 2020 @ 20:42 ET,Bid,0,Ask,0,Size,0x0,Vol,74649389\n" +
		"Expiration Date,Calls,Last Sale,Net,Bid,Ask,Vol,IV,Delta,Gamma,Open Int,Strike,Puts,Last Sale,Net,Bid,Ask,Vol,IV,Delta,Gamma,Open Int\n" +
		"07/17/2020,SPY200717C00310000,7.1,0.3,7.05,7.1,10,0.25,0.52,0.01,900,310.000,SPY200717P00310000,6.7,0,6.65,6.7,5,0.251,-0.48,0.01,800\n"
)

// A folder of downloads becomes a history in two commands. A download in the night or on a weekend is of the session before. Of two of a session,
// that of its day stays. On the day after Thanksgiving the exchange closes early. A file that is none is named and skipped.
func TestHistoryOfDownloads(t *testing.T) {
	t.Parallel()
	from, history, in := t.TempDir(), t.TempDir(), newInbox(t)
	for name, body := range map[string]string{
		"1/quotedata.csv": fmt.Sprintf(downloadToday, "October 1, 2025 at 6:01 PM EDT", 268), "2/quotedata.csv": fmt.Sprintf(downloadToday, "October 2, 2025 at 3:11 AM EDT", 999),
		"3/quotedata.csv": fmt.Sprintf(downloadToday, "October 5 2025, 8:09 PM EDT", 277), "4/quotedata.csv": "<!DOCTYPE html>",
		"6/quotedata.csv": fmt.Sprintf(downloadToday, "November 28, 2025 at 6:01 PM EST", 268), "quotedata.dat": download2020, "5/notes.txt": "",
		"0/day.csv": fmt.Sprintf(downloadToday, "February 30, 2025 at 6:01 PM EST", 268), "0/head.csv": strings.Replace(download2020, ",310.68,1.98", "", 1), "0/latin.csv": "\xff",
	} {
		writeFile(t, filepath.Join(from, name), body)
	}
	out, stderr, code := collect(t, "--downloads", history, from)
	if code != 1 || !strings.Contains(out, "9 files, 4 skipped, 4 chains in "+history) {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	for _, skipped := range []string{"0/day.csv: ", "0/head.csv: ", "0/latin.csv: ", "4/quotedata.csv: is no download"} {
		if strings.Count(stderr, skipped) != 1 {
			t.Errorf("%s is not named once: %s", skipped, stderr)
		}
	}
	if out := does(t, "check", history); !strings.Contains(out, ": 4 of 4 sessions would be played\n  1 of options/SPY.json\n  3 of options/_SPX.json\n") {
		t.Errorf("check: %s", out)
	}
	spx := upstream.Options("_SPX")
	in.put(spx, in.made(spx))
	p := serve(t, "--source", "folder", "--folder", in.dir, "--source-name", "acme-data", "--underlyings", "SPX,SPY", "--history", history)
	p.until("the history is played", func() bool {
		_, body := p.get("/readyz")
		return strings.Contains(string(body), `"history":"4 of 4"`)
	})
	for path, want := range map[string]string{
		gammaPath + "/historical?date=2025-10-01": `"captured_at":"2025-10-01T22:01:00Z"`, gammaPath + "/historical?date=2025-10-03": `"as_of":"2025-10-03T20:14:59Z"`, gammaPath + "/historical?date=2025-11-28": `"as_of":"2025-11-28T18:14:59Z"`,
		"/api/v1/gex/spy/historical?date=2020-06-22": `"captured_at":"2020-06-23T00:42:00Z"`,
	} {
		if resp, body := p.get(path); resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) || !strings.Contains(string(body), `"source":"acme-data"`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if _, stderr, code := run(t, command(t, "serve", "--history", history)); code == 0 || !strings.Contains(stderr, "the simulated market is never mixed with one") {
		t.Errorf("with a simulated market: exit %d, %s", code, stderr)
	}
}
