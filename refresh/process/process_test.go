package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strikecache/bench/need"
	"strikecache/refresh"
	"strikecache/refresh/flags"
	"strikecache/snapshots"
)

// The tests' own binary is the refresher's, as strikecache is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Run(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func options(dir string) snapshots.Options {
	return snapshots.Options{
		Dir: dir, Source: "simulated", Feeds: refresh.Feeds(), HistoricalProduct: refresh.GammaResource, HistoryBytes: 1 << 20,
		Log: slog.New(slog.DiscardHandler),
	}
}

func newReplica(t *testing.T, dir string) *snapshots.Replica {
	t.Helper()
	r, err := snapshots.NewReplica(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// simulated is a market that stands still, of one sector chain beside SPX.
func simulated(dir string) Request {
	return Request{
		Source: flags.Source{Name: "simulated", SimSeed: 1, SimStart: "2026-11-20T16:00:00Z", CboeRequestsPerMinute: 1},
		Schedule: flags.Schedule{
			GexEvery: time.Hour, QuotesEvery: time.Hour, FlowEvery: time.Hour, FlowSymbols: []string{"XLF"}, RiskFreeRate: 0.04,
			ArchiveMaxBytes: 1 << 30,
		},
		DataDir: dir, Log: Log{Format: "text", Level: "info"},
	}
}

func start(t *testing.T, request Request, log *need.Log) (*Refresher, *snapshots.Replica) {
	t.Helper()
	return startWith(t, request, log, 0)
}

func startWith(t *testing.T, request Request, log *need.Log, silence time.Duration) (*Refresher, *snapshots.Replica) {
	t.Helper()
	replica := newReplica(t, request.DataDir)
	r, err := Start(t.Context(), Config{
		Request: request, Replica: replica, Observe: func(string, string, time.Duration) {}, Stderr: log, Log: log.Logger(slog.LevelInfo), Silence: silence,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(r.Stop)
	r.Begin()
	return r, replica
}

// child returns the process id of the running refresher.
func child(t *testing.T) int {
	t.Helper()
	return need.Child(t, os.Getpid())
}

// kill ends a process that this test has started.
func kill(t *testing.T, id int) {
	t.Helper()
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A refresher that is killed is started again, and meanwhile all that it said stays; stopped, it leaves whole files.
func TestRefresherIsStartedAgain(t *testing.T) {
	dir, log := t.TempDir(), &need.Log{}
	r, replica := start(t, simulated(dir), log)
	all := func() bool {
		s, _ := r.Status()
		return len(s.Offers) > 5 && !slices.ContainsFunc(s.Offers, func(name string) bool { return replica.Current(name) == nil })
	}
	need.Until(t, "every answer", all)
	if now := r.Now(); now.Format(time.RFC3339) != "2026-11-20T16:00:00Z" {
		t.Errorf("the market's time is %v", now)
	}
	need.Until(t, "back-filled dates", func() bool { return len(replica.Dates()) > 2 })
	before, kills := replica.Current(refresh.GammaResource), need.Count(5)
	for n := range kills {
		kill(t, child(t))
		need.Until(t, "notice", func() bool { _, down := r.Status(); return down != nil })
		if !all() || replica.Current(refresh.GammaResource) == nil {
			t.Error("an answer is lost")
		}
		if s, err := replica.Historical(replica.Dates()[0]); err != nil || s == nil {
			t.Errorf("history: %v", err)
		}
		need.Until(t, "the next", func() bool { _, down := r.Status(); return down == nil })
		if _, _, starts := r.Usage(); starts < n+2 {
			t.Errorf("%d starts after %d kills", starts, n+1)
		}
	}
	after := replica.Current(refresh.GammaResource)
	if after == before || !bytes.Equal(after.Default.Body(snapshots.Identity), before.Default.Body(snapshots.Identity)) {
		t.Errorf("a restart answers %.300s, before %.300s", after.Default.Body(snapshots.Identity), before.Default.Body(snapshots.Identity))
	}
	need.Figure(t, "%d kills of the refresher alone: no answer lost, each time started again", kills)
	r.Stop()
	if files, bad, err := snapshots.Verify(dir); files == 0 || len(bad) > 0 || err != nil {
		t.Errorf("%d files, bad %v, %v", files, bad, err)
	}
}

// Answers that nobody refreshes any more say so, and no longer when somebody does.
func TestStaleWithoutRefresher(t *testing.T) {
	dir, log := t.TempDir(), &need.Log{}
	r, replica := start(t, simulated(dir), log)
	states := func() (all []string) {
		for _, resources := range refresh.Feeds() {
			for _, name := range resources {
				if e := replica.Current(name); e == nil {
					all = append(all, "none")
				} else if f := e.Default.Meta.Freshness; f.Reason != nil {
					all = append(all, f.State+" "+*f.Reason)
				} else {
					all = append(all, f.State)
				}
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	need.Until(t, "every answer", func() bool { return slices.Equal(states(), []string{"fresh"}) })
	before := replica.Current(refresh.GammaResource).Default
	child(t)                   // or the test is skipped
	var store *snapshots.Store // takes the directory, so that no refresher can start
	need.Until(t, "the directory", func() bool {
		for _, id := range need.Children(os.Getpid()) {
			_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended
		}
		var err error
		store, err = snapshots.Open(options(dir))
		return err == nil
	})
	need.Until(t, "stale", func() bool { return slices.Equal(states(), []string{"stale no_refresher"}) })
	after := replica.Current(refresh.GammaResource).Default
	if !bytes.Equal(after.Data(), before.Data()) || after.Meta.AsOf != before.Meta.AsOf {
		t.Error("what is stale is another answer")
	}
	if _, down := r.Status(); down == nil || !strings.Contains(down.Error(), "another process") {
		t.Errorf("down: %v", down)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	need.Until(t, "fresh again", func() bool { return slices.Equal(states(), []string{"fresh"}) })
	if again := replica.Current(refresh.GammaResource).Default.Meta.Freshness.Since; again.Before(after.Meta.Freshness.Since) {
		t.Errorf("stale since %v, and fresh since %v", after.Meta.Freshness.Since, again)
	}
}

// A refresher that hangs is replaced; and when one after another does, the answers say so.
func TestSilence(t *testing.T) {
	log := &need.Log{}
	r, replica := startWith(t, simulated(t.TempDir()), log, 4*time.Second)
	need.Until(t, "an answer", func() bool { return replica.Current(refresh.GammaResource) != nil })
	for n := 1; n <= endsToStale; n++ {
		id := child(t)
		if err := syscall.Kill(id, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		need.Until(t, "it is replaced", func() bool { _, down := r.Status(); return down != nil })
		if !strings.Contains(log.String(), errSilent.Error()) {
			t.Error(log)
		}
		f := replica.Current(refresh.GammaResource).Default.Meta.Freshness
		if n == endsToStale {
			need.Until(t, "stale", func() bool {
				f = replica.Current(refresh.GammaResource).Default.Meta.Freshness
				return f.State == "stale"
			})
			break
		}
		need.Until(t, "the next one", func() bool {
			_, down := r.Status()
			return down == nil && !slices.Contains(need.Children(os.Getpid()), id)
		})
	}
}

// Without a refresher for long, as when its start hangs, answers are stale too.
func TestAbsence(t *testing.T) {
	r, replica := start(t, simulated(t.TempDir()), &need.Log{})
	state := func() string {
		if e := replica.Current(refresh.GammaResource); e != nil {
			return e.Default.Meta.Freshness.State
		}
		return "none"
	}
	need.Until(t, "an answer", func() bool { return state() == "fresh" })
	r.absent.Reset(0) // it is there
	time.Sleep(100 * time.Millisecond)
	if state() != "fresh" {
		t.Error("stale beside a refresher")
	}
	kill(t, child(t))
	need.Until(t, "notice", func() bool { _, down := r.Status(); return down != nil })
	r.absent.Reset(0)
	need.Until(t, "stale", func() bool { return state() == "stale" })
	need.Until(t, "fresh again", func() bool { return state() == "fresh" })
}

// The simulated market goes on where it was when its refresher is another.
func TestTheMarketGoesOn(t *testing.T) {
	request := simulated(t.TempDir())
	request.Source.SimSpeed = 3600
	r, _ := start(t, request, &need.Log{})
	for range 2 {
		time.Sleep(time.Second)
		before := r.Now()
		kill(t, child(t))
		need.Until(t, "notice", func() bool { _, down := r.Status(); return down != nil })
		need.Until(t, "the next", func() bool { _, down := r.Status(); return down == nil })
		if now := r.Now(); now.Sub(before) < time.Hour || now.Sub(before) > 1000*time.Hour {
			t.Errorf("%v after %v", now, before)
		}
	}
}

// A child that cannot be ended, or whose output another process holds, is left alone.
func TestReap(t *testing.T) {
	r := &Refresher{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	cmd := exec.Command(need.Program(t, "sh"), "-c", "sleep 600 & echo; wait")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buffered := bufio.NewReader(stdout)
	if _, err := buffered.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	held := need.Children(cmd.Process.Pid)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, buffered)
	}()
	if err := r.reap(cmd, stdout, drained, true); err == nil {
		t.Error("a killed process ended well")
	}
	for _, id := range held {
		kill(t, id)
	}
}

// A refresher whose publications do not end says nothing of itself.
func TestNoWordWhileStuck(t *testing.T) {
	store, err := snapshots.Open(options(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var pipe bytes.Buffer
	cfg := refresh.Config{Log: slog.New(slog.DiscardHandler)}
	w := worker{request: simulated(""), log: cfg.Log, sender: newSender(&pipe)}
	if err := w.request.Schedule.Open(&cfg, "simulated"); err != nil {
		t.Fatal(err)
	}
	cfg.Store = store
	if err := w.request.Source.Open(&cfg); err != nil {
		t.Fatal(err)
	}
	w.cfg, w.refresher = cfg, refresh.New(cfg)
	for _, step := range []struct {
		settled time.Time
		words   bool
	}{{time.Now(), true}, {time.Now().Add(-time.Hour), false}, {time.Now(), true}} {
		w.settled.Store(step.settled.Unix())
		pipe.Reset()
		for range usageEvery {
			if err := w.look(); err != nil {
				t.Fatal(err)
			}
		}
		if got := pipe.Len() > 0; got != step.words {
			t.Errorf("settled at %v: %d bytes", step.settled, pipe.Len())
		}
	}
}

// A start that cannot succeed says why.
func TestStartFails(t *testing.T) {
	taken := t.TempDir()
	store, err := snapshots.Open(options(taken))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	replay := simulated(t.TempDir())
	replay.Source.Name, replay.Source.ReplayDir = "replay", filepath.Join(t.TempDir(), "nothing")
	for want, request := range map[string]Request{"another process uses this directory": simulated(taken), "no such file or directory": replay} {
		log := &need.Log{}
		r, err := Start(t.Context(), Config{Request: request, Replica: newReplica(t, request.DataDir), Stderr: log, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			r.Stop()
			t.Errorf("%s: started", want)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(log.String(), "panic") {
			t.Errorf("%v, want %s: %s", err, want, log.String())
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ended, Config{Request: simulated(t.TempDir()), Replica: newReplica(t, t.TempDir()), Observe: func(string, string, time.Duration) {},
		Stderr: io.Discard, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Run is for serve alone, and says so.
func TestRunByHand(t *testing.T) {
	if err := Run(strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "run by serve") {
		t.Error(err)
	}
}

// What a store publishes and saves arrives in the replica, each snapshot once, in whatever rhythm it is sent.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	var pipe bytes.Buffer
	s := newSender(&pipe)
	o := options(dir)
	o.Follower = s
	store, err := snapshots.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	replica := newReplica(t, dir)
	var observed []string
	in := receiver{replica: replica, heard: func() {}, observe: func(job, code string, took time.Duration) { observed = append(observed, fmt.Sprint(job, code, took)) }}
	pass := func() {
		t.Helper()
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		if err := in.receive(bufio.NewReader(&pipe)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	one, two := seal(t, 1), seal(t, 2)
	pain := &snapshots.Edition{Default: two, Variants: map[string]*snapshots.Snapshot{"2026-12-18": two, "2027-01-15": one, "again": one}}
	feed := "options"
	if err := store.Publish(feed, map[string]*snapshots.Edition{refresh.PainResource: pain, refresh.GammaResource: {Default: one}}); err != nil {
		t.Fatal(err)
	}
	pass()
	got := replica.Current(refresh.PainResource)
	if !reflect.DeepEqual(got, pain) || got.Default != got.Variants["2026-12-18"] || got.Variants["again"] != got.Variants["2027-01-15"] {
		t.Errorf("another edition: %+v", got)
	}
	// Two publications and two saves between two flushes: the last ones count.
	for _, snapshot := range []*snapshots.Snapshot{two, seal(t, 3)} {
		if err := store.Publish(feed, map[string]*snapshots.Edition{refresh.GammaResource: {Default: snapshot}}); err != nil {
			t.Fatal(err)
		}
		if err := store.Save(refresh.GammaResource, "2026-11-20", snapshots.File{Edition: &snapshots.Edition{Default: snapshot}}); err != nil {
			t.Fatal(err)
		}
	}
	s.observe("spx", "ok", time.Second)
	pass()
	if data := string(replica.Current(refresh.GammaResource).Default.Data()); data != `3` || !reflect.DeepEqual(replica.Current(refresh.PainResource), pain) {
		t.Errorf("gamma is %s", data)
	}
	if past, err := replica.Historical(""); err != nil || string(past.Data()) != `3` || !slices.Equal(replica.Dates(), []string{"2026-11-20"}) {
		t.Errorf("history %v, %v", replica.Dates(), err)
	}
	if !slices.Equal(observed, []string{"spxok1s"}) {
		t.Errorf("observed %v", observed)
	}
	for range 3 * maxObserved {
		s.observe("spx", "ok", 1)
	}
	pass()
	if len(observed) != 1+maxObserved {
		t.Errorf("%d observations", len(observed))
	}
}

func seal(t testing.TB, n int) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(strconv.Itoa(n)), snapshots.Meta{Endpoint: "gex/spx", AsOf: time.Unix(int64(n), 0).UTC(), Quality: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The clock of the child is that of the parent.
func TestClockTravels(t *testing.T) {
	for name, clock := range map[string]refresh.Clock{
		"machine": refresh.MachineClock(), "still": refresh.NewClock(time.Unix(1e9, 0), 0), "fast": refresh.NewClock(time.Unix(1e9, 0), 1000),
	} {
		var pipe bytes.Buffer
		if err := newSender(&pipe).tell(frameClock, clock); err != nil {
			t.Fatal(err)
		}
		var got refresh.Clock
		in := receiver{heard: func() {}, clock: func(c refresh.Clock) { got = c }}
		if err := in.receive(&pipe); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if at := time.Now().Add(time.Hour); got.At(at).Sub(clock.At(at)).Abs() > time.Second {
			t.Errorf("%s: %v, want %v", name, got.At(at), clock.At(at))
		}
	}
}

// A frame that is cut off, too long, unknown or refers to nothing ends the reading, and nothing else.
func TestBadFrames(t *testing.T) {
	frame := func(k kind, head string, body ...byte) []byte {
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		if err := writeEncoded(w, k, []byte(head), body); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, b := range map[string][]byte{
		"cut":            frame(frameDates, `["2026-11-20"]`)[:12],
		"cut in lengths": frame(frameDates, `[]`)[:5],
		"long head":      {'d', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"long body":      {'d', 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		"unknown":        frame('?', `{}`),
		"no JSON":        frame(framePublish, `{`),
		"no snapshot":    frame(frameRenewed, `{"date":"2026-11-20"}`),
		"no such number": frame(framePublish, `{"feed":"options","editions":{"gex/spx":{"default":0}}}`),
		"bad snapshot":   frame(frameSnapshot, `{}`),
		"failed":         frame(frameFailed, `"no disk"`),
	} {
		in := receiver{replica: newReplica(t, t.TempDir()), heard: func() {}}
		if err := in.receive(bytes.NewReader(b)); err == nil || errors.Is(err, io.EOF) && name != "cut" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := writeEncoded(bufio.NewWriter(io.Discard), frameDates, make([]byte, maxHead+1)); err == nil {
		t.Error("a long head was written")
	}
}

// No frame, whatever it says, ends the parent.
func FuzzTake(f *testing.F) {
	head, bodies, err := seal(f, 1).Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(frameSnapshot), head, slices.Concat(bodies...))
	f.Add(byte(framePublish), []byte(`{"feed":"options","editions":{"gex/spx":{"default":0,"variants":{"a":0}}}}`), []byte{})
	f.Add(byte(frameRenewed), []byte(`{"date":"2026-11-20","on_disk":true}`), []byte{})
	f.Add(byte(frameDates), []byte(`["2026-11-19","2026-11-20"]`), []byte{})
	f.Add(byte(frameStatus), []byte(`{"Offers":["gex/spx"]}`), []byte{})
	f.Add(byte(frameClock), []byte(`{"market":"2026-11-20T16:00:00Z","wall":"2026-11-20T16:00:00Z","speed":1}`), []byte{})
	replica, err := snapshots.NewReplica(options(f.TempDir()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(replica.Close)
	sent := seal(f, 1)
	f.Fuzz(func(_ *testing.T, k byte, head, body []byte) {
		in := receiver{
			replica: replica, observe: func(string, string, time.Duration) {}, clock: func(c refresh.Clock) { c.Now() }, status: func(Status) {}, ready: func() {},
		}
		in.sent = append(in.sent, sent)
		_ = in.take(kind(k), head, body) // an error ends the child, and is no fault of the parent
	})
}
