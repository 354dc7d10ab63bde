package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// passing changes a command so that it gets sockets as from systemd, see sd_listen_fds(3).
func passing(cmd *exec.Cmd, sockets ...*os.File) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", `export LISTEN_PID=$$; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Env = append(cmd.Env, "LISTEN_FDS="+strconv.Itoa(len(sockets)))
	cmd.ExtraFiles = sockets
	return cmd
}

// fileOf returns the descriptor of a socket. Both are closed with the test.
func fileOf[S interface {
	io.Closer
	File() (*os.File, error)
}](t testing.TB, socket S, err error) *os.File {
	t.Helper()
	must(t, err)
	t.Cleanup(func() { socket.Close() })
	file, err := socket.File()
	must(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// pollers are clients that ask all the time.
type pollers struct {
	t       testing.TB
	address string
	tls     *tls.Config // nil: none
	end     chan struct{}

	answered, waiting, late atomic.Int64
}

func (l *pollers) dial() (*conn, error) {
	c, err := dial(l.address)
	if err != nil || l.tls == nil {
		return c, err
	}
	secure := tls.Client(c, l.tls)
	c = newConn(secure)
	return c, secure.Handshake()
}

// ask sends a request, on a new connection if c is nil, and reads the answer.
func (l *pollers) ask(c *conn) (_ *conn, last bool, err error) {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	if c == nil {
		if c, err = l.dial(); err != nil {
			return c, true, err
		}
	}
	_, err = io.WriteString(c, asking)
	if err != nil {
		return c, true, err
	}
	resp, body, err := c.receive(http.MethodGet)
	if err != nil {
		return c, true, err
	}
	if resp.StatusCode != http.StatusOK || !json.Valid(body) {
		l.t.Errorf("another answer: %d %.300q", resp.StatusCode, body)
	}
	return c, resp.Close, nil
}

// poll asks until the end, on one connection as long as the server keeps it, or on a new connection each time. A stopping
// server waits a second for the first request of a connection, and 100 ms for a later one. On a busy machine, client or server may
// take longer than that: only a connection that has ended earlier is an error. Else the client asks again.
func (l *pollers) poll(keep bool) {
	var c *conn
	var since time.Time // the server began to wait for the request at this time or later
	for {
		waits, begun := 100*time.Millisecond, time.Now()
		if c == nil {
			waits, since = time.Second, begun
		}
		next, last, err := l.ask(c)
		switch {
		case err == nil:
			l.answered.Add(1)
		case errors.Is(err, syscall.ECONNREFUSED), time.Since(since) < waits:
			l.t.Errorf("no answer %v after the server began to wait, on a connection that is new: %v: %v", time.Since(since), c == nil, err)
		default:
			l.late.Add(1)
		}
		if c, since = next, begun; c != nil && (last || !keep) {
			c.Close()
			c = nil
		}
		select {
		case <-l.end:
			if c != nil {
				c.Close()
			}
			return
		default:
		}
	}
}

// A server that gets its socket from a service manager is restarted under load. No connection is refused or reset, and every
// request is answered: connections wait in the socket while no process runs.
func TestRestartThroughPassedSocket(t *testing.T) {
	t.Parallel()
	dir, trusted := t.TempDir(), x509.NewCertPool()
	issue(t, dir, "passed", trusted)
	for name, x := range map[string]struct {
		tls   *tls.Config
		flags []string
	}{
		"loop":     {},
		"fasthttp": {nil, []string{"--engine", "fasthttp"}},
		"TLS":      {&tls.Config{RootCAs: trusted, ServerName: "127.0.0.1"}, []string{"--tls-cert", filepath.Join(dir, "tls.crt"), "--tls-key", filepath.Join(dir, "tls.key")}},
	} {
		t.Run(name, func(t *testing.T) {
			const each = 2 // clients that keep their connections, and clients that do not
			restarts := count(10)
			socket, err := net.Listen("tcp", "127.0.0.1:0")
			file := fileOf(t, socket.(*net.TCPListener), err)
			flags := append([]string{"serve", "--data-dir", storedDay(t), "--sim-speed", "0", "--sim-start", marketStart}, x.flags...)
			start := func() *process {
				p := serveWith(t, passing(command(t, flags...), file))
				if !strings.HasSuffix(p.url, "://"+socket.Addr().String()) || !strings.Contains(p.logged(), "public socket passed by the service manager") {
					t.Errorf("another socket: %s", p.logged())
				}
				return p
			}
			load := &pollers{t: t, address: socket.Addr().String(), tls: x.tls, end: make(chan struct{})}
			p := start()
			var clients sync.WaitGroup
			for range each {
				clients.Go(func() { load.poll(true) })
				clients.Go(func() { load.poll(false) })
			}
			defer clients.Wait()
			defer close(load.end)
			works := func() {
				enough := load.answered.Load() + 100
				p.until("it answers", func() bool { return load.answered.Load() >= enough })
			}
			longest := time.Duration(0)
			for range restarts {
				works()
				began := time.Now()
				p.stop()
				p.until("every client waits", func() bool { return load.waiting.Load() == 2*each })
				p = start()
				works()
				longest = max(longest, time.Since(began))
			}
			figure(t, "%s: %d restarts through a passed socket: %d answers, 0 refused, 0 reset, %d asked again after a pause of the client; 100 answers at most %.1f s after a stop began",
				name, restarts, load.answered.Load(), load.late.Load(), longest.Seconds())
		})
	}
}

// A server does not start with sockets that it cannot serve. A socket for another process does not count.
func TestPassedSocketRefused(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	listens := fileOf(t, listener.(*net.TCPListener), err)
	unixListener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	local := fileOf(t, unixListener.(*net.UnixListener), err)
	datagrams, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	packets := fileOf(t, datagrams, err)
	client, err := net.Dial("tcp", listener.Addr().String())
	connected := fileOf(t, client.(*net.TCPConn), err)
	document, err := os.Open(writeFile(t, filepath.Join(t.TempDir(), "file"), ""))
	must(t, err)
	defer document.Close()
	for want, sockets := range map[string][]*os.File{
		"the service manager has passed 2 sockets, want 1":                              {listens, local},
		"has passed LISTEN_FD_3, which is no listening TCP socket: its network is unix": {local},
		"has passed LISTEN_FD_3, which is no listening TCP socket: it does not listen":  {connected},
		"has passed LISTEN_FD_3, which is no listening TCP socket: file file+net":       {packets},
		"LISTEN_FD_3: getsockopt: socket operation on non-socket":                       {document},
	} {
		if _, stderr, code := run(t, passing(command(t, "serve"), sockets...)); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s", want, code, stderr)
		}
	}
	cmd := command(t, append([]string{"serve"}, noUpstream...)...)
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1", fmt.Sprintf("LISTEN_PID=%d", os.Getpid()))
	cmd.ExtraFiles = []*os.File{listens}
	if p := serveWith(t, cmd); strings.HasSuffix(p.url, listener.Addr().String()) || strings.Contains(p.logged(), "passed by") {
		t.Errorf("took the socket of another process: %s", p.logged())
	}
}
