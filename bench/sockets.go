package main

import (
	"net"
	"time"
)

// sockets are the connections of a load, by number. One goroutine calls the methods. Only next waits.
type sockets interface {
	// open begins to connect. next returns the number, without bytes, once the connection is open or has failed.
	open(id int) error
	// write sends a whole request.
	write(id int, request []byte) error
	// next waits at most d for news of a connection: the bytes that have arrived, which are valid until another call, or why
	// the connection is of no use. The number is negative if there are none.
	next(d time.Duration) (id int, got []byte, err error)
	// close closes a connection, if it is open. next has no more news of it until it is opened again.
	close(id int)
}

// netSockets are sockets over Go's network library, for TLS and for every system. A goroutine for each connects and reads.
type netSockets struct {
	target  *target
	current []*netSocket // by number
	news    chan news
	over    chan struct{} // the time of a call of next is over
	pausing bool          // a goroutine will send to over
}

type netSocket struct {
	conn net.Conn      // nil until the first news
	end  chan struct{} // closed by close
}

type news struct {
	id   int
	from *netSocket
	conn net.Conn
	got  []byte
	err  error
}

func newNetSockets(t *target, connections int) *netSockets {
	return &netSockets{target: t, current: make([]*netSocket, connections), news: make(chan news), over: make(chan struct{}, 1)}
}

func (s *netSockets) open(id int) error {
	k := &netSocket{end: make(chan struct{})}
	s.current[id] = k
	go func() {
		n := news{id: id, from: k}
		if n.conn, n.err = s.target.dial(); n.err == nil {
			defer func() { _ = n.conn.Close() }()
		}
		for {
			select {
			case s.news <- n:
			case <-k.end:
				return
			}
			if n.err != nil {
				return
			}
			n.got = make([]byte, 16<<10)
			size, err := n.conn.Read(n.got)
			if n.got, n.err = n.got[:size], err; size > 0 {
				n.err = nil // the next Read returns it again
			}
		}
	}()
	return nil
}

func (s *netSockets) write(id int, request []byte) error {
	_, err := s.current[id].conn.Write(request) // it does not wait: an idle connection has room for a request
	return err
}

func (s *netSockets) next(d time.Duration) (int, []byte, error) {
	if d > 0 && !s.pausing { // a later call never waits for an earlier instant
		s.pausing = true
		go func() { pause(d); s.over <- struct{}{} }()
	}
	for {
		var n news
		select {
		case n = <-s.news:
		default:
			if d <= 0 {
				return -1, nil, nil
			}
			select {
			case n = <-s.news:
			case <-s.over:
				s.pausing = false
				return -1, nil, nil
			}
		}
		if s.current[n.id] == n.from { // not closed meanwhile
			n.from.conn = n.conn
			return n.id, n.got, n.err
		}
	}
}

func (s *netSockets) close(id int) {
	if k := s.current[id]; k != nil {
		close(k.end)
		if k.conn != nil {
			_ = k.conn.Close() // ends its Read
		}
		s.current[id] = nil
	}
}
