package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
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

// The server holds and answers many connections, most of them idle. After they have left, their descriptors are given back.
func TestFaultConnections(t *testing.T) {
	t.Parallel()
	idle, active, times := count(10000), count(2000), count(20)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(idle+active+500) {
		t.Skipf("needs more open files than the limit: %d (%v)", limit.Cur, err)
	}
	p := serveStored(t, "--max-connections", strconv.Itoa(idle+active+10), "--idle-timeout", "1h")
	files := p.opened()
	_, want := p.get(vixPath)
	var all []*conn
	for range idle + active {
		all = append(all, p.dial(""))
	}
	ask := func(clients []*conn) { // all at once
		for _, c := range clients {
			c.write(t, asking)
		}
		for i, c := range clients {
			if resp, body, err := c.receive(http.MethodGet); err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, want) {
				t.Fatalf("connection %d: %v, %v", i, resp, err)
			}
		}
	}
	ask(all)
	if n := p.opened() - files; n < idle+active-5 { // what was open before may be closed
		t.Fatalf("%d connections are held, not %d", n, idle+active)
	}
	for range times {
		ask(all[idle:])
	}
	ask(all[:idle]) // they are all still there
	figure(t, "%d connections idle, %d active with %d answers", idle, active, active*times)
	for _, c := range all {
		c.Close()
	}
	p.until("the connections are gone", func() bool { return p.opened() <= files+5 })
}
