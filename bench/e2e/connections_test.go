package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asking is a request. stuck is many requests for big bodies, more than the kernel buffers between client and server.
const asking = "GET " + vixPath + " HTTP/1.1\r\nHost: a\r\n\r\n"

var stuck = strings.Repeat("GET "+gammaPath+" HTTP/1.1\r\nHost: a\r\n\r\n", 150)

// opened returns how many file descriptors a process has open.
func (p *process) opened() int {
	p.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		p.t.Skipf("needs /proc: %v", err)
	}
	return len(files)
}

// visit sends a request and checks that its answer has the right body.
func (c *conn) visit(want []byte) error {
	if _, err := io.WriteString(c, asking); err != nil {
		return err
	}
	resp, body, err := c.receive(http.MethodGet)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Equal(body, want)) {
		err = fmt.Errorf("another answer: %d %.300q", resp.StatusCode, body)
	}
	return err
}

// crowd opens n connections, and asks once on each.
func (p *process) crowd(n int, want []byte) []*conn {
	p.t.Helper()
	out := make([]*conn, n)
	each(n, 64, func(i int) {
		c, err := dial(p.address())
		if err == nil {
			out[i] = c
			err = c.visit(want)
		}
		if err != nil {
			p.t.Errorf("connection %d: %v", i, err)
		}
	})
	p.t.Cleanup(func() { leave(out) })
	if p.t.Failed() {
		p.t.FailNow()
	}
	return out
}

func leave(clients []*conn) {
	for _, c := range clients {
		if c != nil {
			c.Close()
		}
	}
}

// The server holds and answers many connections, most of them idle. After they have left,
// their descriptors, goroutines and memory are given back.
func TestFaultConnections(t *testing.T) {
	t.Parallel()
	idle, active := count(10000), count(2000)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(idle+active+500) {
		t.Skipf("needs more open files than the limit: %d (%v)", limit.Cur, err)
	}
	p := serveStored(t, "--max-connections", strconv.Itoa(idle+active+10), "--admin-listen", "127.0.0.1:0")
	times, pause := 5, 100*time.Millisecond
	if full() {
		times, pause = 20, 500*time.Millisecond
	}
	before, files := p.status("VmRSS"), p.opened()

	_, want := p.get(vixPath)
	began := time.Now()
	waiting, busy := p.crowd(idle, want), p.crowd(active, want)
	if n := p.opened() - files; n < idle+active-5 { // what was open before may be closed
		t.Fatalf("%d connections are held, not %d", n, idle+active)
	}
	var polling sync.WaitGroup
	for i, c := range busy {
		polling.Go(func() {
			time.Sleep(pause * time.Duration(i) / time.Duration(active)) // one after another, not all at once
			for range times {
				if err := c.visit(want); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(pause)
			}
		})
	}
	polling.Wait()
	held := p.status("VmRSS")
	each(idle, 64, func(i int) { // they are all still there
		if err := waiting[i].visit(want); err != nil && time.Since(began) < 75*time.Second { // then idle connections are closed
			t.Errorf("idle connection %d: %v", i, err)
		}
	})
	figure(t, "%d connections idle, %d active with %d answers", idle, active, active*times)
	leave(slices.Concat(waiting, busy))
	p.until("the connections are gone", func() bool {
		return p.opened() <= files+5 && metric(p.operator("/metrics"), "strikecache_connections_open") == "0"
	})
	if full() { // the garbage collector frees the memory within two minutes, and the runtime returns it slowly
		const mebi = 1 << 20
		p.until("three quarters of the memory are given back", func() bool { return p.status("VmRSS") <= before+(held-before)/4 })
		figure(t, "%d MiB resident before, %d with all connections, %.1f KiB a connection; %d MiB after the last one left", before/mebi, held/mebi,
			float64(held-before)/1024/float64(idle+active), p.status("VmRSS")/mebi)
	}
	p.signal(syscall.SIGQUIT) // it ends with a dump of its goroutines
	_ = p.wait()
	all, serving := strings.Count(p.logged(), "\ngoroutine "), strings.Count(p.logged(), "fasthttp.(*Server).ServeConn(")
	figure(t, "%d goroutines at the end, %d of them serve a connection", all, serving)
	if all == 0 || serving > 0 || full() && all > 100 {
		t.Errorf("goroutines are left:\n%s", p.logged())
	}
}
