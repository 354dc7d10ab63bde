package refresh

import (
	"runtime"
	"sync"
)

// background runs f on a thread of its own, of low priority where the system has such, and returns when it has
// ended: what answers requests goes first. A machine with one core lends f a second scheduler context meanwhile,
// since within one, a long computation keeps the others from seeing the network.
func background(f func()) {
	lent.begin()
	defer lent.end()
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its low priority, ends with this goroutine
		defer close(done)
		lowerPriority()
		f()
	}()
	<-done
}

// lent counts the background work of the process.
var lent loan

type loan struct {
	mu   sync.Mutex
	n    int
	made bool // whether there is a second context that has to go again
}

func (l *loan) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.n == 1 && runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
		l.made = true
	}
}

func (l *loan) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.made {
		runtime.GOMAXPROCS(1)
		l.made = false
	}
}
