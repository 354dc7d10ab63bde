package admin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/testkit"
)

// bounded starts a server without timeouts, so that nothing but the bound closes a connection. It returns a dialer that
// sends a text on a new connection.
func bounded(t *testing.T, handler http.HandlerFunc) (dial func(text string) net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &http.Server{Handler: handler, ConnState: new(connections).track}
	done := make(chan error)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return func(text string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", ln.Addr().String())
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		fmt.Fprint(c, text)
		return c
	}
}

// answered returns the status line that comes on a connection, "" when the connection is closed.
func answered(c net.Conn) string {
	line, _ := bufio.NewReader(c).ReadString('\n')
	return line
}

const (
	halfHead = "GET / HTTP/1.1\r\nHost: local"
	ok       = "HTTP/1.1 200 OK\r\n"
)

// A request under way keeps its place. When every place has one, a new connection is closed.
func TestARequestUnderWayKeepsItsPlace(t *testing.T) {
	entered, leave := make(chan struct{}, 2*maxConnections), make(chan struct{})
	dial := bounded(t, func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	})
	const whole = halfHead + "host\r\n\r\n"
	var busy []net.Conn
	for range maxConnections {
		busy = append(busy, dial(whole))
		<-entered
	}
	for _, text := range []string{halfHead, whole} {
		if got := answered(dial(text)); got != "" {
			t.Errorf("beyond the limit: %q", got)
		}
	}
	close(leave)
	for i, c := range busy {
		if got := answered(c); got != ok {
			t.Errorf("request %d: %q", i, got)
		}
	}
	for answered(dial(whole)) != ok { // the server frees a place a little after the client has the answer
	}
}

// A client that announces a body and sends half of it is answered at once, and its place is free for the next client.
func TestAHalfBodyHoldsNoPlace(t *testing.T) {
	dial := bounded(t, (&Server{}).guarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), true).ServeHTTP)
	for _, half := range []string{
		"host\r\nContent-Length: 100\r\n\r\nhalf", "host\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nhalf",
	} {
		var held []net.Conn
		for range maxConnections {
			held = append(held, dial(halfHead+half))
		}
		for _, c := range held {
			testkit.Must(t, c.SetReadDeadline(time.Now().Add(time.Minute))) // for ever, if the server waits for the rest
			b, err := io.ReadAll(c)                                         // to the end of the connection
			if err != nil && !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(string(b), ok) {
				t.Fatalf("%q: answered %q, %v", half, b, err)
			}
		}
		if got := answered(dial(halfHead + "host\r\n\r\n")); got != ok {
			t.Errorf("the next client: %q", got)
		}
	}
}
