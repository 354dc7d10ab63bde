package server

import (
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LoopConn returns one end of a connection whose other end a new loop serves. The loop ends with the connection.
func (s *Server) LoopConn() (net.Conn, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(ends[0]), "client")
	defer file.Close()
	client, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	l, err := s.newLoop()
	if err != nil {
		return nil, err
	}
	s.enter()
	l.add(&peer{fd: ends[1], remote: netip.Addr{}, due: time.Now().Add(s.cfg.ReadTimeout)})
	l.last.Store(true)
	s.run(l.run)
	return client, nil
}

// MaxFiles is how many files in memory a server has at most.
const MaxFiles = maxFiles
