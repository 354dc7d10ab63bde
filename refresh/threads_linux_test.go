package refresh

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strikecache/refresh/upstream"
)

// first is 20 less the niceness of the process, before any test has lowered that of the main thread.
var first, errFirst = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())

// Background work always runs at the niceness of the process and ten more, also after the main thread had a turn.
func TestPriority(t *testing.T) {
	if errFirst != nil {
		t.Fatal(errFirst)
	}
	want := min(20-first+extraNice, 19)
	for n := range 20 {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				inBackground(true, func() {
					got, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
					mu.Lock()
					defer mu.Unlock()
					if 20-got != want {
						t.Errorf("round %d: niceness %d, want %d; main thread: %v", n, 20-got, want, unix.Gettid() == os.Getpid())
					}
				})
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// Two threads that work side by side are on different processors, and only meanwhile.
func TestBeside(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	processors := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		return set
	}
	before := processors()
	if before.Count() < 2 {
		t.Skip("needs two processors")
	}
	var other unix.CPUSet
	wait := beside(func() { other = processors() })
	own := processors()
	wait()
	for cpu := range 1024 {
		if n := own.IsSet(cpu); n == other.IsSet(cpu) && before.IsSet(cpu) {
			t.Errorf("processor %d: %v for both", cpu, n)
		}
	}
	if after := processors(); own.Count() != 1 || after != before {
		t.Errorf("%d processors, then %d, want 1 and %d", own.Count(), after.Count(), before.Count())
	}
}

// While work is under way, a thread ticks on each processor. Work that waits for another machine is not.
func TestTicks(t *testing.T) {
	if len(everyTicked) < 2 {
		t.Skip("needs two to eight processors")
	}
	tickHere(t)
	held := func() (cpus []int) { // by threads that keep to one processor
		statuses, err := filepath.Glob("/proc/self/task/*/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range statuses {
			status, _ := os.ReadFile(path) // the thread may have ended
			_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
			list, _, _ = strings.Cut(list, "\n")
			if cpu, err := strconv.Atoi(list); err == nil {
				cpus = append(cpus, cpu)
			}
		}
		slices.Sort(cpus)
		return cpus
	}
	holds := func(want []int) {
		for n := 0; !slices.Equal(held(), want); n++ {
			if n == 3000 {
				t.Fatalf("threads keep to the processors %v, want %v", held(), want)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	holds(nil)
	procs := runtime.GOMAXPROCS(0)
	for _, short := range []bool{true, false} {
		inBackground(short, func() {
			holds(ticked)
			source := waits{during: func() {
				holds(nil)
				if got := runtime.GOMAXPROCS(0); got != procs {
					t.Errorf("GOMAXPROCS is %d during a fetch, want %d", got, procs)
				}
			}}
			if _, err := Remote(source).Fetch(t.Context(), "", nil); !errors.Is(err, upstream.ErrNotModified) {
				t.Error(err)
			}
			holds(ticked)
		})
		holds(nil)
	}
	if background.n != 0 || background.long != 0 || background.waiting != 0 {
		t.Errorf("%d calls are under way, %d are long, %d wait, want none", background.n, background.long, background.waiting)
	}
}

// The real upstream is another machine.
func TestCboeIsRemote(t *testing.T) {
	cfg := Config{}
	if err := (&SourceFlags{Source: "cboe"}).apply(&cfg); err != nil {
		t.Fatal(err)
	}
	if _, ok := cfg.Source.(remote); !ok {
		t.Errorf("the source is a %T", cfg.Source)
	}
}

// waits is a source that calls during in a fetch.
type waits struct {
	upstream.Source
	during func()
}

func (s waits) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	s.during()
	return nil, upstream.ErrNotModified
}

// everyTicked is [ticked] outside the tests.
var everyTicked = ticked

// tickHere switches the ticks on until t ends. See [TestMain].
func tickHere(t *testing.T) {
	ticked = everyTicked
	t.Cleanup(func() { ticked = nil })
}

// The heap has room while a refresh works alone, unless the heap is small, large or unknown, and garbage is collected after it.
func TestRoomForGarbage(t *testing.T) {
	tickHere(t)
	defer debug.SetGCPercent(debug.SetGCPercent(40))
	w := backgroundWork{kept: minRoom}
	procs := runtime.GOMAXPROCS(0)
	want := procs + min(2, procs) + len(ticked)
	for i, step := range []struct {
		n       int
		short   bool
		percent uint64
		procs   int
	}{
		{1, true, 120, want}, {1, true, 120, want}, {1, false, 40, want}, {-1, true, 40, want}, {-1, false, 120, want}, {-1, true, 40, procs},
		{1, false, 40, want}, {1, true, 40, want}, {-1, true, 40, want}, {-1, false, 40, procs},
	} {
		if step.n > 0 {
			w.begin(step.short)
		} else {
			w.end(step.short)
		}
		if got := measured("/gc/gogc:percent"); got != step.percent || runtime.GOMAXPROCS(0) != step.procs {
			t.Errorf("step %d: GOGC %d, want %d; GOMAXPROCS %d, want %d", i, got, step.percent, runtime.GOMAXPROCS(0), step.procs)
		}
	}
	for _, kept := range []uint64{0, minRoom - 1, maxRoom + 1} {
		w.kept = kept
		if w.begin(true); measured("/gc/gogc:percent") != 40 {
			t.Errorf("room for garbage beside %d bytes", kept)
		}
		w.end(true)
	}
	w.begin(true)
	w.kept = measured("/memory/classes/heap/objects:bytes")
	cycles := measured("/gc/cycles/forced:gc-cycles")
	garbage := make([]byte, 64<<20)
	w.end(true)
	runtime.KeepAlive(garbage) // no collection of the runtime's own has taken it
	if got := measured("/gc/cycles/forced:gc-cycles"); got != cycles+1 {
		t.Errorf("%d collections after a call with garbage, want 1", got-cycles)
	}
	w.begin(true)
	if w.end(true); measured("/gc/cycles/forced:gc-cycles") != cycles+1 {
		t.Error("a collection after a call without garbage")
	}
}
