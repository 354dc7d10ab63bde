package admin

import "net"

// Addr returns the address of the listener, nil if there is none.
func (s *Server) Addr() net.Addr { return s.addr }
