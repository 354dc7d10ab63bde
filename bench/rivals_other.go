//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func rivalsCommand(context.Context, []string, io.Writer, io.Writer) error {
	return errors.New("rivals needs Linux: it pins servers to a core and reads their CPU time from /proc")
}
