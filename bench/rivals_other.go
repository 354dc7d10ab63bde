//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func (*rivalsCommand) measure(context.Context, io.Writer) (*results, error) {
	return nil, errors.New("rivals needs Linux: it pins servers to cores and reads their CPU time from /proc")
}

// epollCommand is the bare epoll loop.
type epollCommand struct{}

func (epollCommand) Run() error { return errors.New("epoll exists on Linux only") }
