package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// churn is a client that opens a new connection for each request, and closes the connection after the answer.
//
// To open a connection takes the client more CPU time than it takes the bare loop to serve it. So a server would sleep and
// wake up for every connection, and this would hide how much the servers differ. Therefore the client stops the server
// (SIGSTOP) while it closes the connections of the last burst and opens those of the next burst.
type churn struct {
	to      *unix.SockaddrInet4
	group   int // process group of the server
	request []byte
	first   []byte // every answer has its first 12 bytes and its length
	open    []int  // connections of the last burst, which have their answers
	bursts  int
	buf     []byte
}

func newChurn(address string, group int, request, first []byte) (*churn, error) {
	to, err := netip.ParseAddrPort(address)
	return &churn{to: &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, group: group, request: request, first: first, buf: make([]byte, 256<<10)}, err
}

// send sends n requests, rounded up to whole bursts. The connections of the last burst stay open until the next call or
// close, so that each call has the server open and close the same number of connections.
func (c *churn) send(n int) error {
	for ; n > 0; n -= burst {
		if err := c.sendBurst(); err != nil {
			return err
		}
	}
	return nil
}

func (c *churn) sendBurst() (err error) {
	if err := unix.Kill(-c.group, unix.SIGSTOP); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	c.close()
	for range burst {
		if err = c.connect(); err != nil {
			break
		}
	}
	if err := errors.Join(err, unix.Kill(-c.group, unix.SIGCONT)); err != nil {
		return err
	}
	for _, fd := range c.open {
		if err := c.read(fd); err != nil {
			return err
		}
	}
	return nil
}

// connect opens a connection and sends a request. A closed connection occupies its port for a minute, so that each burst
// comes from another address than the burst before.
func (c *churn) connect() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.open = append(c.open, fd)
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, byte(1 + c.bursts%250), 1}}),
		unix.Connect(fd, c.to),
		unix.SetNonblock(fd, true))
	if err == nil {
		_, err = unix.Write(fd, c.request)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// read waits for an answer. It sleeps, so that the server does not have to wake it up for every answer.
func (c *churn) read(fd int) error {
	began, received := time.Now(), 0
	for received < len(c.first) {
		n, err := unix.Read(fd, c.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			if time.Since(began) > longestSilence {
				return errSilence
			}
			pause(2 * rest)
		case err != nil:
			return fmt.Errorf("read: %w", err)
		case n == 0 || received == 0 && !bytes.HasPrefix(c.buf[:n], c.first[:12]):
			return fmt.Errorf("%w: %.40q", errAnswer, c.buf[:n])
		default:
			received += n
		}
	}
	if received > len(c.first) {
		return fmt.Errorf("%w: longer than %d bytes", errAnswer, len(c.first))
	}
	return nil
}

// close closes the connections of the last burst.
func (c *churn) close() {
	for _, fd := range c.open {
		_ = unix.Close(fd)
	}
	c.open = c.open[:0]
	c.bursts++
}
