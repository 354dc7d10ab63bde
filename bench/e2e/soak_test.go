package e2e

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"strikecache/compute"
)

// The server runs through compressed days under load: a day in 36 seconds. Memory, files and goroutines do not grow, every
// answer is right, and the history has exactly the sessions that passed.
func TestSoak(t *testing.T) {
	if !full() {
		t.Skip("runs in make soak alone")
	}
	const length = 20 * time.Minute
	p := serveReady(t, "--underlyings", "SPX,SPY,XLF", "--admin-listen", "127.0.0.1:0", "--sim-start", "2026-11-02T14:00:00Z", "--sim-speed", "2400", "--gex-every", "1h")
	before := p.backfilled()
	paths := slices.Clone(targets)
	for _, date := range before {
		paths = append(paths, datePath+date)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	seen := newAnswers()
	clients := load(ctx, 16, 1, func(client *http.Client, choices *rand.Rand) error {
		_, err := seen.ask(client, "", p.url, pick(choices, paths), pick(choices, codings))
		if err != nil {
			t.Error(err)
		}
		return err
	})
	looks := map[string][]float64{}
	for ctx.Err() == nil {
		time.Sleep(2 * time.Second)
		scrape := p.operator("/metrics")
		for _, name := range []string{"process_resident_memory_bytes", "process_open_fds", "go_goroutines"} {
			v, err := strconv.ParseFloat(metric(scrape, name), 64)
			must(t, err)
			looks[name] = append(looks[name], v)
		}
	}
	clients.Wait()
	for name, more := range map[string]float64{"process_resident_memory_bytes": 32 << 20, "process_open_fds": 4, "go_goroutines": 8} {
		third := len(looks[name]) / 3
		a, b := median(looks[name][:third]), median(looks[name][2*third:])
		figure(t, "soak: %s, median of the first and of the last third: %.0f and %.0f", name, a, b)
		if b > a+more {
			t.Errorf("%s grew from %.0f to %.0f", name, a, b)
		}
	}
	after, cal := p.sessions(), compute.NewCalendar(nil, nil)
	for i := range after[1:] {
		if date, err := compute.ParseDate(after[i]); err != nil || cal.Next(date).String() != after[i+1] {
			t.Errorf("after %s comes %s, %v", after[i], after[i+1], err)
		}
	}
	at := slices.Index(after, before[len(before)-1])
	passed := len(after) - 1 - at
	if at < 0 || passed < 1 {
		t.Errorf("no session passed: before %v, after %v", before, after)
	}
	figure(t, "soak: %d answers over %v, %d sessions passed, all right", seen.checked.Load(), length, passed)
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
