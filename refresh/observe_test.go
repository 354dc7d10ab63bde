package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// The observer is told of every run but one that the end of the process cut short.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r := New(Config{Source: noSource{}, Underlyings: []string{"SPX"}, Calendar: cal, Clock: feed.MachineClock(), Log: slog.New(slog.DiscardHandler), Observe: func(job, code string, refused []string, took time.Duration) {
			told = append(told, fmt.Sprint(job, " ", code, " ", refused, " ", took))
		}})
		ctx, cancel := context.WithCancel(t.Context())
		for _, j := range []job{
			{name: "spx", run: func(context.Context) error { time.Sleep(time.Second); return nil }},
			{name: "vix", run: func(context.Context) error {
				return &upstream.Error{Reason: upstream.TimedOut, Err: context.DeadlineExceeded}
			}},
			{name: "xlf", run: func(context.Context) error { return errors.Join(&upstream.Error{Reason: upstream.Older, Err: io.EOF}) }},
			{name: "sectors", run: func(context.Context) error { panic("a fault") }},
			{name: "spx", run: func(ctx context.Context) error { cancel(); return ctx.Err() }},
		} {
			r.runJob(ctx, j)
		}
		want := []string{"spx ok [] 1s", "vix upstream_timeout [] 0s", "xlf upstream_older [upstream_older] 0s", "sectors panic [] 0s"}
		if !slices.Equal(told, want) {
			t.Errorf("%q, want %q", told, want)
		}
		r.cfg.Observe = nil
		r.runJob(t.Context(), job{name: "vix", run: func(context.Context) error { return nil }})
	})
}
