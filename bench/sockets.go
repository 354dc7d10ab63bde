package main

import (
	"net"
	"time"
)

// sockets are the connections of a load, by number. Only the goroutine of the load calls the methods, and none but wait
// blocks.
type sockets interface {
	// open begins to connect. A later wait returns the number when the connection is open, or has failed.
	open(id int) error
	// write sends a whole request.
	write(id int, request []byte) error
	// wait returns the connections for which read has news. If there are none, it waits for them for at most d.
	wait(d time.Duration) []int
	// read returns the bytes that have arrived, which are valid until the next call of any method, or why the connection is of
	// no use. It returns neither after the connection has opened.
	read(id int) ([]byte, error)
	// close closes a connection, if it is open. Nothing more is heard of it until it is opened again.
	close(id int)
	// end closes everything.
	end()
}

// netSockets are sockets over Go's network library, for TLS and for every system. A goroutine for each of them connects and
// reads.
type netSockets struct {
	target  *target
	current []*netSocket // by number
	news    chan *netSocket
	over    chan struct{} // the time of wait is over
	pausing bool          // a goroutine will send to over
	ready   []int
}

// netSocket is one connection. Its goroutine writes the fields, except between its news and the next wait.
type netSocket struct {
	id          int
	conn        net.Conn
	open        bool // written by wait: conn is set
	got         []byte
	err         error
	resume, end chan struct{}
}

func newNetSockets(t *target, connections int) *netSockets {
	return &netSockets{target: t, current: make([]*netSocket, connections), news: make(chan *netSocket), over: make(chan struct{}, 1)}
}

func (s *netSockets) open(id int) error {
	k := &netSocket{id: id, resume: make(chan struct{}, 1), end: make(chan struct{})}
	s.current[id] = k
	go k.run(s)
	return nil
}

// run connects and reads until close, and passes on what it gets.
func (k *netSocket) run(s *netSockets) {
	buf := make([]byte, 64<<10)
	if k.conn, k.err = s.target.dial(); k.err == nil {
		defer k.conn.Close()
	}
	for {
		select {
		case s.news <- k:
		case <-k.end:
			return
		}
		select {
		case <-k.resume:
		case <-k.end:
			return
		}
		n, err := k.conn.Read(buf)
		if k.got, k.err = buf[:n], err; n > 0 {
			k.err = nil // the next Read returns it again
		}
	}
}

func (s *netSockets) write(id int, request []byte) error {
	conn := s.current[id].conn
	if err := conn.SetWriteDeadline(time.Now().Add(s.target.timeout)); err != nil {
		return err
	}
	_, err := conn.Write(request)
	return err
}

func (s *netSockets) wait(d time.Duration) []int {
	for _, id := range s.ready {
		if k := s.current[id]; k != nil && k.open {
			k.resume <- struct{}{}
		}
	}
	s.ready = s.ready[:0]
	take := func(k *netSocket) {
		if s.current[k.id] == k { // not closed meanwhile
			k.open = k.conn != nil
			s.ready = append(s.ready, k.id)
		}
	}
	if d > 0 {
		if !s.pausing { // a later call never waits for an earlier instant
			s.pausing = true
			go func() { pause(d); s.over <- struct{}{} }()
		}
		select {
		case k := <-s.news:
			take(k)
		case <-s.over:
			s.pausing = false
		}
	}
	for {
		select {
		case k := <-s.news:
			take(k)
		default:
			return s.ready
		}
	}
}

func (s *netSockets) read(id int) ([]byte, error) {
	return s.current[id].got, s.current[id].err
}

func (s *netSockets) close(id int) {
	if k := s.current[id]; k != nil {
		close(k.end)
		if k.open {
			_ = k.conn.Close() // ends its Read
		}
		s.current[id] = nil
	}
}

func (s *netSockets) end() {
	for id := range s.current {
		s.close(id)
	}
}
