package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spent returns the CPU time of a process, in clock ticks of 10 ms.
func (p *process) spent() int {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err1 != nil || err2 != nil {
		p.t.Fatal(fields)
	}
	return user + system
}

// A server without a descriptor left neither dies nor spins: connections wait until others end, and are answered.
func TestFaultDescriptors(t *testing.T) {
	t.Parallel()
	const room = 20
	p := serveStored(t)
	p.ready()
	if full() {
		p.backfilled() // then it is at rest
	}
	_, want := p.get(vixPath)
	limit := unix.Rlimit{Cur: uint64(p.opened() + room), Max: uint64(p.opened() + room)}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	var waiting []net.Conn
	for range room + count(400) {
		c := p.dial() // the kernel accepts
		p.write(c, asking)
		waiting = append(waiting, c)
	}
	p.until("descriptors are lacking", func() bool {
		return strings.Contains(p.logged(), "connections are not accepted for now") && strings.Contains(p.logged(), "too many open files")
	})
	if full() {
		before := p.spent()
		time.Sleep(2 * time.Second) // what is measured is what it does meanwhile
		spent := 10 * (p.spent() - before)
		if figure(t, "%d ms of CPU in 2 s without a descriptor", spent); spent > 1000 {
			t.Error("it spins")
		}
	}
	for i, c := range waiting {
		if status, body, err := first(c); status != 200 || !bytes.Equal(body, want) || err != nil {
			t.Fatalf("connection %d: %d, %v", i, status, err)
		}
		c.Close() // and the next has room
	}
	figure(t, "%d connections without a descriptor waited, and were answered", len(waiting)-room)
	p.until("it is as before", func() bool { return p.opened() < int(limit.Cur)-room/2 })
	if resp, _ := p.get("/readyz"); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
}

// A limit of open files that is too low for --max-connections lowers that, and the log says so.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	cmd := command(t, "serve", "--data-dir", t.TempDir(), "--sim-speed", "0")
	shell := command(t)
	shell.Path, shell.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 200 && exec "$0" "$@"`}, cmd.Args...)
	p := serveWith(t, shell)
	if !strings.Contains(p.logged(), "served=72") {
		t.Errorf("%s", p.logged())
	}
	for range 72 {
		p.write(p.dial(), asking)
	}
	p.until("the limit is reached", func() bool {
		c := p.dial()
		defer c.Close()
		p.write(c, asking)
		status, body, err := first(c)
		if err != nil {
			t.Fatal(err)
		}
		return status == 503 && bytes.Contains(body, []byte(`"code":"overloaded"`))
	})
	if strings.Contains(p.logged(), "not accepted for now") {
		t.Errorf("%s", p.logged())
	}
}

// first reads the first answer, and returns its status and body.
func first(c net.Conn) (int, []byte, error) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}
