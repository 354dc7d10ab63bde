package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// resident returns the resident memory of the process in bytes.
func (p *process) resident() int64 {
	p.t.Helper()
	n := statusBytes(p.cmd.Process.Pid, "VmRSS")
	if n == 0 {
		p.t.Skip("needs /proc")
	}
	return n
}

// statusBytes returns a value of /proc/PID/status in bytes; 0 where the system does not tell.
func statusBytes(pid int, name string) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64) // digits, by the expression
	return n << 10
}

// opened returns how many descriptors a process has.
func (p *process) opened() int {
	p.t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		p.t.Skipf("needs /proc: %v", err)
	}
	return len(files)
}

// client is one keep-alive connection.
type client struct {
	net.Conn
	want []byte // the body of the right answer
}

// ask sends a request and checks its answer. What it reads into is kept no longer: ten thousand wait idle.
func (c *client) ask() error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, asking); err != nil {
		return err
	}
	room := make([]byte, len(c.want)+4<<10)
	for n := 0; ; {
		m, err := c.Read(room[n:])
		if n += m; err != nil {
			return fmt.Errorf("after %.100q: %w", room[:n], err)
		}
		if bytes.HasSuffix(room[:n], c.want) && bytes.HasPrefix(room, []byte("HTTP/1.1 200 OK\r\n")) {
			return nil
		}
		if n == len(room) {
			return fmt.Errorf("another answer: %.300q", room)
		}
	}
}

// crowd opens n connections, each with one request answered.
func (p *process) crowd(n int) []*client {
	p.t.Helper()
	_, want := p.get(vixPath)
	out := make([]*client, n)
	each(n, 64, func(i int) {
		c, err := net.Dial("tcp", p.address())
		if err != nil {
			p.t.Error(err)
			return
		}
		out[i] = &client{c, want}
		if err := out[i].ask(); err != nil {
			p.t.Errorf("connection %d: %v", i, err)
		}
	})
	p.t.Cleanup(func() { leave(out) })
	if p.t.Failed() {
		p.t.FailNow()
	}
	return out
}

func leave(clients []*client) {
	for _, c := range clients {
		if c != nil {
			c.Close()
		}
	}
}

// visit lets one more client ask, again and again.
func (p *process) visit() {
	p.t.Helper()
	visitor := p.crowd(1)
	poll(p.t, visitor, count(1000), 2*time.Millisecond)
	leave(visitor)
}

// poll lets every client ask so many times, with a pause between, and returns how many answers came.
func poll(t *testing.T, clients []*client, times int, pause time.Duration) int64 {
	var answers atomic.Int64
	var polling sync.WaitGroup
	for i, c := range clients {
		polling.Go(func() {
			time.Sleep(pause * time.Duration(i) / time.Duration(len(clients))) // one after another, not all at once
			for range times {
				if err := c.ask(); err != nil {
					t.Error(err)
					return
				}
				answers.Add(1)
				time.Sleep(pause)
			}
		})
	}
	polling.Wait()
	return answers.Load()
}

const mebi = 1 << 20

// goroutines ends the process with a dump of its goroutines, and returns how many of them serve a connection.
func (p *process) goroutines() (all, serving int) {
	p.t.Helper()
	_ = p.stop(syscall.SIGQUIT) // the dump is how it ends
	all = strings.Count(p.logged(), "\ngoroutine ")
	if all == 0 {
		p.t.Fatalf("no dump: %s", p.logged())
	}
	return all, strings.Count(p.logged(), "fasthttp.(*Server).ServeConn(")
}

// Many connections, most of them idle, are all held and answered; a visitor is answered beside them; and what they
// took is given back.
func TestFaultConnections(t *testing.T) {
	t.Parallel()
	idle, active := count(10000), count(2000)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(idle+active+500) {
		t.Skipf("needs more open files than the limit: %d (%v)", limit.Cur, err)
	}
	p := serveStored(t, "--max-connections", strconv.Itoa(idle+active+10))
	p.ready()
	times, pause := 5, 100*time.Millisecond
	if full() {
		times, pause = 20, 500*time.Millisecond
	}
	before, files := p.resident(), p.opened()

	waiting := p.crowd(idle)
	p.visit()
	busy := p.crowd(active)
	if n := p.opened() - files; n < idle+active-5 { // what was open before may be closed
		t.Fatalf("%d connections are held, not %d", n, idle+active)
	}
	answers := make(chan int64, 1)
	go func() { answers <- poll(t, busy, times, pause) }()
	p.visit()
	if n := <-answers; n != int64(active*times) {
		t.Errorf("%d of %d answers", n, active*times)
	}
	held := p.resident()
	each(idle, 64, func(i int) { // they are all still there
		if err := waiting[i].ask(); err != nil {
			t.Errorf("idle connection %d: %v", i, err)
		}
	})
	figure(t, "%d connections idle, %d active with %d answers", idle, active, active*times)
	leave(waiting)
	leave(busy)
	p.until("the connections are gone", func() bool { return p.opened() <= files+5 })
	if full() {
		p.returnsMemory(before, held, idle+active)
	}
	all, serving := p.goroutines()
	figure(t, "%d goroutines at the end, %d of them serve a connection", all, serving)
	if serving > 0 || full() && all > 100 {
		t.Errorf("goroutines are left:\n%s", p.logged())
	}
}

// returnsMemory waits until three quarters of what connections took are given back. The collector finds it free at
// its next run, in two minutes at the latest, and what it finds free goes back at a rate that costs a hundredth of
// a core.
func (p *process) returnsMemory(before, held int64, connections int) {
	p.t.Helper()
	began := time.Now()
	for p.resident() > before+(held-before)/4 {
		if time.Since(began) > 6*time.Minute {
			p.t.Fatalf("%d MiB are resident 6 minutes after, %d before, %d at most", p.resident()/mebi, before/mebi, held/mebi)
		}
		time.Sleep(time.Second)
	}
	figure(p.t, "%d MiB resident before, %d held, %.1f KiB a connection; %d MiB %v after the last one left", before/mebi, held/mebi,
		float64(held-before)/1024/float64(connections), p.resident()/mebi, time.Since(began).Round(time.Second))
}
