package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// window is a time in which the server worked on a refresh.
type window struct {
	from, to time.Time
	chain    bool // of the whole option chain
}

// near reports whether an instant is within the refresh, or so close that it does not count as between refreshes. Before
// the refresh, the server fetches and decodes the document, which the log does not time. The simulated market also writes
// the document then, which a real upstream does elsewhere. After the refresh, the server answers the requests that have
// queued up. At half of saturation, a queue takes as long to drain as it took to build up.
func (w window) near(at time.Time) bool {
	took := w.to.Sub(w.from)
	return at.After(w.from.Add(-took-250*time.Millisecond)) && at.Before(w.to.Add(2*took+250*time.Millisecond))
}

var (
	refreshedLine = regexp.MustCompile(`(?m)^time=(\S+) .*msg=refreshed job=(\S+) .*$`)
	stepDuration  = regexp.MustCompile(` \w+_ms=([0-9.]+)`)
)

// collection is how long after its line in the log a refresh counts as under way: the server collects its garbage then. It also
// covers the millisecond to which the line's time is cut.
const collection = 20 * time.Millisecond

// windows reads the server's log. Each refresh is one line, written at its end, with the durations of its steps.
func windows(log string) []window {
	var found []window
	for _, line := range refreshedLine.FindAllStringSubmatch(log, -1) {
		at, err := time.Parse(time.RFC3339Nano, line[1])
		if err != nil {
			continue
		}
		w := window{from: at, to: at.Add(collection), chain: line[2] == "spx"}
		for _, step := range stepDuration.FindAllStringSubmatch(line[0], -1) {
			ms, _ := strconv.ParseFloat(step[1], 64) // the expression matches only numbers
			w.from = w.from.Add(-time.Duration(ms * float64(time.Millisecond)))
		}
		found = append(found, w)
	}
	return found
}

// compare compares each refresh of the chain with the quiet time since the previous refresh of the chain.
func compare(start time.Time, samples []sample, all []window) []refresh {
	var out []refresh
	quietFrom := start
	for _, w := range all {
		if !w.chain || w.from.Before(start) || len(samples) == 0 || w.to.After(start.Add(samples[len(samples)-1].due)) {
			continue
		}
		during, between := newHistogram(3), newHistogram(3)
		for _, s := range samples {
			at := start.Add(s.due)
			switch {
			case !at.Before(w.from) && at.Before(w.to):
				record(during, s.latency)
			case at.After(quietFrom) && at.Before(w.from) && !slices.ContainsFunc(all, func(w window) bool { return w.near(at) }):
				record(between, s.latency)
			}
		}
		quietFrom = w.to
		if during.TotalCount() == 0 || between.TotalCount() < during.TotalCount() {
			continue // p99.9 of too few requests is nearly their maximum, which grows with their number
		}
		f := refresh{WindowMs: float64(w.to.Sub(w.from).Microseconds()) / 1000, During: microseconds(at(during, 99.9)), DuringCount: during.TotalCount(),
			Between: microseconds(at(between, 99.9)), BetweenCount: between.TotalCount()}
		f.Ratio = rounded(f.During/f.Between, 2)
		out = append(out, f)
	}
	return out
}

func microseconds(d time.Duration) float64 { return rounded(float64(d.Nanoseconds())/1000, 2) }

// refreshEvery is the interval of refreshes.
const refreshEvery = 10 * time.Second

// refreshes compares p99.9 during refreshes of the whole chain with p99.9 between them, at half of saturation, with the
// server on the given cores.
func (b *comparison) refreshes(ctx context.Context, cores []int) (*refreshRun, error) {
	defer b.stop()
	const speed = 4 // of the market's clock, which the intervals follow; the market makes a chain every 15 seconds of this clock
	p, err := b.serve(ctx, b.Binary, fmt.Sprintf("refreshes-%d", len(cores)), cores, "--gex-every", (speed * refreshEvery).String(),
		"--sim-speed", strconv.Itoa(speed))
	if err != nil {
		return nil, err
	}
	request := ask(volatility, "gzip", "") // this answer does not change while the chain is refreshed
	x, err := exchangeWith(ctx, p.address, request)
	if err != nil {
		return nil, err
	}
	g, err := newGenerator(p.address, anyAddress, rivalConnections, request, x.raw)
	if err != nil {
		return nil, err
	}
	defer g.close()
	const probe = 100_000
	var best float64
	for range 3 {
		began, _, err := g.send(probe, 0)
		if err != nil {
			return nil, err
		}
		best = max(best, probe/time.Since(began).Seconds())
	}
	f := &refreshRun{Cores: len(cores), SharedCore: cores[len(cores)-1] == generatorCore, Saturation: rounded(best, 0), Rate: rounded(best/2, 0)}
	fmt.Fprintf(b.stdout, "%d server cores: saturation %.0f requests a second; now a refresh every %s at %.0f requests a second\n", f.Cores, f.Saturation, refreshEvery, f.Rate)
	for turn := 0; len(f.Refreshes) < b.Rounds; turn++ {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if turn > 4*b.Rounds {
			return nil, fmt.Errorf("too few refreshes of the chain in %d turns came after a quiet time of their own length: try an idle machine\n%s",
				turn, p.lastLines())
		}
		began, samples, err := g.send(int(f.Rate*2*refreshEvery.Seconds()), f.Rate)
		if err != nil {
			return nil, err
		}
		f.Refreshes = append(f.Refreshes, compare(began, samples, windows(p.printed()))...)
	}
	f.Refreshes = f.Refreshes[:b.Rounds]
	for _, a := range f.Refreshes {
		fmt.Fprintf(b.stdout, "refresh of %.0f ms: p99.9 %.0f µs of %d requests, before it %.0f µs of %d, ratio %.2f\n",
			a.WindowMs, a.During, a.DuringCount, a.Between, a.BetweenCount, a.Ratio)
	}
	f.ResidentPeak, err = memoryOf(p.pid(), "VmHWM")
	return f, err
}
