package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary also has the commands of the bare loop and net/http, because startRival runs its own executable.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "epoll" || os.Args[1] == "nethttp") {
		fmt.Fprintln(os.Stderr, run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// The bare loop and net/http send the bytes of their files to the generator of rivals.
func TestBuiltInRivalsSendTheSameBytes(t *testing.T) {
	b := &comparison{rivalsCommand: &rivalsCommand{}, dir: t.TempDir()}
	for i, size := range []int{1000, 60_000} {
		body := strings.Repeat("x", size)
		raw := fmt.Sprintf("HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 14:25:24 GMT\r\nContent-Length: %d\r\nETag: \"a\"\r\n\r\n%s", size, body)
		b.answers = append(b.answers, answer{Name: strconv.Itoa(size), Coding: "identity", exchange: &exchange{body: []byte(body)}})
		for _, ext := range []string{".raw", ".wire"} {
			must(t, os.WriteFile(filepath.Join(b.dir, strconv.Itoa(i)+ext), []byte(raw), 0o644))
		}
	}
	defer b.stop()
	cells := []cell{
		{Name: "small", Answer: "1000", Connections: 64, Requests: 3000},
		{Name: "large", Answer: "60000", Connections: 64, Requests: 1000},
		{Name: "many", Answer: "1000", Connections: 500, Requests: 3000},
		{Name: "churn", Answer: "1000", Requests: 2 * burst, Churn: true},
	}
	for _, builtIn := range rivals[:2] {
		s, err := b.startRival(t.Context(), builtIn)
		must(t, err)
		must(t, b.plan(t.Context(), s, cells))
		for _, c := range cells {
			if x, err := b.read(s, c); err != nil || x.CPUNs == 0 || x.WallNs == 0 {
				t.Errorf("%s, %s: %+v %v", s.Name, c.Name, x, err)
			}
		}
		// Other bytes are an error, except for a server that may have bodies of its own.
		s.asked["small"].body = []byte("other")
		if err := b.verify(t.Context(), s, cells); err == nil {
			t.Errorf("%s: verify accepts other bytes", s.Name)
		}
		right := b.answers[0].body
		b.answers[0].body = []byte("other")
		before := &side{server: server{Name: "before"}, process: s.process, ownBodies: true}
		if err := b.plan(t.Context(), before, cells); err != nil || !bytes.Equal(before.asked["small"].body, right) {
			t.Errorf("a server with other bodies: %v", err)
		}
		b.answers[0].body = right
	}
}

// The generator refuses an answer that is longer than the first one.
func TestALongerAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer s.Close()
	address, request := strings.TrimPrefix(s.URL, "http://"), ask("/", "identity", "")
	x, err := exchangeWith(t.Context(), address, request)
	if err != nil || string(x.body) != "{}" || x.coding != "identity" || !strings.HasSuffix(string(x.raw), "\r\n\r\n{}") {
		t.Fatalf("%+v %v", x, err)
	}
	g, err := newGenerator(address, anyAddress, 4, request, x.raw)
	must(t, err)
	defer g.end()
	must(t, g.send(400))
	g.length--
	if err := g.send(10); !errors.Is(err, errAnswer) {
		t.Errorf("a longer answer: %v", err)
	}
}

func TestThisProcess(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	must(t, err)
	worked := make(chan bool)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		defer close(worked)
		for from := before; from < before+20*time.Millisecond; from, _ = cpuTime(os.Getpid()) {
		}
	}()
	<-worked
	if used, err := cpuTime(os.Getpid()); err != nil || used < before+20*time.Millisecond {
		t.Errorf("%s before, %s after a thread has ended: %v", before, used, err)
	}
	if _, err := cpuTime(1 << 22); err == nil {
		t.Error("a process that does not exist has used CPU time")
	}
	if n, err := residentMemory(os.Getpid()); err != nil || n < 1<<20 {
		t.Errorf("%d %v", n, err)
	}
}
