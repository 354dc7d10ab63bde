package snapshots

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"strikecache/bench/testkit"
)

// of returns an answer of gex/spx with other instants; the text is its data.
func of(t testing.TB, text string, at time.Time, captured *time.Time, computed time.Duration) *Snapshot {
	t.Helper()
	m := meta()
	m.AsOf, m.CapturedAt, m.ComputedAt = at, captured, m.ComputedAt.Add(computed)
	return sealedWith(t, `"`+text+`"`, m)
}

// An older answer replaces a newer one nowhere: not in current/, not under a date, not in what is served, whether it was computed
// here or came from another store, also after a start. An equally new one does, such as an answer with another freshness, and one that was
// computed later.
func TestOlderNeverReplacesNewer(t *testing.T) {
	early, late := asOf.Add(time.Minute), asOf.Add(time.Hour)
	day := 24 * time.Hour
	for _, c := range []struct {
		name           string
		at             time.Time
		captured       *time.Time
		computed       time.Duration // after the first
		current, dated string        // what is stored afterwards, in current/ and under friday
	}{
		{"the same", asOf, &late, 0, "next", "next"},
		{"of a later document", asOf, new(late.Add(1e9)), -1e9, "next", "next"},
		{"of an earlier document", asOf, &early, -1e9, "first", "first"},
		{"of a document without a time", asOf, nil, -1e9, "first", "first"},
		{"of a later instant", asOf.Add(time.Second), nil, -1e9, "next", "next"},
		{"of an earlier instant", asOf.Add(-time.Second), &late, -1e9, "first", "first"},
		{"of the day before", asOf.Add(-day), &late, -1e9, "first", "first"},
		{"of the day after", asOf.Add(day), &late, 1e9, "next", "first"},
		{"of an earlier instant, computed later: the market corrects itself", asOf.Add(-time.Second), &late, 1e9, "next", "next"},
		{"of an earlier document, computed at once", asOf, &early, 0, "next", "next"},
	} {
		o, log := options(t.TempDir()), &testkit.Text{}
		o.Log = log.Logger(slog.LevelWarn)
		sent := map[string][]Packed{}
		o.Publish = func(files []Packed) (func(), error) {
			sent[string(files[0].Answer.Default.Data())] = files
			return func() {}, nil
		}
		first, next, other := of(t, "first", asOf, &late, 0), of(t, "next", c.at, c.captured, c.computed), of(t, "other", asOf.Add(-day), nil, 0)
		answer := func(s *Snapshot) File {
			return File{Product: gamma, Edition: &Edition{Default: s}, Current: true, Dated: true}
		}
		s := openWith(t, o)
		must(t, s.Save([]File{answer(first)}, nil))
		must(t, s.Publish(map[string]*Edition{gamma: {Default: first}}))
		s = reopen(t, s)
		must(t, s.Publish(map[string]*Edition{gamma: {Default: first}}))
		file := answer(other)
		file.Product = pain
		must(t, s.Save([]File{answer(next), file}, nil))
		published := map[string]*Edition{gamma: {Default: next}, pain: {Default: other}}
		must(t, s.Publish(published))

		got, err := s.LoadCurrent(gamma)
		must(t, err)
		equal(t, string(got.Edition.Default.Data()), `"`+c.current+`"`, "%s: current", c.name)
		equal(t, string(s.Current(gamma).Default.Data()), `"`+c.current+`"`, "%s: served", c.name)
		equal(t, historical(t, s, friday), c.dated, "%s: dated", c.name)
		if next.Date() != friday {
			equal(t, historical(t, s, next.Date()), "next", "%s: under its own date", c.name)
		}
		_, err = s.LoadCurrent(pain)
		failIf(t, err != nil || s.Current(pain).Default != other, "%s: the other product is left out, too: %v", c.name, err)
		older := 0
		if c.current == "first" {
			older = 1
		}
		failIf(t, log.Count("older answer not stored") != older || len(published) != 2-older, "%s: %s", c.name, log)

		_, file2, err := encodeFile(new(answer(next)))
		must(t, err)
		to := open(t, t.TempDir())
		must(t, to.Save([]File{answer(first)}, nil))
		to = reopen(t, to)
		h, _, err := unframe(file2, key{currentDir, "gex-spx"})
		must(t, err)
		err = to.Accept("current/gex-spx", h.SHA256, file2, []string{gamma}, asOf.Add(2*day))
		failIf(t, errors.Is(err, ErrOlder) != (older == 1) || older == 0 && err != nil, "%s: accepted with %v", c.name, err)
	}
}

// An answer of the future, made while a clock was ahead, keeps no other out.
func TestAnAnswerOfTheFuture(t *testing.T) {
	for latest, want := range map[time.Time]string{asOf: "first", asOf.Add(-time.Second): "next"} {
		o := options(t.TempDir())
		o.Latest = func() time.Time { return latest }
		s := openWith(t, o)
		for _, text := range []string{"first", "next"} {
			one := of(t, text, asOf, nil, 0)
			if text == "next" {
				one = of(t, text, asOf.Add(-time.Hour), nil, -1e9)
			}
			must(t, s.Save([]File{{Product: gamma, Edition: &Edition{Default: one}, Current: true}}, nil))
			must(t, s.Publish(map[string]*Edition{gamma: {Default: one}}))
		}
		got, err := s.LoadCurrent(gamma)
		must(t, err)
		equal(t, string(got.Edition.Default.Data()), `"`+want+`"`, "stored, where the latest instant is %s", latest)
		equal(t, string(s.Current(gamma).Default.Data()), `"`+want+`"`, "served, where the latest instant is %s", latest)
	}
}
