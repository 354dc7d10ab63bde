package refresh

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// first is 20 less the niceness of the process, before any test has lowered that of the main thread.
var first, errFirst = unix.Getpriority(unix.PRIO_PROCESS, os.Getpid())

// Background work always runs at the niceness of the process and ten more, also after the main thread had a turn.
func TestPriority(t *testing.T) {
	defer func(before func()) { lower = before }(lower)
	lower = lowerPriority
	if errFirst != nil {
		t.Fatal(errFirst)
	}
	want := min(20-first+extraNice, 19)
	for n := range 20 {
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				inBackground(func() {
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
