package admin

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxConnections is how many connections may be open at a time.
const maxConnections = 64

// connections limits how many connections are open. If there are too many, track closes the connection that has waited longest
// for a complete request head, so clients that never finish a head cannot keep others out. If every connection has a request in
// progress, track closes the new connection. The zero value is ready for use.
type connections struct {
	mu      sync.Mutex
	waiting []net.Conn // for a complete head; the longest-waiting first
	busy    []net.Conn // with a request in progress
}

// track is the ConnState of an http.Server, which reports StateActive once it has read a head.
func (l *connections) track(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := remove(&l.waiting, c) || remove(&l.busy, c)
	switch {
	case state == http.StateNew && len(l.waiting)+len(l.busy) >= maxConnections:
		l.waiting = append(l.waiting, c)
		_ = l.waiting[0].Close() // nothing more can be done
		l.waiting = slices.Delete(l.waiting, 0, 1)
	case state == http.StateNew, state == http.StateIdle && known:
		l.waiting = append(l.waiting, c)
	case state == http.StateActive && known:
		l.busy = append(l.busy, c)
	}
}

// remove removes a connection from a list, and says whether the list had it.
func remove(list *[]net.Conn, c net.Conn) bool {
	i := slices.Index(*list, c)
	if i >= 0 {
		*list = slices.Delete(*list, i, i+1)
	}
	return i >= 0
}
