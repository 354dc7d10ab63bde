package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// answering is a transport that answers what it has read before it ends. At the end of input, or at a line that is no JSON, the SDK
// drops the requests that have no answer yet: https://github.com/modelcontextprotocol/go-sdk/issues/1061. So a pipe of requests would
// get nothing.
type answering struct{ sdk.Transport }

// Connect implements [sdk.Transport].
func (a answering) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := a.Transport.Connect(ctx)
	return &connection{Connection: c, waiting: map[jsonrpc.ID]bool{}, changed: sync.NewCond(&sync.Mutex{})}, err
}

type connection struct {
	sdk.Connection
	changed *sync.Cond
	waiting map[jsonrpc.ID]bool // the requests that were read and have no answer
	closed  bool
}

// Read reads a message. It returns the end of input, or that a line is no JSON, when no request waits, or after Close.
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() && request.Method != "subscriptions/listen" { // which has no answer before the end
		c.waiting[request.ID] = true
	}
	for err != nil && ctx.Err() == nil && len(c.waiting) > 0 && !c.closed {
		c.changed.Wait()
	}
	return message, err
}

// Write writes a message. A request that was cancelled has an answer, too.
func (c *connection) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if response, ok := message.(*jsonrpc.Response); ok {
		c.change(func() { delete(c.waiting, response.ID) })
	}
	return err
}

// Close ends Read, too: the SDK calls it after a signal, or when it can write no more.
func (c *connection) Close() error {
	c.change(func() { c.closed = true })
	return c.Connection.Close()
}

func (c *connection) change(f func()) {
	c.changed.L.Lock()
	defer c.changed.L.Unlock()
	f()
	c.changed.Broadcast()
}

// unmarked reads input without a byte order mark at its begin. Codex CLI on Windows writes one:
// https://github.com/modelcontextprotocol/kotlin-sdk/issues/956. No message is shorter than the mark.
type unmarked struct {
	io.Reader
	begun bool
}

// Read implements [io.Reader].
func (u *unmarked) Read(p []byte) (int, error) {
	if u.begun {
		return u.Reader.Read(p)
	}
	u.begun = true
	mark := []byte("\xef\xbb\xbf")
	n, err := io.ReadAtLeast(u.Reader, p, len(mark))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return copy(p, bytes.TrimPrefix(p[:n], mark)), err
}
