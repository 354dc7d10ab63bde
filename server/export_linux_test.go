package server

import (
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LoopConn returns one end of a connection whose other end a new loop serves. The loop ends with the connection.
func (s *Server) LoopConn() (net.Conn, error) { return s.loopConn(s.cfg.ReadTimeout, "") }

// LateConn is LoopConn for a connection that has timed out before the loop reads what has arrived on it.
func (s *Server) LateConn(arrived string) (net.Conn, error) { return s.loopConn(-time.Hour, arrived) }

func (s *Server) loopConn(timeout time.Duration, arrived string) (net.Conn, error) {
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
	if _, err := io.WriteString(client, arrived); err != nil {
		return nil, err
	}
	l, err := s.newLoop()
	if err != nil {
		return nil, err
	}
	s.enter()
	l.add(&peer{fd: ends[1], remote: netip.Addr{}, due: time.Now().Add(timeout)})
	l.last.Store(true)
	s.run(l.run)
	return client, nil
}

// MaxFiles is how many files in memory a server has at most.
const MaxFiles = maxFiles
