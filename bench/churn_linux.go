package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// churn is a client that opens a new connection for each request, and closes the connection after the answer.
//
// To open a connection takes the client more CPU time than it takes the bare loop to serve it. So a server would sleep and
// wake up for every connection, and this would hide how much the servers differ. Therefore the client stops the server
// (SIGSTOP) while it closes the connections of the last burst and opens those of the next burst.
type churn struct {
	address        string
	group          int // process group of the server
	request, first []byte
	open           *generator // connections of the last burst, which have their answers; nil before the first
	bursts         int
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
	// A closed connection occupies its port for a minute, so that each burst comes from another address than the one before.
	c.bursts++
	c.open, err = newGenerator(c.address, [4]byte{127, 0, byte(1 + c.bursts%250), 1}, burst, c.request, c.first)
	for i := 0; err == nil && i < burst; i++ {
		err = c.open.ask()
	}
	if err := errors.Join(err, unix.Kill(-c.group, unix.SIGCONT)); err != nil {
		return err
	}
	return c.open.send(burst)
}

// close closes the connections of the last burst.
func (c *churn) close() {
	if c.open != nil {
		c.open.end()
		c.open = nil
	}
}
