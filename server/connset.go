package server

import "sync"

// connSet is the set of open connections that fasthttp serves. It is safe for concurrent use.
type connSet struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

func (s *connSet) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	s.open[c] = struct{}{}
}

// remove removes a connection, and says whether the set had it.
func (s *connSet) remove(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, had := s.open[c]
	delete(s.open, c)
	return had
}

// each calls f for every connection. f must not block.
func (s *connSet) each(f func(*conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		f(c)
	}
}

// enter counts a connection that was accepted. It returns false if there are too many: then the connection is refused.
func (s *Server) enter() bool {
	if s.open.Add(1) > int64(s.cfg.MaxConnections) {
		s.open.Add(-1)
		s.traffic.refused.Add(1)
		return false
	}
	s.traffic.accepted.Add(1)
	return true
}

// exit counts the end of a connection.
func (s *Server) exit() { s.open.Add(-1) }
