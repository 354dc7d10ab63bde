package cboe

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/refresh/upstream"
)

// answerName answers the questions of a connection of a name server: with 127.0.0.1, or with a code of RFC 1035, such as 3 for a name that does not
// exist. Each message has its length before it.
func answerName(c net.Conn, code byte) {
	size := make([]byte, 2)
	_, _ = io.ReadFull(c, size)
	q := make([]byte, binary.BigEndian.Uint16(size))
	if _, err := io.ReadFull(c, q); err != nil || len(q) < 12 {
		return // nobody asks any more
	}
	q = q[:12+bytes.IndexByte(q[12:], 0)+5] // without what follows the question
	answer := []byte("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01")
	if isA := q[len(q)-3] == 1; code != 0 || !isA {
		answer = nil
	}
	copy(q[2:], []byte{0x81, 0x80 | code, 0, 1, 0, byte(len(answer) / 16), 0, 0, 0, 0})
	q = append(q, answer...)
	_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...))
}

// A request whose host's name cannot be resolved fails within 30 seconds, with the reason. The next one goes on to the host when the name server is back.
func TestFaultNames(t *testing.T) {
	_, _ = (&net.Resolver{PreferGo: true}).LookupHost(t.Context(), "localhost") // package net makes its channels outside the bubbles
	for _, c := range []struct {
		what   string
		wait   time.Duration // before the name server answers
		code   byte
		reason upstream.Reason
	}{
		{"no answer", time.Hour, 0, upstream.TimedOut}, {"late answer", 20 * time.Second, 0, upstream.TimedOut},
		{"no such name", 0, 3, upstream.Unreachable}, {"failure", 0, 2, upstream.Unreachable},
	} {
		synctest.Test(t, func(t *testing.T) {
			var back atomic.Bool
			d := Dialer
			d.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() {
					defer theirs.Close()
					if back.Load() {
						answerName(theirs, 0)
						return
					}
					time.Sleep(c.wait)
					answerName(theirs, c.code)
				}()
				return ours, nil
			}}
			errConnects := errors.New("it connects")
			d.Control = func(string, string, syscall.RawConn) error { return errConnects }
			client, err := NewClient("http://upstream.example", 20, d.DialContext)
			must(t, err)
			began := time.Now()
			_, err = client.Fetch(t.Context(), spxOptions, nil)
			if took := time.Since(began); upstream.ReasonOf(err) != c.reason || took > 30*time.Second {
				t.Errorf("%s: %v after %v", c.what, err, took)
			}
			back.Store(true)
			if _, err = client.Fetch(t.Context(), spxOptions, nil); !errors.Is(err, errConnects) {
				t.Errorf("%s, and then an answer: %v", c.what, err)
			}
			time.Sleep(time.Hour) // the name server gives up
		})
	}
}
