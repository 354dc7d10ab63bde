//go:build !linux

package main

import (
	"errors"
	"time"
)

// linuxCommands is empty: rivals pins servers to cores and uses epoll, as only Linux can.
type linuxCommands struct{}

func pause(d time.Duration) { time.Sleep(d) }

func processTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

func newSockets(t *target, connections int) sockets { return newNetSockets(t, connections) }
