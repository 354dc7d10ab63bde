package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A connection over the limit is closed at once, and a new one is served when another has ended. A client that announces a body
// and sends half of it is answered at once, and holds no place. No timeout of the server ends a connection here.
func TestConnectionsAreBounded(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{}
	s.http = http.Server{Handler: s.guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), true), ConnState: s.bound}
	done := make(chan error)
	go func() { done <- s.http.Serve(ln) }()
	defer func() {
		s.http.Close()
		<-done
	}()
	const request, ok = "GET / HTTP/1.1\r\nHost: localhost\r\n", "HTTP/1.1 200 OK\r\n"
	dial := func(text string) net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, text)
		return c
	}
	served := func() (c net.Conn, yes bool) {
		c = dial(request + "\r\n")
		line, _ := bufio.NewReader(c).ReadString('\n')
		return c, line == ok
	}
	for _, half := range []string{"Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n64\r\nhalf"} {
		for range maxOpen {
			c := dial(request + half)
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil { // for ever, if the server waits for the rest
				t.Fatal(err)
			}
			if b, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") || !strings.HasPrefix(string(b), ok) {
				t.Fatalf("%q: answered %q, %v", half, b, err)
			}
		}
	}
	var first net.Conn
	for n := 0; n < maxOpen; {
		if c, yes := served(); yes { // the server may not have seen the end of the last ones yet
			first, n = c, n+1
		}
	}
	if _, yes := served(); yes {
		t.Error("a connection over the limit is answered")
	}
	first.Close()
	for yes := false; !yes; _, yes = served() { // until the server has seen the end
	}
}
