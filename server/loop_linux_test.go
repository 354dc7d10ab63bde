package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strikecache/server"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// loopAnswers sends the parts to a loop, one after another, and returns everything that it answers.
func loopAnswers(t testing.TB, web *server.Server, parts ...string) string {
	t.Helper()
	c, err := web.LoopConn()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		for _, p := range parts {
			if _, err := io.WriteString(c, p); err != nil {
				return // the server has ended the connection
			}
		}
		_ = c.(*net.UnixConn).CloseWrite() // fails only if the connection has ended
	}()
	got, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	return string(got)
}

// The answers of a loop do not depend on how the bytes of the requests are split.
func TestLoopSplitRequests(t *testing.T) {
	web := newServer(newFinder(t))
	raw := seriesLine + "Host: a\r\nAccept-Encoding: gzip\r\n\r\n" + series + series + "POST /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + series
	want := undated(loopAnswers(t, web, raw))
	if strings.Count(want, "HTTP/1.1 ") != 5 {
		t.Fatalf("%q", want)
	}
	for cut := 1; cut < len(raw); cut++ {
		if got := undated(loopAnswers(t, web, raw[:cut], raw[cut:])); got != want {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	if got := undated(loopAnswers(t, web, strings.Split(raw, "")...)); got != want {
		t.Errorf("byte by byte: %q", got)
	}
}

// loopAllocations reports a request whose answer by a loop allocates something, alone or with others in one read. body is the
// body of the answer, unless nil.
func loopAllocations(t *testing.T, web *server.Server, request, body []byte) {
	t.Helper()
	c, err := web.LoopConn()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := make([]byte, 1<<20)
	for _, n := range []int{1, 5} {
		requests := bytes.Repeat(request, n)
		ask := func() {
			if _, err := c.Write(requests); err != nil {
				t.Fatal(err)
			}
			answered := 0
			for have, left := 0, b; answered < n; {
				m, err := c.Read(left)
				if err != nil {
					t.Fatal(err)
				}
				have, left = have+m, left[m:]
				answered = bytes.Count(b[:have], []byte("HTTP/1.1 "))
				if body != nil && (answered < n || !bytes.HasSuffix(b[:have], body)) {
					answered = 0 // the last body is not whole
				}
			}
		}
		for range 50 {
			ask()
		}
		if allocs := testing.AllocsPerRun(200, ask); allocs != 0 {
			t.Errorf("%v allocations for %d requests", allocs, n)
		}
	}
}

// A client that sends many requests before it reads gets every answer whole and in order, small ones and large ones.
func TestLoopAnswersAClientThatReadsLate(t *testing.T) {
	f := newFinder(t)
	large := strings.Repeat("0123456789", 20_000)
	f.editions["gex/spx/series"] = &snapshots.Edition{Default: seal(t, "gex/spx/series", `"`+large+`"`)}              // over memoBody
	f.editions["gex/spx/matrix"] = &snapshots.Edition{Default: seal(t, "gex/spx/matrix", `"`+large[:50_000]+`"`)}     // over writeSize
	f.editions["sectors/rotation"] = &snapshots.Edition{Default: seal(t, "sectors/rotation", `"`+large[:12_000]+`"`)} // two of them are not
	web := newServer(f)
	c, err := web.LoopConn()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var requests strings.Builder
	var want []string
	for i := range 300 {
		route := []string{"api/public/vix-term-structure", "api/v1/gex/spx/matrix", "api/v1/sectors/rotation", "api/v1/gex/spx/series", "api/v1/sectors/rotation", "api/v1/gex/spx"}[i%6]
		resource := strings.TrimPrefix(strings.TrimPrefix(route, "api/public/"), "api/v1/")
		requests.WriteString("GET /" + route + " HTTP/1.1\r\nHost: a\r\nX-Number: " + strconv.Itoa(i/12) + "\r\n\r\n") // each head twice
		want = append(want, string(f.editions[resource].Default.Body(snapshots.Identity)))
	}
	go func() {
		_, _ = io.WriteString(c, requests.String()) // the answers show what arrived
		_ = c.(*net.UnixConn).CloseWrite()
	}()
	time.Sleep(200 * time.Millisecond) // the buffers are full by now
	all, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, body := range want {
		head, rest, _ := strings.Cut(string(all), "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.HasPrefix(rest, body) {
			t.Fatalf("answer %d: %q", i, head)
		}
		all = all[len(head)+4+len(body):]
	}
	if len(all) > 0 {
		t.Errorf("%d bytes more", len(all))
	}
}

// A request that arrived in time is answered, even if the loop reads it after that time.
func TestLoopAnswersWhatItReadsLate(t *testing.T) {
	c, err := newServer(newFinder(t)).LateConn(vix)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if status, _, err := response(c); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
}

// A large answer that is asked for often is sent from a file. What the client has not read yet stays whole when another answer is
// published. The files of a second are closed soon after it.
func TestLoopSendsLargeAnswersFromFiles(t *testing.T) {
	files := func() (n int) {
		open, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range open {
			if target, _ := os.Readlink(fd); strings.HasPrefix(target, "/memfd:response") {
				n++
			}
		}
		return n
	}
	store := storeOf(t, newFinder(t))
	// A client whose kernel takes little at a time: an answer is sent in parts.
	little := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<10) })
		return errors.Join(failed, err)
	}}
	c, err := little.Dial("tcp", listen(t, newServer(nil, func(c *server.Config) { c.Finder = store })))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const times, before = 40, 12 // answers of two publications, and how many are read before the second one
	requests := strings.Repeat("GET /api/v1/gex/spx/matrix HTTP/1.1\r\nHost: a\r\n\r\n", times/2)
	r, most := bufio.NewReader(c), 0
	for i := range 20 {
		first := seal(t, "gex/spx/matrix", `"`+strings.Repeat(string(rune('a'+i)), 70_000)+`"`)
		second := seal(t, "gex/spx/matrix", `"`+strings.Repeat(string(rune('A'+i)), 70_000)+`"`)
		publish := func(s *snapshots.Snapshot) {
			if err := store.Publish(map[string]*snapshots.Edition{"gex/spx/matrix": {Default: s}}); err != nil {
				t.Fatal(err)
			}
		}
		publish(first)
		go func() { _, _ = io.WriteString(c, requests) }()
		want := first.Body(snapshots.Identity)
		for n := range times {
			if n == before {
				publish(second)
				go func() { _, _ = io.WriteString(c, requests) }()
			}
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if n >= before && bytes.Equal(body, second.Body(snapshots.Identity)) {
				want = body // and never the first again
			}
			if !bytes.Equal(body, want) {
				t.Fatalf("publication %d, answer %d: %d bytes, %.80q", i, n, len(body), body)
			}
			most = max(most, files())
		}
		if !bytes.Equal(want, second.Body(snapshots.Identity)) {
			t.Fatalf("publication %d: the last answer is of the one before", i)
		}
	}
	if most == 0 {
		t.Error("nothing was sent from a file")
	}

	// Many heads in the same second, each sent often.
	requests = ""
	for i := range 48 {
		requests += strings.Repeat(fmt.Sprintf("GET /api/v1/gex/spx/matrix HTTP/1.1\r\nHost: a%d\r\n\r\n", i), 10)
	}
	go func() { _, _ = io.WriteString(c, requests) }()
	for range 480 {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 70_000 {
			t.Fatal(n, err)
		}
		if n := files(); n > server.MaxFiles {
			t.Fatalf("%d files are open, the limit is %d", n, server.MaxFiles)
		}
	}
	c.Close() // an idle server keeps none
	for began := time.Now(); files() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%d files stay open", files())
		}
	}
}

// A loop never gives a remembered answer when another is right: after a publication, for another method, and where an answer
// depends on more than its request.
func TestLoopForgetsWhatChanged(t *testing.T) {
	store := storeOf(t, newFinder(t))
	for name, addresses := range map[string]*limits.Addresses{"anonymous": nil, "limited": limits.NewAddresses(100)} {
		web := newServer(nil, func(c *server.Config) { c.Finder, c.Addresses = store, addresses })
		c, err := web.LoopConn()
		if err != nil {
			t.Fatal(err)
		}
		ask := func(method, target, fields string) (string, string) {
			t.Helper()
			if _, err := io.WriteString(c, method+" "+target+" HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n"); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 1<<20)
			n, err := c.Read(b) // small answers come whole
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := bytes.Cut(b[:n], []byte("\r\n\r\n"))
			return string(head), string(body)
		}
		for i := range 200 {
			s := seal(t, "vix-term-structure", `{"n":`+strconv.Itoa(i)+`}`)
			if err := store.Publish(map[string]*snapshots.Edition{"vix-term-structure": {Default: s}}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, body := ask("GET", "/api/public/vix-term-structure", ""); body != string(s.Body(snapshots.Identity)) {
					t.Fatalf("%s: publication %d: %s", name, i, body)
				}
				if head, body := ask("HEAD", "/api/public/vix-term-structure", ""); body != "" || !strings.Contains(head, s.ETag(snapshots.Identity)) {
					t.Fatalf("%s: HEAD: %s %s", name, head, body)
				}
				if head, _ := ask("GET", "/api/public/vix-term-structure", "If-None-Match: "+s.ETag(snapshots.Gzip)+"\r\n"); !strings.HasPrefix(head, "HTTP/1.1 304") && name == "anonymous" {
					t.Fatalf("%s: %s", name, head)
				}
			}
			if name == "limited" && i == 15 {
				break
			}
		}
		first, _ := ask("GET", "/api/v1/gex/spx", "")
		second, _ := ask("GET", "/api/v1/gex/spx", "")
		if same := undated(first) == undated(second); same != (name == "anonymous") { // the limit counts down
			t.Errorf("%s: %s\n%s", name, first, second)
		}
		for _, day := range []string{"first", "second"} { // files of dates are written without a publication
			edition := &snapshots.Edition{Default: sealOf(t, "2026-11-19", "gex/spx", `{"day":"`+day+`"}`)}
			if err := store.Save([]snapshots.File{{Product: "gex/spx", Edition: edition, Dated: true}}, nil); err != nil {
				t.Fatal(err)
			}
			if _, body := ask("GET", "/api/v1/gex/spx/historical?date=2026-11-19", ""); !strings.Contains(body, day) {
				t.Errorf("%s: %s", name, body)
			}
		}
		c.Close()
	}
}
