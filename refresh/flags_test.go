package refresh

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// The simulated market starts where its newest stored answer left off, whatever its product, so that no answer is older
// than the one before.
func TestResumed(t *testing.T) {
	now := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	eleven := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC) // in New York
	at := func(minutes int) time.Time { return eleven.Add(time.Duration(minutes) * time.Minute) }
	type stored struct {
		resource        string
		computed, since int // minutes after eleven
	}
	for name, c := range map[string]struct {
		stored []stored
		want   time.Time
	}{
		"nothing":                     {nil, at(0)},
		"an older market":             {[]stored{{product.GammaResource, -60, -90}}, at(0)},
		"gamma":                       {[]stored{{product.GammaResource, 7, -90}}, at(7)},
		"sectors after gamma":         {[]stored{{product.GammaResource, 7, -90}, {product.SectorsResource, 9, 0}}, at(9)},
		"gamma after the settlements": {[]stored{{product.GammaResource, 7, -90}, {product.VIXResource, 2, 0}}, at(7)},
		"freshness changed since":     {[]stored{{product.GammaResource, 7, 0}, {product.PainResource, 7, 31}}, at(31)},
	} {
		store := newStore(t, "simulated")
		for _, f := range c.stored {
			s, err := snapshots.Seal([]byte(`{}`), snapshots.Meta{
				ComputedAt: at(f.computed), Freshness: snapshots.Freshness{Since: at(f.since)}, Quality: []byte(`{}`),
			})
			must(t, err)
			must(t, store.Save([]snapshots.File{{Product: f.resource, Edition: &snapshots.Edition{Default: s}, Current: true}}, nil))
		}
		if got := resumed(compute.NewCalendar(nil, nil), leftOff(store, Resources([]string{"SPX"})), now); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A simulated market does not start before what it has stored: it would give answers that are older than the stored ones.
func TestSimStartBeforeTheLastStoredAnswer(t *testing.T) {
	dir := t.TempDir()
	stored := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	open := func(start string) error {
		t.Helper()
		f := Flags{ScheduleFlags: ScheduleFlags{Underlyings: []string{"SPX"}}, SourceFlags: SourceFlags{Source: "simulated", SimSeed: 1, SimSpeed: 0, SimStart: start}}
		r, err := f.Open(dir, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			return err
		}
		defer r.Close()
		s, err := snapshots.Seal([]byte(`{}`), snapshots.Meta{AsOf: stored, ComputedAt: stored, Freshness: snapshots.Freshness{Since: stored}, Quality: []byte(`{}`)})
		must(t, err)
		return r.Store().Save([]snapshots.File{{Product: product.GammaResource, Edition: &snapshots.Edition{Default: s}, Current: true}}, nil)
	}
	for _, c := range []struct{ start, want string }{
		{"2026-11-20T16:00:00Z", ""},
		{"2026-11-20T16:00:00Z", ""}, // the same again
		{"2026-11-20T15:59:59Z", "--sim-start: 2026-11-20T15:59:59Z is before the last stored answer, of 2026-11-20T16:00:00Z"},
		{"2026-11-23T16:00:00Z", ""},
	} {
		if err := open(c.start); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.start, err, c.want)
		}
	}
}

// A process that loses the lease while a request waits for its turn does not ask.
func TestNoRequestWithoutLease(t *testing.T) {
	var asked atomic.Int32
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer upstream.Close()
	holds := true
	cfg := &Config{Lease: func() bool { return holds }, Underlyings: []string{"SPX"}, Log: slog.New(slog.DiscardHandler)}
	must(t, (&SourceFlags{Source: "cboe", CboeBaseURL: upstream.URL, CboeRequestsPerMinute: 6000}).apply(cfg))
	for _, holds = range []bool{true, false} {
		if _, err := cfg.Source.Fetch(t.Context(), feed.ChainOf("SPX"), nil); errors.Is(err, errNoLease) == holds || asked.Load() != 1 {
			t.Errorf("holds %v: asked %d times, %v", holds, asked.Load(), err)
		}
	}
}
