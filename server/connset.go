package server

import "sync"

// connSet is the set of open connections. It is safe for concurrent use.
type connSet struct {
	mu   sync.Mutex
	open map[*conn]struct{}
}

// add adds a connection, unless the set has limit connections already. It says whether it did.
func (s *connSet) add(c *conn, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= limit {
		return false
	}
	if s.open == nil {
		s.open = map[*conn]struct{}{}
	}
	s.open[c] = struct{}{}
	return true
}

func (s *connSet) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func (s *connSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// each calls f for every connection, and returns how many there are. f must not block.
func (s *connSet) each(f func(*conn)) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		f(c)
	}
	return len(s.open)
}
