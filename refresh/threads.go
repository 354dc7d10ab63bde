package refresh

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"strikecache/refresh/upstream"
)

// inBackground runs f on a thread of its own and returns when f has ended. Where the system allows it, the thread has a low
// priority, so that requests are answered first.
//
// Until f has ended, there are more scheduler contexts (GOMAXPROCS), one for each thread that f may use and each of [tickOften]: a
// thread of low priority that waits for a processor would keep one of them from the goroutines of the connections. Measured
// with two processors at half of saturation (2026-11): without it, p99.9 during a refresh was 4.1 times that between refreshes,
// with it 1.8 times (medians of 7 refreshes).
//
// A short f, unlike the back-fill, has room for its garbage: see [backgroundWork.add].
func inBackground(short bool, f func()) {
	background.begin(short)
	defer background.end(short)
	onOwnThread(f)()
}

// Remote returns the source with a Fetch that waits for another machine. Meanwhile, the call of inBackground in which it runs
// neither ticks nor has scheduler contexts of its own: at 20 requests a minute, a job of 24 documents waits for more than a minute.
// Fetch must run in such a call, as it does in the jobs of [Refresher.Run].
func Remote(source upstream.Source) upstream.Source { return remote{source} }

type remote struct{ upstream.Source }

func (s remote) Fetch(ctx context.Context, name upstream.Name, since *upstream.Document) (*upstream.Document, error) {
	background.wait(1)
	defer background.wait(-1)
	return s.Source.Fetch(ctx, name, since)
}

// onOwnThread starts f on a thread of low priority. The caller must call wait once: it returns when f has ended, and panics if f
// did.
func onOwnThread(f func()) (wait func()) {
	var panicked any
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its low priority, ends with this goroutine
		defer close(done)
		defer func() { panicked = recover() }()
		lowerPriority()
		f()
	}()
	return func() {
		if <-done; panicked != nil {
			panic(panicked)
		}
	}
}

// beside is onOwnThread for a caller that works on at the same time. Until wait returns, the caller stays on its processor, and f
// on the others: threads of low priority that wake each other up often share one processor while another is idle. Measured on
// two processors (2026-11): a chain was unpacked and decoded in 45 ms, as by one thread. On two processors it takes 29 ms.
func beside(f func()) (wait func()) {
	runtime.LockOSThread()
	leave, end := holdProcessor()
	ended := onOwnThread(func() {
		leave()
		f()
	})
	return func() {
		defer runtime.UnlockOSThread()
		defer end()
		ended()
	}
}

// both runs f and g, at the same time if there are two processors.
func both(f, g func()) {
	if background.processors() == 1 {
		g()
		f()
		return
	}
	wait := beside(g)
	defer wait()
	f()
}

// background counts the calls of [inBackground] under way in the process.
var background backgroundWork

type backgroundWork struct {
	mu      sync.Mutex
	n, long int    // calls under way, and those among them that are not short
	waiting int    // calls among the n that wait for another machine
	without int    // GOMAXPROCS while no call works
	room    bool   // GOGC is higher than percent
	percent int    // GOGC without short calls, negative without a limit
	endTick func() // ends [tickOften]; nil if nothing ticks
	kept    uint64 // bytes of the heap after the last collection; 0 before the first
}

// minRoom and maxRoom bound the heap that gets room for garbage. After a refresh of the SPX chain it has 50 MB; before the first
// one 20, and nobody knows how long the chain will be; after the largest chain that is accepted 150.
const minRoom, maxRoom = 32 << 20, 80 << 20

// begin adds a call.
func (w *backgroundWork) begin(short bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(1, short)
}

// end removes a call. After the last one, it collects the garbage before the ticks end.
func (w *backgroundWork) end(short bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.add(-1, short); w.n == 0 {
		w.collect()
	}
	w.rest()
}

// wait adds n to the calls that wait.
func (w *backgroundWork) wait(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
	w.add(0, true)
	w.rest()
}

// rest ends the ticks if no call works. The caller must have locked w.mu.
func (w *backgroundWork) rest() {
	if w.n <= w.waiting && w.endTick != nil {
		w.endTick()
		w.endTick = nil
		runtime.GOMAXPROCS(w.without)
	}
}

// add adds n calls and sets GOMAXPROCS and GOGC. While all calls are short, the heap may grow three times as far, by 120 % in place
// of 40 %: a refresh of the SPX chain needs 95 %. So its garbage is collected after it, see [backgroundWork.collect]. While no call
// works, GOMAXPROCS has the threads of the ticks until they end. The caller must have locked w.mu.
func (w *backgroundWork) add(n int, short bool) {
	if w.endTick == nil {
		w.without = runtime.GOMAXPROCS(0)
	}
	w.n += n
	if !short {
		w.long += n
	}
	procs, works := w.without, w.n > w.waiting
	if works || w.endTick != nil {
		procs += len(ticked)
	}
	if works {
		procs += min(w.without, 2)
	}
	if procs != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(procs)
	}
	if works && w.endTick == nil {
		w.endTick = tickOften()
	}
	room := w.n > 0 && w.long == 0 && w.kept >= minRoom && w.kept <= maxRoom
	switch {
	case room && !w.room:
		w.percent = int(measured("/gc/gogc:percent")) //nolint:gosec // G115: without a limit it is all ones, so it becomes -1
		debug.SetGCPercent(3 * w.percent)
	case w.room && !room:
		debug.SetGCPercent(w.percent)
	}
	w.room = room
}

// collect runs the garbage collector if the heap has grown by a fifth since the last call that did. A collection stops all
// goroutines twice. While a thread of low priority works, that takes until this thread has had a processor, up to 10 ms on a busy
// machine. After a refresh, it takes microseconds.
func (w *backgroundWork) collect() {
	const objects = "/memory/classes/heap/objects:bytes"
	if now := measured(objects); now < w.kept+w.kept/5 {
		w.kept = min(w.kept, now)
		return
	}
	runtime.GC()
	w.kept = measured(objects)
}

// measured returns a value of [runtime/metrics].
func measured(name string) uint64 {
	value := []metrics.Sample{{Name: name}}
	metrics.Read(value)
	return value[0].Value.Uint64()
}

// processors returns how many threads of Go code may run at the same time without those of background work.
func (w *backgroundWork) processors() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.endTick != nil {
		return w.without
	}
	return runtime.GOMAXPROCS(0)
}
