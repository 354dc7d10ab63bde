package fleet

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/snapshots"
)

// TestRefused publishes what no member may accept. Each file is refused, named and counted, and nothing of it is written. What can be taken is.
func TestRefused(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	o := newOperator(t, at)
	a.stop() // else it publishes its own again
	const date = "2026-11-20"
	of := func(source, product, data string, asOf time.Time) []byte {
		store, err := snapshots.Open(snapshots.Options{Dir: t.TempDir(), Source: source, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		defer store.Close()
		f := sealed(t, source, product, data, asOf)
		must(t, store.Save([]snapshots.File{f}, nil))
		b, _, err := store.Bytes(f.Date() + "/" + snapshots.FileName(product))
		must(t, err)
		return b
	}
	good := of("simulated", pain, `"new, and long enough"`, friday.Add(time.Hour))
	path := date + "/" + snapshots.FileName(pain)
	until(t, "the edge is at rest", func() bool { return e.files()[date+"/gex-spx"] != "" })
	altered := bytes.Clone(good)
	altered[len(altered)/2] ^= 1
	for _, c := range []struct {
		what, path, reason string
		file               []byte
	}{
		{"altered", path, "corrupt", altered},
		{"truncated", path, "corrupt", func(b []byte) []byte { return b[:len(b)-1] }(of("simulated", pain, `"torn"`, friday))},
		{"empty", path, "corrupt", nil},
		{"no file", path, "corrupt", []byte("hello\n")},
		{"under another date", "2026-11-19/" + pain, "corrupt", good},
		{"under another product", date + "/gex-spx", "corrupt", good},
		{"newer format", path, "format", bytes.Replace(good, []byte(`"format":1`), []byte(`"format":9`), 1)},
		{"other source", path, "foreign", of("cboe", pain, `1`, friday)},
		{"unknown product", date + "/new-product", "foreign", of("simulated", "new/product", `1`, friday)},
		{"older", date + "/gex-spx", "older", of("simulated", gamma, `"old"`, friday.Add(-time.Minute))},
		{"of the year 2099", "2099-11-20/" + pain, "foreign", of("simulated", pain, `"never replaced"`, time.Date(2099, 11, 20, 15, 0, 0, 0, time.UTC))},
		{"absolute", "/etc/passwd", "path", good},
		{"escaping", date + "/../../x", "path", good},
		{"temporary", date + "/.tmp-x-1", "path", good},
		{"no date", "identity", "path", good},
		{"100 MB", path, "size", make([]byte, 100_000_000)},
	} {
		t.Run(c.what, func(t *testing.T) {
			before, files := e.Status().Refused, e.files()
			digest := o.put("", c.file)
			if _, rest, found := strings.Cut(string(c.file), `"sha256":"`); found {
				digest = o.put(rest[:64], c.file)
			}
			list, _ := json.Marshal(map[string]string{c.path: digest})
			o.publish(func(m *manifest) { m.Dates = map[string]string{date: o.put("", list)} })
			until(t, "refused as "+c.reason, func() bool { return e.Status().Refused[c.reason] > before[c.reason] && e.Complete() })
			until(t, "the log names "+c.path, func() bool { return e.log.has("object=" + c.path + " ") })
			if now := e.files(); !maps.Equal(now, files) {
				t.Errorf("files changed: %d, before %d", len(now), len(files))
			}
		})
	}
	for what, c := range map[string]struct {
		change func(*manifest)
		says   string
	}{
		"a list that is none":      {func(m *manifest) { m.Dates[date] = o.put("", []byte("{{{")) }, "get the list of " + date},
		"a list without end":       {func(m *manifest) { m.Dates[date] = o.put("", bytes.Repeat([]byte(" "), maxJSON+1)) }, "too large"},
		"a list of another digest": {func(m *manifest) { m.Dates[date] = o.put(strings.Repeat("1", 64), []byte("{}")) }, "get the list of " + date},
		"a list that is not there": {func(m *manifest) { m.Dates[date] = strings.Repeat("2", 64) }, "get the list of " + date},
		"a current answer that is old": {func(m *manifest) {
			old := of("simulated", gamma, `"old"`, friday.Add(-time.Minute))
			_, rest, _ := strings.Cut(string(old), `"sha256":"`)
			m.Resources[gamma] = Served{SHA256: o.put(rest[:64], old)}
		}, "1 answers of the refresher are refused, such as gex/spx"},
	} {
		o.publish(func(m *manifest) { m.Dates = map[string]string{}; c.change(m) })
		until(t, what+" is told", func() bool { err := e.Status().Err; return err != nil && strings.Contains(err.Error(), c.says) })
	}
	if f, err := e.store.LoadCurrent(gamma); err != nil || string(f.Edition.Default.Data()) != `"1"` {
		t.Errorf("the edge has lost its answer: %v", err)
	}
}
