package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"strikecache/refresh"
	"strikecache/refresh/flags"
	"strikecache/snapshots"
)

// Request is what a refresher is asked to do.
type Request struct {
	Source   flags.Source
	Schedule flags.Schedule
	DataDir  string
	Log      Log
	Clock    *refresh.Clock // of a simulated market that goes on; nil: as Source says
}

// word is the parent's word to begin.
type word struct {
	Stale map[string]snapshots.Freshness // what is served as stale already, by resource
}

// Status is how a refresher is, as it last said.
type Status struct {
	Offers    []string        // resources that the source could ever feed
	DiskError string          // why something waits for the disk; "" when nothing does
	Store     snapshots.Stats // but for its caches
	Usage     Usage
}

// Usage is what the refresher's process has used, where the system tells.
type Usage struct {
	CPUSeconds    float64
	ResidentBytes int64
}

// gcPercent keeps the heap at 1.15 times what is live: a refresh would otherwise double the memory of the process. Peak of
// a whole market refreshing every 5 s (2026-11): 155 MiB at 30, 141 at 20, for 5 % more CPU; most of it is live.
const gcPercent = 15

const (
	// lockWait is how long the directory may still be taken by the refresher of a server that was killed.
	lockWait = 10 * time.Second
	// lookEvery is how often the child looks at itself, and usageEvery how often it tells what it uses.
	lookEvery  = 250 * time.Millisecond
	usageEvery = 8 // looks
)

// worker is a refresher at work for another process.
type worker struct {
	request   Request
	log       *slog.Logger
	sender    *sender
	cfg       refresh.Config
	refresher *refresh.Refresher
	told      Status
	looks     int
	settled   atomic.Int64 // when no publication was under way last, in seconds
}

// Run is the refresher's process: it takes a [Request] from in, writes frames to out and logs to stderr, until in ends.
// Signals that end other processes do not end this one, which may be about to write a file.
func Run(in io.Reader, out, stderr io.Writer) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	var w worker
	words := json.NewDecoder(in)
	if err := words.Decode(&w.request); err != nil {
		return fmt.Errorf("this command is run by serve alone: read request: %w", err)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	name("strikecache-ref")
	lowerPriority()
	w.log, w.sender = w.request.Log.New(stderr), newSender(out)
	w.settled.Store(time.Now().Unix())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin := make(chan word, 1)
	go func() {
		defer cancel() // the parent is gone
		var said word
		if words.Decode(&said) == nil {
			begin <- said
			_ = words.Decode(&said) // its end
		}
	}()
	opened := make(chan error, 1)
	go func() { opened <- w.open() }()
	select {
	case err := <-opened:
		if err != nil {
			return errors.Join(w.sender.tell(frameFailed, err.Error()), w.close())
		}
	case <-ctx.Done():
		return nil // what is stored outlives a kill, too
	}
	select {
	case said := <-begin:
		return w.work(ctx, cancel, said)
	case <-ctx.Done():
		return w.close()
	}
}

// work refreshes until ctx ends.
func (w *worker) work(ctx context.Context, cancel func(), said word) error {
	if err := w.refresher.Inherit(said.Stale); err != nil {
		return errors.Join(err, w.close())
	}
	go func() { // waits for ever when a disk does not answer
		for ctx.Err() == nil {
			w.refresher.Settle()
			w.settled.Store(time.Now().Unix())
			time.Sleep(lookEvery)
		}
	}()
	var running sync.WaitGroup
	running.Go(func() { w.refresher.Run(ctx) })
	err := w.report(ctx)
	if errors.Is(err, syscall.EPIPE) {
		err = errors.New("the server is gone")
	}
	cancel()
	running.Wait()
	_ = w.sender.flush() // the parent may be gone
	return errors.Join(err, w.close())
}

// open opens the store and what refreshes it, and tells what it held.
func (w *worker) open() (err error) {
	r := &w.request
	w.cfg = refresh.Config{Log: w.log, Observe: w.sender.observe}
	if err := r.Schedule.Open(&w.cfg, r.Source.Name); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(lockWait / 100) {
		w.cfg.Store, err = snapshots.Open(snapshots.Options{
			Dir: r.DataDir, Source: r.Source.Name, Feeds: refresh.Feeds(), HistoricalProduct: refresh.GammaResource,
			HistoryBytes: 1 << 20, Log: w.log, Follower: w.sender, // requests read the parent's history
		})
		if !errors.Is(err, snapshots.ErrLocked) || time.Since(began) > lockWait {
			break
		}
	}
	if err != nil {
		return err
	}
	if r.Clock != nil {
		w.cfg.Clock = *r.Clock
	}
	if err := r.Source.Open(&w.cfg); err != nil {
		return err
	}
	if err := r.Schedule.OpenArchive(&w.cfg, r.DataDir, r.Source.Name, w.log); err != nil {
		return err
	}
	w.refresher = refresh.New(w.cfg)
	if err := w.refresher.Restore(); err != nil {
		return err
	}
	if used, err := w.cfg.Store.Usage(); err != nil {
		w.log.Warn("disk usage unknown", "err", err)
	} else {
		w.log.Info("disk", "dir", r.DataDir, "bytes_used", used, "bytes_expected_per_year", w.refresher.ExpectedBytesPerYear())
	}
	return errors.Join(w.sender.tell(frameClock, w.cfg.Clock), w.sender.flush(), w.look(), w.sender.tell(frameReady, nil))
}

func (w *worker) close() error {
	if w.cfg.Store == nil {
		return nil
	}
	return errors.Join(w.cfg.Inputs.Close(), w.cfg.Store.Close())
}

// report tells what changes, until ctx ends.
func (w *worker) report(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-w.sender.wake:
			err = w.sender.flush()
		case <-tick.C:
			err = w.look()
		}
		if err != nil {
			return err
		}
	}
}

// look tells the status when it is another.
func (w *worker) look() error {
	s := Status{DiskError: textOf(errors.Join(w.cfg.Store.DiskError(), w.cfg.Inputs.Err())), Store: w.cfg.Store.Stats(), Usage: w.told.Usage}
	s.Store.Latest, s.Store.History = snapshots.CacheStats{}, snapshots.CacheStats{}
	s.Offers = slices.Sorted(maps.Keys(w.refresher.Offers()))
	w.looks++
	if settles := time.Since(time.Unix(w.settled.Load(), 0)) < 2*usageEvery*lookEvery; w.looks%usageEvery == 1 && settles {
		s.Usage = used() // told in any case: a parent that hears nothing starts another child
	} else if s.equal(w.told) {
		return nil
	}
	w.told = s
	return w.sender.tell(frameStatus, s)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// equal says whether nothing has changed.
func (s Status) equal(t Status) bool {
	return slices.Equal(s.Offers, t.Offers) && s.DiskError == t.DiskError && s.Store == t.Store && s.Usage == t.Usage
}
