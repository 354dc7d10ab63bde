//go:build unix

package refresh_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// cpuTime returns the processor time that this process has used on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// roundSource has the chains of one instant.
type roundSource struct {
	*simulated.Market
	chains map[upstream.Name]*upstream.Document
}

func (s *roundSource) Offers(name upstream.Name) bool { return s.chains[name] != nil }

func (s *roundSource) Fetch(_ context.Context, name upstream.Name, _ *upstream.Document) (*upstream.Document, error) {
	doc := *s.chains[name]
	return &doc, nil
}

// BenchmarkRound refreshes the default underlyings once each, from new chains in gzip to published answers of all their resources,
// files written and synced.
func BenchmarkRound(b *testing.B) {
	at := ny(b, "2026-11-20 10:00")
	source := &roundSource{simulated.New(simulated.Config{Seed: 7, Calendar: calendar, Gzip: true}), map[upstream.Name]*upstream.Document{}}
	next := func() {
		at = at.Add(time.Minute)
		for _, u := range refresh.DefaultUnderlyings {
			name := feed.ChainOf(u)
			doc, err := source.At(name, at)
			must(b, err)
			source.chains[name] = doc
		}
	}
	next()
	var cpu time.Duration
	r := newRig(b, b.TempDir(), "2026-11-20 15:50", func(c *refresh.Config) { c.Source, c.Underlyings = source, refresh.DefaultUnderlyings })
	r.once()
	for b.Loop() {
		b.StopTimer()
		next()
		before := cpuTime()
		b.StartTimer()
		for _, u := range refresh.DefaultUnderlyings {
			if !refresh.RunJob(r.Refresher, b.Context(), strings.ToLower(u)) {
				b.Fatal(u)
			}
		}
		cpu += cpuTime() - before
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
