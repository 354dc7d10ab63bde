package refresh_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/folder"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// keptSessions is how many sessions an archive has: one has no rank before the 60th.
const keptSessions = 71

const lastKept = "2026-11-19"

// archive is what a user has saved in the evenings, after midnight UTC: a chain of each of two underlyings and the settlements of each session,
// and of the last one also what the rotation rests on.
type archive struct {
	t   testing.TB
	dir string
}

// thin is a market whose chains have few strikes, yet enough for a volatility of SPX with every 20th and of XLF with every fifth.
func thin(every int, now func() time.Time) *simulated.Market {
	return simulated.New(simulated.Config{Seed: 7, Now: now, Calendar: calendar, Every: every})
}

// kept returns the files of an archive, by path.
var kept = sync.OnceValue(func() map[string][]byte {
	files := map[string][]byte{}
	last, _ := compute.ParseDate(lastKept)
	for d := calendar.Back(last, keptSessions-1); d <= last; d = calendar.Next(d) {
		names := []upstream.Name{upstream.Options("_SPX"), upstream.Options("XLF"), upstream.Settlement(d.String()), upstream.Quotes("_VIX"), upstream.Quotes("_VIX3M")}
		if d == last {
			names = append(names, upstream.Quotes("XLF"), upstream.Quotes("SPY"), upstream.History("XLF"), upstream.History("SPY"))
		}
		for _, name := range names {
			every := 20
			if name == upstream.Options("XLF") {
				every = 5
			}
			doc, err := thin(every, nil).At(name, d.At(19, 40, 0, compute.NewYork))
			if err != nil {
				panic(err)
			}
			files[d.String()+"/"+string(name)+".gz"] = pack(doc.Body)
		}
	}
	return files
})

// newArchive writes the last sessions of an archive into a folder.
func newArchive(t testing.TB, sessions int) *archive {
	a := &archive{t, t.TempDir()}
	last, _ := compute.ParseDate(lastKept)
	for path, body := range kept() {
		if path >= calendar.Back(last, sessions-1).String() {
			a.put(path, body)
		}
	}
	return a
}

func (a *archive) put(path string, body []byte) {
	a.t.Helper()
	path = filepath.Join(a.dir, filepath.FromSlash(path))
	must(a.t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, body, 0o600))
}

// past lets a rig play the archive. Its source has today's documents of the same market.
func (a *archive) past(c *refresh.Config) {
	var err error
	c.Past, err = folder.NewPast(a.dir, calendar)
	must(a.t, err)
	c.Kept, c.Source.Source = true, thin(20, c.Clock.Now)
}

// replay runs a rig that replays the folder of a date.
func (a *archive) replay(t *testing.T, date string, underlyings []string, change func(*refresh.Config), check func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), date+" 11:00", func(c *refresh.Config) {
			source, err := folder.NewRecorded(filepath.Join(a.dir, date))
			must(t, err)
			c.Underlyings, c.Source.Source, c.Recorded, c.Clock = underlyings, source, true, feed.NewClock(source.Now(), 0)
			change(c)
		})
		r.run(time.Minute)
		check(r)
	})
}

// dates returns the files of the dates of an archive.
func (r *rig) dates() map[string][]byte {
	files := tree(r.t, filepath.Join(r.dir, "simulated"))
	maps.DeleteFunc(files, func(path string, _ []byte) bool {
		return !strings.HasPrefix(path, "/20") || path[1:1+len(lastKept)] > lastKept
	})
	return files
}

// interrupted is a past that counts its documents, each once, and during which a process ends.
type interrupted struct {
	refresh.Past
	seen  sync.Map
	found int
	asked []string // the chains, each time
	last  int      // the document at which it ends; 0: it does not
	end   func()
}

func (p *interrupted) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	doc, err := p.Past.At(name, at)
	if _, again := p.seen.LoadOrStore(string(name)+at.String(), true); err == nil && !again {
		p.found++
	}
	if kind, _ := name.Split(); kind == upstream.OptionsKind {
		p.asked = append(p.asked, compute.DateOf(at).String()+" "+string(name))
	}
	if p.found == p.last {
		p.end()
	}
	return doc, err
}

// What a user has kept is played once, oldest session first, and belongs to the dates that it describes. Its answers are those of a replay of each
// date, but for what compares with earlier sessions.
func TestKeptHistory(t *testing.T) {
	long(t)
	a, dates, played := newArchive(t, keptSessions), []string{"2026-11-17", lastKept}, map[string]map[string]any{}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", a.past)
		r.run(time.Minute)
		if r.History() != "71 of 71" || r.log.Len() > 0 {
			t.Errorf("%s: %s", r.History(), r.log)
		}
		r.columns("gex/spx/series", keptSessions+1, func(int, map[string]any) {})
		for _, u := range []string{"spx", "xlf"} {
			values := 0
			r.columns("volatility/"+u+"/series", keptSessions+1, func(n int, row map[string]any) {
				if row["atm_30d"] != nil {
					values++
				}
				if known := row["rank_1y"] != nil; known != (values >= 60) && row["atm_30d"] != nil {
					t.Errorf("volatility/%s of the session %d has a rank with %d values: %v", u, n, values, known)
				}
			})
			if values < 65 {
				t.Errorf("volatility/%s has %d values", u, values)
			}
		}
		r.columns(product.VIXSeriesResource, keptSessions, func(n int, row map[string]any) {
			if row["spot_basis_pct"] == nil {
				t.Errorf("the curve %d has no close of VIX", n)
			}
		})
		f, err := r.store.Load(product.GammaResource, lastKept)
		must(t, err)
		meta, data := f.Edition.Default.Meta, string(f.Edition.Default.Data())
		if !meta.ComputedAt.Equal(*meta.CapturedAt) || meta.Freshness.State != "closed" || !strings.Contains(data, `"changes":{"reference_as_of":"2026-11-18T21:14:59Z"`) {
			t.Errorf("computed %s, captured %s, %s %s", meta.ComputedAt, meta.CapturedAt, meta.Freshness.State, data)
		}
		for _, date := range dates {
			for _, name := range []string{"gex/spx", "gex/xlf"} {
				f, err := r.store.Load(name, date)
				must(t, err)
				played[date+name] = withoutHistory(t, f.Edition.Default.Data())
			}
		}
		identical(t, r.dir, lastKept, "gex/spx", "gex/xlf", "options/flow/spx", "options/flow/xlf", product.FlowResource, "spx-max-pain", "xlf-max-pain", "sectors/rotation", "vix-term-structure", "volatility/spx", "volatility/xlf")
	})
	for _, date := range dates {
		a.replay(t, date, underlyings, func(*refresh.Config) {}, func(r *rig) {
			for _, name := range []string{"gex/spx", "gex/xlf"} {
				if got := withoutHistory(t, r.store.Current(name).Default.Data()); !reflect.DeepEqual(got, played[date+name]) || len(got) < 10 {
					t.Errorf("%s of %s: replayed %v, played %v", name, date, got, played[date+name])
				}
			}
		})
	}
}

// columns calls a function for each row of a current series, numbered from 1, with the values by column.
func (r *rig) columns(resource string, rows int, check func(n int, row map[string]any)) {
	r.t.Helper()
	var table struct {
		Columns []string
		Rows    [][]any
	}
	r.data(resource, &table)
	if len(table.Rows) != rows {
		r.t.Errorf("%s has %d rows, want %d", resource, len(table.Rows), rows)
	}
	for i, values := range table.Rows {
		row := map[string]any{}
		for j, column := range table.Columns {
			row[column] = values[j]
		}
		check(i+1, row)
	}
}

// withoutHistory returns the data of an answer without what rests on earlier sessions.
func withoutHistory(t testing.TB, data []byte) (all map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(data, &all))
	for _, name := range []string{"changes", "open_interest_changes", "sessions"} {
		delete(all, name)
	}
	return all
}

// A file that cannot be used is named, and stops nothing else.
func TestBadKeptFiles(t *testing.T) {
	long(t)
	a := newArchive(t, 6)
	const spx = "/options/_SPX.json.gz"
	torn := kept()["2026-11-18"+spx]
	a.put("2026-11-18"+spx, torn[:len(torn)/2])
	a.put("2026-11-17"+spx, kept()["2026-11-17/options/XLF.json.gz"])
	a.put("2026-11-16"+spx, kept()["2026-11-13"+spx])
	a.put("2026-11-13"+spx, []byte(htmlPage))
	a.put("2026-11-15"+spx, kept()["2026-11-16"+spx]) // a Sunday
	a.put("2026-11-12/quotes/XLF.json", []byte("{}"))
	a.put("2026-11-12/quotes/AAPL.json", []byte("{}"))
	a.put("2026-11-12/notes.txt", nil)
	a.put("2026-11-11", nil) // a file, not a folder
	zip, err := gzip.NewReader(bytes.NewReader(kept()["2026-11-12/options/XLF.json.gz"]))
	must(t, err)
	text, err := io.ReadAll(zip)
	must(t, err)
	a.put("2026-11-12/options/XLF.json", regexp.MustCompile(`"open_interest":[0-9.]+`).ReplaceAll(text, []byte(`"open_interest":0`))) // no figure
	var report bytes.Buffer
	closed := refresh.CheckCommand{Files: []string{a.dir}}
	closed.ClosedDates = filepath.Join(t.TempDir(), "closed")
	must(t, os.WriteFile(closed.ClosedDates, []byte("2026-11-19\n"), 0o600))
	_ = closed.Run(&report) // the same files are refused
	says(t, "the archive, with a closed date", report.String(), ": 5 of 5 sessions would be played\n", "  NOT USED: 2026-11-19 is no session of the exchange\n")
	report.Reset()
	if err := (&refresh.CheckCommand{Files: []string{a.dir}}).Run(&report); err == nil || err.Error() != "check: a server would refuse 5 of 35 files" {
		t.Errorf("%v", err)
	}
	says(t, "the archive", report.String(), a.dir+": 6 of 6 sessions would be played\n  1 of charts/historical/SPY.json\n", "  6 of options/XLF.json\n  2 of options/_SPX.json\n", "  6 of settlement/DATE.csv\n",
		"  NOT USED: 1 of other paths\n  NOT USED: 1 of quotes/AAPL.json\n  NOT USED: 2026-11-15 is no session of the exchange\n",
		"/2026-11-18/options/_SPX.json: REFUSED as upstream_truncated: unexpected EOF\n", "/2026-11-16/options/_SPX.json: REFUSED as upstream_older: its last trade, 2026-11-13T21:14:59Z, is of a session before 2026-11-16\n  the folder of a date")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-20 11:00", a.past)
		r.run(time.Minute)
		for _, line := range []string{
			"date=2026-11-18 err=\"options/_SPX.json: fetch options/_SPX.json: upstream_truncated", "date=2026-11-17 err=\"options/_SPX.json: fetch options/_SPX.json: upstream_malformed: document is malformed: document of _SPX has the symbol",
			"date=2026-11-16 err=\"options/_SPX.json: upstream_older: its last trade, 2026-11-13T21:14:5", "date=2026-11-13 err=\"options/_SPX.json: fetch options/_SPX.json: upstream_html",
			"date=2026-11-12 err=\"quotes/XLF.json: fetch quotes/XLF.json: upstream_", "date=2026-11-12 err=\"upstream_empty: gex/xlf: no contract can be used", "6 documents or answers of past sessions cannot be used",
		} {
			if strings.Count(r.log.String(), line) != 1 {
				t.Errorf("the log lacks %s:\n%s", line, r.log)
			}
		}
		missing := []string{"2026-11-13", "2026-11-16", "2026-11-17", "2026-11-18"}
		for date := range maps.Keys(r.dates()) {
			if strings.HasSuffix(date, "/gex-spx") && slices.Contains(missing, date[1:11]) {
				t.Errorf("%s was stored", date)
			}
		}
		if n, xlf := len(r.store.DatesOf("gex/spx")), len(r.store.DatesOf("gex/xlf")); n != 3 || xlf != 6 {
			t.Errorf("%d and %d dates", n, xlf)
		}
	})
}

// The real chains of SPX of March and April 2023 are played as an archive. The volatility of 30 days is the VIX that Cboe
// published for the close, where the chain is of an evening whose quotes stand still: of a Friday.
func TestRealKeptHistory(t *testing.T) {
	long(t)
	chains, err := filepath.Glob(filepath.Join(testkit.Shared(t, "recorded/chains"), "SPX-2023-0[34]-*.json.gz"))
	must(t, err)
	a, published := &archive{t, t.TempDir()}, map[string]float64{"2023-03-17": 25.51, "2023-04-14": 17.07}
	for _, chain := range chains { // of two evenings of a date, the later stays
		body, err := os.ReadFile(chain)
		must(t, err)
		a.put(strings.TrimPrefix(filepath.Base(chain), "SPX-")[:len(lastKept)]+"/options/_SPX.json.gz", body)
	}
	past := func(c *refresh.Config) {
		var err error
		c.Past, err = folder.NewPast(a.dir, calendar)
		c.Kept = true
		must(t, err)
	}
	a.replay(t, "2023-04-14", one, past, func(r *rig) {
		r.columns("gex/spx/series", 7, func(int, map[string]any) {})
		r.columns("volatility/spx/series", 7, func(_ int, row map[string]any) {
			date := row["date"].(string)
			if vix := published[date]; vix > 0 && math.Abs(row["model_free_30d"].(float64)-vix) > 0.02 {
				t.Errorf("%s: volatility of 30 days %v, VIX %v", date, row["model_free_30d"], vix)
			}
		})
	})
}
