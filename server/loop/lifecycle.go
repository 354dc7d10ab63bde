package loop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lifecycle starts and stops an engine. Stop must be set. It is safe for concurrent use.
type Lifecycle struct {
	Running  sync.WaitGroup // the call of Serve, and every goroutine that serves connections
	Stop     chan struct{}  // closed when Stopping becomes true
	Stopping atomic.Bool
	mu       sync.Mutex // held during Begin and at the start of Shutdown
}

// Begin says whether an engine may begin to serve: false after Shutdown was called. If true, the caller must call Running.Done when
// it has stopped serving.
func (l *Lifecycle) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Stopping.Load() {
		return false
	}
	l.Running.Add(1)
	return true
}

// Shutdown tells an engine to stop and waits until it has stopped. If ctx ends first, Shutdown calls cutOff, which closes all
// connections, until the engine has stopped, and returns an error with the number of connections that were open.
func (l *Lifecycle) Shutdown(ctx context.Context, connections *Connections, cutOff func()) error {
	l.mu.Lock()
	if !l.Stopping.Swap(true) {
		close(l.Stop)
	}
	l.mu.Unlock()
	ended := make(chan struct{})
	go func() { l.Running.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	left := connections.Open.Load()
	for {
		cutOff()
		select {
		case <-ended:
			return fmt.Errorf("shut down: %d connections cut off at the time limit: %w", left, ctx.Err())
		case <-time.After(10 * time.Millisecond): // then close the connections accepted in between
		}
	}
}
