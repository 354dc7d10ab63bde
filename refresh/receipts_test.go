package refresh_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// receipts maps each receipt that a test has seen to its data.
type receipts map[string]string

// check fails unless the receipt of a current answer names these inputs, each is in the archive under its digest, and the
// same receipt had the same data before.
func (seen receipts) check(r *rig, resource, parameters string, names ...string) {
	r.t.Helper()
	e := r.store.Current(resource)
	receipt := e.Default.Meta.Receipt
	var got, sums []string
	for _, in := range receipt.Inputs {
		got, sums = append(got, in.Name), append(sums, in.SHA256)
		if _, err := archive.ReadDocument(archive.Dir(r.dir, "simulated"), in.SHA256); err != nil { // it compares the digest
			r.t.Errorf("%s: %s %s: %v", resource, in.Name, in.SHA256, err)
		}
	}
	if !slices.Equal(got, names) || !slices.Equal(sums, receipt.InputSHA256) || string(receipt.Parameters) != parameters {
		r.t.Errorf("%s: receipt %+v with parameters %s, want %s and inputs %q", resource, receipt, receipt.Parameters, parameters, names)
	}
	of, data := fmt.Sprint(resource, receipt.Method, parameters, receipt.Inputs), string(e.Default.Data())
	if before, found := seen[of]; found && before != data {
		r.t.Errorf("%s: other data under the receipt %s", resource, of)
	}
	seen[of] = data
}

// fundDocuments returns the names of the inputs of a rotation.
func fundDocuments() (names []string) {
	for _, symbol := range compute.FundSymbols() {
		names = append(names, string(upstream.Quotes(symbol)), string(upstream.History(symbol)))
	}
	return names
}

const spx = "options/_SPX.json"

// Every answer names all its inputs: over two sessions and a night, with quotes of the evening and histories.
func TestReceiptsNameEveryInput(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-18 16:40")
		defer r.close()
		seen := receipts{}
		for _, at := range []struct{ time, settled, closes, session string }{
			{"2026-11-18 16:40", "2026-11-17", "charts/historical/", "2026-11-18"}, // the quotes are of the 18th
			{"2026-11-18 18:50", "2026-11-18", "quotes/", "2026-11-18"},
			{"2026-11-18 20:30", "2026-11-18", "quotes/", "2026-11-18"}, // a late gamma answer
			{"2026-11-19 11:00", "2026-11-18", "quotes/", "2026-11-19"},
			{"2026-11-19 11:05", "2026-11-18", "quotes/", "2026-11-19"},
		} {
			time.Sleep(ny(t, at.time).Sub(r.clock.Now()))
			r.once()
			gamma, parameters := []string{spx, "state/gex-carry"}, fmt.Sprintf(`{"risk_free_rate":%v}`, rate)
			seen.check(r, refresh.MatrixResource, parameters, gamma...)
			if at.session == "2026-11-19" {
				gamma = append(gamma, "state/gex-reference")
			}
			seen.check(r, refresh.GammaResource, parameters, gamma...)
			seen.check(r, refresh.SeriesResource, `{}`, spx, "state/series-rows")
			seen.check(r, refresh.PainResource, `{}`, spx)
			flow := []string{spx, "options/XLF.json"}
			if at.session == "2026-11-19" {
				flow = append(flow, "state/iv-SPX", "state/iv-XLF")
			}
			seen.check(r, refresh.FlowResource, `{}`, flow...)
			seen.check(r, refresh.SectorsResource, `{}`, fundDocuments()...)
			seen.check(r, refresh.VIXResource, fmt.Sprintf(`{"stale_sessions_to":%q}`, at.session),
				"settlement/"+at.settled+".csv", at.closes+"_VIX.json", at.closes+"_VIX3M.json", "state/vix-history")
		}
		// The row of each date names the gamma snapshot that a client can fetch.
		var rows []struct{ Snapshot string }
		if err := json.Unmarshal([]byte(inputOf(t, dir, refresh.SeriesResource, "2026-11-19", "state/series-rows")), &rows); err != nil {
			t.Fatal(err)
		}
		for i, date := range []string{"2026-11-18", "2026-11-19"} {
			past, err := r.store.Historical(refresh.GammaResource, date)
			if err != nil || len(rows) != 2 || rows[i].Snapshot != past.Meta.Receipt.DataSHA256 {
				t.Errorf("%s: %v, rows of the snapshots %v", date, err, rows)
			}
		}
	})
}

// Every receipt names the closures that the operator added. A start without these closures computes the answers again.
func TestReceiptsNameClosedDates(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, dir, "2026-11-20 17:10", func(c *refresh.Config) {
			c.Calendar = compute.NewCalendar([]compute.Date{compute.NewDate(2026, time.December, 3)}, []compute.Date{compute.NewDate(2026, time.December, 4)})
		})
		r.once()
		has := func(resource string) bool {
			names := fmt.Sprint(r.meta(resource).Receipt.Inputs)
			return strings.Contains(names, "state/closed-dates")
		}
		for _, resource := range allResources {
			if !has(resource) {
				t.Errorf("%s: receipt without closed dates", resource)
			}
		}
		text := inputOf(t, dir, refresh.GammaResource, "2026-11-20", "state/closed-dates")
		if !strings.Contains(text, `"2026-12-03"`) || !strings.Contains(text, `"early":["2026-12-04"]`) {
			t.Errorf("closed dates: %s", text)
		}
		identical(t, dir, "2026-11-20", quoted...)
		r.close()
		r = newRig(t, dir, "2026-11-20 17:15")
		defer r.close()
		r.market.Fail("", faultHTMLPage, -1)
		if err := errors.Join(r.Restore(), r.Resume()); err != nil {
			t.Fatal(err)
		}
		for _, resource := range allResources {
			if has(resource) {
				t.Errorf("%s: the answer of another calendar is served", resource)
			}
		}
		identical(t, dir, "2026-11-20", quoted...)
	})
}

// asBefore rewrites a stored answer and its recipe as the previous version wrote them: without parameters and without
// states in the receipt.
func asBefore(t *testing.T, r *rig, product, date, method, recipe string) {
	t.Helper()
	var documents []archive.Input
	for _, in := range recipeOf(t, r.dir, product, date).Inputs {
		state := strings.HasPrefix(in.Name, "state/")
		if close := product == refresh.VIXResource && strings.Contains(in.Name, "_VIX"); !state && !close {
			documents = append(documents, in)
		}
	}
	var at time.Time
	changed(t, r, product, date, func(data string, meta *snapshots.Meta) string {
		at = meta.ComputedAt
		meta.Receipt = snapshots.Receipt{Method: method}
		for _, in := range documents {
			meta.Receipt.InputSHA256 = append(meta.Receipt.InputSHA256, in.SHA256)
		}
		return data
	})
	inputs, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"product":%q,"date":%q,"method":%q,"build":%q,"computed_at":%q,"risk_free_rate":0.04,"closed":["2025-01-09"],"inputs":%s%s}`+"\n",
		product, date, method, refresh.Build(), at.Format(time.RFC3339), inputs, recipe)
	text := fmt.Sprintf(`{"format":1,"sha256":"%x"}`+"\n%s", sha256.Sum256([]byte(body)), body)
	file := filepath.Join(archive.Dir(r.dir, "simulated"), date+"_"+snapshots.FileName(product)+".json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// closes are the closes in a VIX curve.
type closes struct {
	VIX   *float64 `json:"vix"`
	VIX3M *float64 `json:"vix3m"`
}

func (c closes) String() string { return fmt.Sprint(*c.VIX, *c.VIX3M) }

// storeAsBefore stores a day as the previous version did, and returns the closes in its curve.
func storeAsBefore(t *testing.T, dir, date string) (c closes) {
	t.Helper()
	r := newRig(t, dir, date+" 16:40")
	defer r.close()
	r.once()
	time.Sleep(ny(t, date+" 18:50").Sub(r.clock.Now()))
	r.once()
	r.data(refresh.VIXResource, &c)
	state, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	asBefore(t, r, refresh.GammaResource, date, "gex/0", `,"state":{"carry":[]}`)
	asBefore(t, r, refresh.PainResource, date, compute.MaxPainMethod, "")
	asBefore(t, r, refresh.SectorsResource, date, compute.SectorsMethod, "")
	asBefore(t, r, refresh.VIXResource, date, "vix/0", `,"state":{"closes":`+string(state)+`,"history":[]}`)
	for _, index := range []string{"_VIX", "_VIX3M"} {
		if err := os.Remove(filepath.Join(dir, "simulated", date, "state-quotes-"+index+".json")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.store.SaveState("vix-closes", date, state); err != nil {
		t.Fatal(err)
	}
	return c
}

// Answers that the previous version stored are served as they are, and computed again from their recipes. Their files stay.
// recompute does not compare them with numbers of another method.
func TestWhatTheVersionBeforeStored(t *testing.T) {
	long(t)
	const date = "2026-11-19"
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		was := storeAsBefore(t, dir, date)
		before := tree(t, filepath.Join(dir, "simulated", date))
		r := newRig(t, dir, "2026-11-20 08:00")
		defer r.close()
		r.market.Fail("", faultHTMLPage, -1)
		if err := r.Restore(); err != nil {
			t.Fatal(err)
		}
		resources := []string{refresh.GammaResource, refresh.PainResource, refresh.SectorsResource, refresh.VIXResource}
		for _, resource := range resources {
			current := r.store.Current(resource).Default
			if receipt := current.Meta.Receipt; receipt.Inputs != nil || bytes.Contains(current.Body(snapshots.Identity), []byte(`"parameters"`)) {
				t.Errorf("%s: restored with the receipt %+v", resource, receipt)
			}
		}
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
		for _, resource := range resources {
			if receipt := r.meta(resource).Receipt; receipt.Inputs == nil || strings.HasSuffix(receipt.Method, "/0") {
				t.Errorf("%s: not computed anew: %+v", resource, receipt)
			}
		}
		var now closes
		if r.data(refresh.VIXResource, &now); now.String() != was.String() {
			t.Errorf("closes %v after %v", now, was)
		}
		for name, body := range tree(t, filepath.Join(dir, "simulated", date)) {
			if !strings.HasSuffix(name, "@late") && !bytes.Equal(before[name], body) {
				t.Errorf("a start wrote %s", name)
			}
		}
		found := recomputeAll(t, dir, date)
		for product, methods := range map[string][2]string{
			refresh.GammaResource: {"gex/0", compute.GammaMethod}, refresh.VIXResource: {"vix/0", compute.VIXMethod},
			refresh.PainResource: {}, refresh.SectorsResource: {},
		} {
			if f := found[product]; f.Methods != methods || f.Differences != nil || f.Gone != nil {
				t.Errorf("%s: %+v, want methods %q", product, f, methods)
			}
		}
		var out bytes.Buffer
		command := refresh.RecomputeCommand{Date: date, DataDir: dir, Source: "simulated", Product: refresh.GammaResource}
		var outcome *refresh.Outcome
		if err := command.Run(&out); !errors.As(err, &outcome) || outcome.ExitCode() != 3 ||
			out.String() != "gex/spx method_changed: stored by gex/0, this version has "+compute.GammaMethod+"\n" {
			t.Errorf("%v: %s", err, &out)
		}
	})
}

// However long the disk refuses archived inputs, the log says once that it does and once that it is over, with the number of
// refused writes.
func TestOutageOfTheArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var log bytes.Buffer
		r := newRig(t, dir, "2026-11-20 11:00", func(c *refresh.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		defer r.close()
		inputs := archive.Dir(dir, "simulated")
		if err := os.WriteFile(inputs, nil, 0o600); err != nil { // a file in place of the directory
			t.Fatal(err)
		}
		for range 2 {
			if err := refresh.RefreshSPX(r.Refresher, t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if err := os.Remove(inputs); err != nil {
			t.Fatal(err)
		}
		if err := refresh.RefreshSPX(r.Refresher, t.Context()); err != nil {
			t.Fatal(err)
		}
		// In each of the two refreshes, the recipes are refused before the files are written, and again after it.
		for _, line := range []string{"disk refuses archived inputs", "all archived inputs saved", "refused_writes=4\n"} {
			if n := strings.Count(log.String(), line); n != 1 {
				t.Errorf("%q is logged %d times: %s", line, n, log.String())
			}
		}
	})
}
