package refresh

import "runtime"

// lower is lowerPriority. Tests replace it, because on a busy machine they would hardly get a processor.
var lower = lowerPriority

// inBackground runs f on a thread of its own and returns when f has ended. It panics if f does. Where the system allows it, the
// thread has a low priority, so that requests are answered first.
func inBackground(f func()) {
	var panicked any
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its low priority, ends with this goroutine
		defer close(done)
		defer func() { panicked = recover() }()
		lower()
		f()
	}()
	if <-done; panicked != nil {
		panic(panicked)
	}
}
