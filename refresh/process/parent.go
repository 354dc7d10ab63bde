package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"strikecache/refresh"
	"strikecache/snapshots"
)

// Command is the name of the command that calls [Run].
const Command = "refresher"

// Config says what a refresher's process is for.
type Config struct {
	Request Request
	Replica *snapshots.Replica // takes over what the refresher publishes
	// Observe is told of every run of a job, as [refresh.Config] says.
	Observe func(job, code string, took time.Duration)
	Stderr  io.Writer     // of the child
	Silence time.Duration // how long the child may say nothing before another is started; 0 for a minute
	Log     *slog.Logger
}

// Refresher is a refresher in a process of its own, which is started again when it ends. All methods are safe for
// concurrent use.
type Refresher struct {
	cfg     Config
	stop    sync.Once
	stopped chan struct{} // closed by Stop
	done    chan struct{} // closed when the last child has ended

	mu     sync.Mutex
	clock  refresh.Clock
	status Status
	down   error // why there is no child that is ready; nil while there is one
	starts int
	begin  func() // tells the child that is ready to begin; nil: there is none
	begun  bool
	absent *time.Timer // makes every answer stale; stopped while there is a child that is ready

	handover sync.Mutex // between what makes answers stale and a child that is told which are; taken before mu
}

const (
	// stopLimit is how long a child may take to end when it is told to; then it is killed. Nothing stored is lost. One that
	// waits for a disk which does not answer cannot be killed: killLimit later it is left alone.
	stopLimit, killLimit = 15 * time.Second, 2 * time.Second
	// The time between the end of a child and the start of the next doubles from the first to the last.
	firstPause, lastPause = time.Second, 30 * time.Second
	// steady is how long a child works before its end counts as the first one again.
	steady = time.Minute
	// endsToStale is how many ends in a row make every answer stale, as failures of a refresh do; so does absentLimit
	// without a child that is ready.
	endsToStale = 3
	absentLimit = 2 * time.Minute
	// openLimit is how long a child may take to open its store, whose every file it checks.
	openLimit = time.Hour
	// silence is how long a child that works may say nothing: it tells what it uses every two seconds. A process that was
	// stopped itself, and so has read nothing, gives it grace.
	silence, grace = time.Minute, 2 * time.Second
)

var errSilent = errors.New("the refresher says nothing and is killed")

// Start starts the process and returns when it has told all that was stored, or the error for which it cannot. It
// refreshes nothing before Begin. Stop must be called.
func Start(ctx context.Context, cfg Config) (*Refresher, error) {
	if cfg.Silence == 0 {
		cfg.Silence = silence
	}
	r := &Refresher{cfg: cfg, stopped: make(chan struct{}), done: make(chan struct{})}
	r.absent = time.AfterFunc(absentLimit, r.goStale)
	r.absent.Stop()
	ready := make(chan struct{})
	ended := make(chan end, 1)
	go func() { ended <- r.run(sync.OnceFunc(func() { close(ready) })) }()
	select {
	case <-ready:
		go r.supervise(ended)
		return r, nil
	case e := <-ended:
		return nil, e.err
	case <-ctx.Done():
		close(r.stopped)
		<-ended
		return nil, ctx.Err()
	}
}

// Begin lets the refresher begin to refresh: before, it only tells what is stored.
func (r *Refresher) Begin() {
	r.set(func() {
		r.begun = true
		if r.begin != nil {
			r.begin()
		}
	})
}

// Stop ends the refresher and waits for it. It may be called more than once.
func (r *Refresher) Stop() {
	r.stop.Do(func() { close(r.stopped) })
	<-r.done
}

// Now returns the market's time.
func (r *Refresher) Now() time.Time {
	r.mu.Lock()
	clock := r.clock
	r.mu.Unlock()
	return clock.Now()
}

// Status returns how the refresher last said it is, and why there is none at this moment, or nil.
func (r *Refresher) Status() (Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status, r.down
}

// StoreStats returns what the refresher's store has done since the refresher was started last, and what the replica's
// caches have.
func (r *Refresher) StoreStats() snapshots.Stats {
	status, _ := r.Status()
	status.Store.Latest, status.Store.History = r.cfg.Replica.CacheStats()
	status.Store.BadFiles += r.cfg.Replica.BadFiles()
	return status.Store
}

// Usage returns what the refresher's process uses, where the system tells, and how often one was started.
func (r *Refresher) Usage() (cpuSeconds float64, residentBytes int64, starts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.status.Usage
	return u.CPUSeconds, u.ResidentBytes, r.starts
}

// supervise starts the child again when it ends, until Stop.
func (r *Refresher) supervise(ended chan end) {
	defer close(r.done)
	defer r.absent.Stop()
	pause, ends := firstPause, 0
	for {
		e := <-ended
		select {
		case <-r.stopped:
			return
		default:
		}
		r.set(func() { r.down = e.err })
		r.absent.Reset(absentLimit)
		if e.worked > steady {
			pause, ends = firstPause, 0
		}
		if ends++; ends >= endsToStale {
			r.goStale()
		}
		r.cfg.Log.Error("the refresher ended and is started again", "err", e.err, "in", pause)
		select {
		case <-r.stopped:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
		go func() { ended <- r.run(func() {}) }()
	}
}

// goStale seals every answer again as stale that is not. It stays so until a child has refreshed it.
func (r *Refresher) goStale() {
	r.handover.Lock()
	defer r.handover.Unlock()
	if _, down := r.Status(); down == nil {
		return
	}
	for feed, resources := range refresh.Feeds() {
		editions := map[string]*snapshots.Edition{}
		for _, name := range resources {
			e := r.cfg.Replica.Current(name)
			if e == nil {
				continue
			}
			stale, err := refresh.Unattended(e, r.Now())
			if err != nil {
				r.cfg.Log.Error("re-seal failed", "resource", name, "err", err)
			} else if stale != e {
				editions[name] = stale
				r.cfg.Log.Info("freshness changed", "resource", name, "state", "stale", "reason", *stale.Default.Meta.Freshness.Reason)
			}
		}
		if err := r.cfg.Replica.Publish(feed, editions); err != nil {
			r.cfg.Log.Error("publish", "feed", feed, "err", err)
		}
	}
}

// stale returns what the answers that are stale say of it.
func (r *Refresher) stale() map[string]snapshots.Freshness {
	out := map[string]snapshots.Freshness{}
	for _, resources := range refresh.Feeds() {
		for _, name := range resources {
			if e := r.cfg.Replica.Current(name); e != nil && e.Default.Meta.Freshness.Stale() {
				out[name] = e.Default.Meta.Freshness
			}
		}
	}
	return out
}

func (r *Refresher) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// end is how a child ended.
type end struct {
	err    error
	worked time.Duration // from the word to begin until it was last heard; 0 when it had to be killed
}

// run runs one child to its end.
func (r *Refresher) run(ready func()) end {
	cmd, stdin, stdout, err := r.start()
	if err != nil {
		return end{err: fmt.Errorf("start refresher: %w", err)}
	}
	heard, begun := make(chan struct{}, 1), make(chan struct{}, 1)
	take := receiver{
		replica: r.cfg.Replica, observe: r.cfg.Observe,
		clock:  func(c refresh.Clock) { r.set(func() { r.clock = c }) },
		status: func(s Status) { r.set(func() { r.status = s }) },
		ready: func() {
			r.attended(sync.OnceFunc(func() {
				_ = json.NewEncoder(stdin).Encode(word{r.stale()}) // a pipe has the room; a child that is gone is started again
				begun <- struct{}{}
			}))
			ready()
		},
		heard: func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		},
	}
	buffered := bufio.NewReaderSize(stdout, 64<<10)
	received, drained := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(drained)
		received <- take.receive(buffered)
		_, _ = io.Copy(io.Discard, buffered) // a child that is to end must not wait for a reader
	}()
	worked, err := r.attend(begun, heard, received)
	r.set(func() { r.begin = nil })
	stdin.Close() // which tells the child to end
	left := r.reap(cmd, stdout, drained, errors.Is(err, errSilent))
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if err = errors.New("the refresher ended"); left != nil {
			err = fmt.Errorf("the refresher ended: %w", left)
		}
	}
	return end{err, worked}
}

// attended notes that there is a child that is ready, and how it is told to begin.
func (r *Refresher) attended(begin func()) {
	r.handover.Lock()
	defer r.handover.Unlock()
	r.absent.Stop()
	r.set(func() {
		r.down, r.begin = nil, begin
		if r.begun {
			begin()
		}
	})
}

// attend waits until a child ends, says nothing any more or is to end, and returns how long it worked.
func (r *Refresher) attend(begun, heard <-chan struct{}, received <-chan error) (worked time.Duration, err error) {
	limit := time.NewTimer(openLimit)
	defer limit.Stop()
	var since time.Time
	late := false
	for {
		select {
		case <-r.stopped:
			return worked, nil
		case err := <-received:
			return worked, err
		case <-begun:
			since = time.Now()
			limit.Reset(r.cfg.Silence)
		case <-heard:
			if late = false; !since.IsZero() {
				worked = time.Since(since)
				limit.Reset(r.cfg.Silence)
			}
		case <-limit.C:
			if late {
				return 0, errSilent
			}
			late = true
			limit.Reset(grace)
		}
	}
}

// reap waits for the end of a child that was told to end, or is silent, and returns how it ended.
func (r *Refresher) reap(cmd *exec.Cmd, stdout io.Closer, drained <-chan struct{}, silent bool) error {
	limit := stopLimit
	if silent {
		limit = 0
	}
	abandoned := make(chan struct{})
	defer time.AfterFunc(limit, func() {
		r.cfg.Log.Error("the refresher does not end and is killed", "silent", silent)
		_ = cmd.Process.Kill() // it may have ended
	}).Stop()
	defer time.AfterFunc(limit+killLimit, func() {
		stdout.Close()
		close(abandoned)
	}).Stop()
	<-drained
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-abandoned:
		return errors.New("it does not end although it was killed, as when a disk does not answer")
	}
}

// start starts a child and sends it its request.
func (r *Refresher) start() (*exec.Cmd, io.WriteCloser, io.ReadCloser, error) {
	path, err := executable()
	if err != nil {
		return nil, nil, nil, err
	}
	asked := r.cfg.Request
	r.set(func() {
		if r.starts++; r.starts > 1 && asked.Source.Name == "simulated" {
			asked.Clock = new(r.clock) // the market goes on
		}
	})
	request, err := json.Marshal(asked)
	if err != nil {
		return nil, nil, nil, err
	}
	cmd := exec.Command(path, Command)
	cmd.Args[0], cmd.Stderr = os.Args[0], r.cfg.Stderr
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NOTIFY_SOCKET=") && !strings.HasPrefix(v, "WATCHDOG_") { // the service is the parent
			cmd.Env = append(cmd.Env, v)
		}
	}
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, err
	}
	_, _ = stdin.Write(request) // less than a pipe holds; a child that is gone already is read as such
	return cmd, stdin, stdout, nil
}

// executable is the running binary itself, also when its file was replaced: parent and child must be one version.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
