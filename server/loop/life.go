package loop

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Life is how an engine begins and ends. Stop must be set. It is safe for concurrent use.
type Life struct {
	Running  sync.WaitGroup // serving, and whatever serves connections
	Stop     chan struct{}  // closed when Stopping becomes true
	Stopping atomic.Bool
	mu       sync.Mutex // held while serving or Shutdown begins
}

// Begin says whether an engine may begin to serve: it may until Shutdown is called. If so, the caller must call Running.Done
// at the end.
func (l *Life) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Stopping.Load() {
		return false
	}
	l.Running.Add(1)
	return true
}

// Shutdown tells an engine to stop and waits for its end, at most until ctx ends. Then it calls cutOff, which closes all
// connections, until the engine has ended, and returns an error with the number of those that were open.
func (l *Life) Shutdown(ctx context.Context, connections *Connections, cutOff func()) error {
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
		case <-time.After(10 * time.Millisecond): // connections may have been accepted meanwhile
		}
	}
}
