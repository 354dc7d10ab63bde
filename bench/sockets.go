package main

import (
	"context"
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
	// end closes everything.
	end()
}

// netSockets are sockets over Go's network library, for TLS and for every system. A goroutine for each connects and reads.
type netSockets struct {
	target  *target
	current []*netSocket // by number
	news    chan news
	over    chan struct{} // receives at until
	until   time.Time
}

type netSocket struct {
	id     int
	conn   net.Conn        // valid from the first news
	opened context.Context // ends with close
	close  context.CancelFunc
}

type news struct {
	from *netSocket
	got  []byte
	err  error
}

func newNetSockets(t *target, connections int) *netSockets {
	return &netSockets{target: t, current: make([]*netSocket, connections), news: make(chan news), over: make(chan struct{}, 1)}
}

func (s *netSockets) open(id int) error {
	k := &netSocket{id: id}
	k.opened, k.close = context.WithCancel(context.Background())
	s.current[id] = k
	go k.read(s.target, s.news)
	return nil
}

// read connects, and sends the news of a connection until it is closed.
func (k *netSocket) read(t *target, to chan<- news) {
	n := news{from: k}
	if k.conn, n.err = t.dial(); n.err == nil {
		context.AfterFunc(k.opened, func() { _ = k.conn.Close() }) // ends Read
	}
	for {
		select {
		case to <- n:
		case <-k.opened.Done():
			return
		}
		if n.err != nil {
			return
		}
		buf := make([]byte, 16<<10)
		size, err := k.conn.Read(buf)
		if n.got = buf[:size]; size == 0 {
			n.err = err // after bytes, the next Read returns it again
		}
	}
}

func (s *netSockets) write(id int, request []byte) error {
	_, err := s.current[id].conn.Write(request) // it does not wait: an idle connection has room for a request
	return err
}

func (s *netSockets) next(d time.Duration) (int, []byte, error) {
	s.wake(max(d, 0))
	for {
		select {
		case n := <-s.news:
			if id := n.from.id; s.current[id] == n.from { // not closed meanwhile
				return id, n.got, n.err
			}
		case <-s.over: // early if a signal has ended the pause, so that the next call begins another one
			s.until = time.Time{}
			return -1, nil, nil
		}
	}
}

// wake sends to over after a time, unless an earlier call does so at nearly the same instant.
func (s *netSockets) wake(d time.Duration) {
	now := time.Now()
	if at := now.Add(d); now.After(s.until) || s.until.Sub(at) > 50*time.Microsecond {
		s.until = at
		go func() {
			pause(d)
			select {
			case s.over <- struct{}{}:
			default:
			}
		}()
	}
}

func (s *netSockets) close(id int) {
	if k := s.current[id]; k != nil {
		k.close()
		s.current[id] = nil
	}
}

func (s *netSockets) end() {
	for id := range s.current {
		s.close(id)
	}
}
