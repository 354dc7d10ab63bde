//go:build unix

package refresh_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/floor"
	"strikecache/bench/testkit"
	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// chains is a source of the chains that the test puts into it.
type chains map[upstream.Name]*upstream.Document

func (s chains) Offers(name upstream.Name) bool { return s[name] != nil }

func (s chains) Fetch(_ context.Context, name upstream.Name, _ *upstream.Document) (*upstream.Document, error) {
	doc := *s[name]
	return &doc, nil
}

// alternating returns a source of two chains of SPX, and the function that puts in the other one, so that no document repeats the last one.
func alternating(bodies ...[]byte) (source chains, swap func()) {
	source = chains{}
	n := 0
	swap = func() {
		n++
		source[spxDocument] = &upstream.Document{Name: spxDocument, Body: bodies[n%2], Received: time.Date(2026, 8, 11, 20, 36, 41, 0, time.UTC)}
	}
	swap()
	return source, swap
}

const recordedSPX = "recorded/replay/options/_SPX.json.gz"

// BenchmarkRefresh takes the full recorded chain of 30,692 contracts from its bytes to published answers of all its
// resources, files written and synced: first with nothing to reuse, as a process does and as a day does once its open interest
// is known, then with other quotes and another spot, as every later refresh of the day. Beside it is the [floor.Work].
func BenchmarkRefresh(b *testing.B) {
	body := testkit.Document(b, recordedSPX)
	source, swap := alternating(body, moved(body, `"current_price":7728.2002`, `"current_price":7731.4102`))
	start := func(b *testing.B) *rig {
		return newRig(b, b.TempDir(), "2026-08-11 16:37", func(c *refresh.Config) {
			c.Source.Source, c.Underlyings = source, one
		})
	}
	b.Run("first", func(b *testing.B) { // of a process, whose compressors are warm from the runs before
		b.SetBytes(int64(len(body)))
		var r *rig
		measure(b, nil, func() { swap(); r = start(b) }, func() { r.once() }, func() { r.close() })
	})
	b.Run("later", func(b *testing.B) {
		r := start(b)
		r.once()
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		measure(b, body, swap, r.once, func() {})
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		measure(b, nil, func() {}, func() { doLeast(b, body) }, func() {})
	})
}

// doLeast does the work of package floor.
func doLeast(b *testing.B, document []byte) {
	_, _, err := floor.Work(document)
	must(b, err)
}

// A refresh after the first makes at most 60,000 allocations, on every machine.
func TestRefreshAllocates(t *testing.T) {
	long(t) // the race detector adds allocations
	at := ny(t, "2026-08-11 16:37")
	doc, err := simulated.New(simulated.Config{Seed: 7, Calendar: calendar}).At(spxDocument, at)
	must(t, err)
	source, swap := alternating(doc.Body, moved(doc.Body, "", ""))
	r := newRig(t, t.TempDir(), "2026-08-11 16:37", func(c *refresh.Config) { c.Source.Source, c.Underlyings = source, one })
	r.once()
	if n := testing.AllocsPerRun(2, func() { swap(); r.once() }); n > 60_000 {
		t.Errorf("%v allocations", n)
	}
}

// moved returns a chain with another spot and with all quotes higher by a tenth.
func moved(body []byte, spot, other string) []byte {
	out := bytes.Replace(body, []byte(spot), []byte(other), 1)
	return regexp.MustCompile(`"(bid|ask)":\d*[1-9.]\d*`).ReplaceAllFunc(out, func(quote []byte) []byte {
		key, number, _ := bytes.Cut(quote, []byte(":"))
		x, err := strconv.ParseFloat(string(number), 64)
		if err != nil || x == 0 {
			return quote
		}
		return fmt.Appendf(nil, "%s:%.2f", key, x+0.1)
	})
}

// cpuTime returns the processor time that this process has used on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure measures run alone, which prepare comes before and end after. It reports the processor time, too, and how many times that of the
// [floor.Work] of a document it is, which comes after each run, if there is a document.
func measure(b *testing.B, document []byte, prepare, run, end func()) {
	var cpu, least time.Duration
	for b.Loop() {
		b.StopTimer()
		prepare()
		before := cpuTime()
		b.StartTimer()
		run()
		b.StopTimer()
		cpu += cpuTime() - before
		if document != nil {
			runtime.GC() // what run left
			before = cpuTime()
			doLeast(b, document)
			least += cpuTime() - before
		}
		end()
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	if least > 0 {
		b.ReportMetric(cpu.Seconds()/least.Seconds(), "x-floor")
	}
}

// BenchmarkRound refreshes the default underlyings once each, from new chains in gzip to published answers of all their resources,
// files written and synced. Beside it is the [floor.Work] of the recorded chain of SPX alone.
func BenchmarkRound(b *testing.B) {
	at := ny(b, "2026-11-20 10:00")
	market, source := simulated.New(simulated.Config{Seed: 7, Calendar: calendar, Gzip: true}), chains{}
	next := func() {
		at = at.Add(time.Minute)
		for _, u := range refresh.DefaultUnderlyings {
			name := feed.ChainOf(u)
			doc, err := market.At(name, at)
			must(b, err)
			source[name] = doc
		}
	}
	next()
	r := newRig(b, b.TempDir(), "2026-11-20 15:50", func(c *refresh.Config) { c.Source.Source, c.Underlyings = source, refresh.DefaultUnderlyings })
	r.once()
	measure(b, testkit.Document(b, recordedSPX), next, func() {
		for _, u := range refresh.DefaultUnderlyings {
			if !refresh.RunJob(r.Refresher, b.Context(), strings.ToLower(u)) {
				b.Fatal(u)
			}
		}
	}, func() {})
}
