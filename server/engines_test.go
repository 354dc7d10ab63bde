package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"strikecache/server"
	"strikecache/server/limits"
	"strikecache/server/loop"
	"strikecache/snapshots"
)

// statuses returns the statuses of the responses in raw bytes.
func statuses(raw string) string {
	var all []string
	for _, r := range strings.Split(raw, "HTTP/1.1 ")[1:] {
		all = append(all, r[:3])
	}
	return strings.Join(all, " ")
}

// Both engines send the same bytes, whatever the target, the fields and the method.
func TestEnginesAnswerAlike(t *testing.T) {
	if engine != server.EngineLoop {
		t.Skip("it compares both engines in one run")
	}
	f := newFinder(t)
	tag := f.editions["gex/spx"].Default.ETag(snapshots.Gzip)
	of := func(engine string) string {
		return listen(t, newServer(f, func(c *server.Config) { c.Engine = engine }))
	}
	looping, fast := of(server.EngineLoop), of(server.EngineFasthttp)
	targets := []string{
		"/api/v1/gex/spx", "/api/v1/gex/spx/historical?date=2026-11-17", "/api/v1/gex/spx/historical?date=2026-11-18", "/api/public/spx-max-pain?expiration=2026-11-27",
		"/api/public/spx-max-pain?expiration=x", "/api/v1/options/flow/unusual?limit=1", "/api/v1/options/flow/unusual?limit=0", "/api/v1/gex/spx?a=//b",
		"/api/v1/gex/spx/series?x=%zz", "/nosuch", "/healthz", "/", "http://a/api/v1/gex/spx", "/api/v1/gex/spx/levels?format=line",
		"/api/v1/gex/spx/levels?format=x",
	}
	for _, fields := range []string{
		"", "Host: a\r\n", "Host: :80\r\n", "Host: a:\r\n", "Host: a:99999999\r\n", "Host: a..b\r\n", "Host: -\r\n", "Host: 1.2.3.4.5:1\r\n", "Host: :\r\n", "Host: a\r\nConnection: close\r\n",
		"Host: a\r\nConnection: close\r\nConnection: keep-alive\r\n", "Host: a\r\nConnection: keep-alive\r\nConnection: close\r\n", "Host: a\r\nConnection:\r\n",
		"Host: a\r\nConnection: close, x\r\n", "Host: a\r\nConnection: keep-alive, Close\r\n", "Host: a\r\nContent-Length: 0\r\n", "Host: a\r\nContent-Length: 00\r\n",
		"Host: a\r\nIf-None-Match:\r\n", "Host: a\r\nIf-None-Match: *\r\nIf-Modified-Since: x\r\n", "Host: a\r\nIf-None-Match: \"a\", *\r\n", "Host: a\r\nIf-None-Match: " + tag + "\r\n",
		"Host: a\r\nAccept-Encoding:\r\n", "Host: a\r\nAccept-Encoding: gzip\r\n", "Host: a\r\nAccept-Encoding: br, zstd\r\n", "Host: a\r\nX-API-Key:\r\n", "Host: a\r\nX-API-Key: guess\r\n",
		"Host: a\r\nCookie: a=b; c\r\n", "Host: a\r\nProxy-Connection: close\r\n", "Host: a\r\nTrailer: x\r\n", "Host: a\r\nTransfer-Encoding: chunked\r\n", "Host: a\r\nContent-Length: 3\r\n", "Host: a\r\nContent-Type: multipart/form-data; boundary=x\r\n",
		"Host: a\r\nIf-Match: \"a\"\r\n", "Host: a\r\nRange: bytes=0-1\r\n", "Host: a\r\nExpect: 100-continue\r\n", "Host: a\r\nX: \xff\t\xfe\r\n", "Host: a\r\nTE: trailers\r\n", "Host: a\r\nKeep-Alive: 5\r\n",
	} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
			for _, target := range targets {
				raw := strings.Repeat(method+" "+target+" HTTP/1.1\r\n"+fields+"\r\n", 2)
				a, b := undated(exchange(t, looping, raw, true)), undated(exchange(t, fast, raw, true))
				if strings.Count(a, "\n") < 6 || a != b {
					t.Fatalf("%q:\nloop     %.600q\nfasthttp %.600q", raw, a, b)
				}
			}
		}
	}
}

// A client that sends many requests before it reads gets every answer whole and in order, small ones and large ones, even if it
// ends its side at once.
func TestReadLate(t *testing.T) {
	f := newFinder(t)
	large := strings.Repeat("0123456789", 20_000)
	f.editions["gex/spx/series"] = &snapshots.Edition{Default: seal(t, "gex/spx/series", `"`+large+`"`)}              // over what a loop remembers
	f.editions["gex/spx/matrix"] = &snapshots.Edition{Default: seal(t, "gex/spx/matrix", `"`+large[:50_000]+`"`)}     // over what it collects
	f.editions["sectors/rotation"] = &snapshots.Edition{Default: seal(t, "sectors/rotation", `"`+large[:12_000]+`"`)} // two of them are not
	c := dial(t, listen(t, newServer(f)))
	var requests strings.Builder
	var want []string
	for i := range 300 {
		route := []string{"api/public/vix-term-structure", "api/v1/gex/spx/matrix", "api/v1/sectors/rotation", "api/v1/gex/spx/series", "api/v1/sectors/rotation", "api/v1/gex/spx"}[i%6]
		requests.WriteString("GET /" + route + " HTTP/1.1\r\nHost: a\r\nX-Number: " + strconv.Itoa(i/12) + "\r\n\r\n") // each head twice
		want = append(want, string(f.editions[resourceOf("/"+route)].Default.Body(snapshots.Identity)))
	}
	write(t, c, requests.String())
	must(t, c.CloseWrite())
	all, err := io.ReadAll(c)
	must(t, err)
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

// No answer of before is given where another is right: after a publication, for another method, and where an answer depends
// on more than its request.
func TestForgetsWhatChanged(t *testing.T) {
	store := storeOf(t, newFinder(t))
	for name, addresses := range map[string]*limits.Addresses{"anonymous": nil, "limited": limits.NewAddresses(110)} {
		c := dial(t, listen(t, newServer(nil, func(c *server.Config) { c.Finder, c.Addresses = store, addresses })))
		ask := func(method, target, fields string) (string, string) {
			t.Helper()
			write(t, c, method+" "+target+" HTTP/1.1\r\nHost: a\r\n"+fields+"\r\n")
			b := make([]byte, 1<<20)
			n, err := c.Read(b) // small answers come whole
			must(t, err)
			head, body, _ := bytes.Cut(b[:n], []byte("\r\n\r\n"))
			return string(head), string(body)
		}
		for i := range 200 {
			s := seal(t, "vix-term-structure", `{"n":`+strconv.Itoa(i)+`}`)
			must(t, store.Publish(map[string]*snapshots.Edition{"vix-term-structure": {Default: s}}))
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
		same := func() bool {
			first, _ := ask("GET", "/api/v1/gex/spx", "")
			second, _ := ask("GET", "/api/v1/gex/spx", "")
			return undated(first) == undated(second)
		}
		if name == "anonymous" {
			for range 3 {
				if !same() {
					t.Error("two answers without a limit differ")
				}
			}
		} else {
			for pairs := 0; same(); pairs++ { // equal only while the bucket of a slow machine refills between two requests
				if pairs == 100 {
					t.Fatal("no answer counts its request")
				}
			}
		}
		for _, day := range []string{"first", "second"} { // files of dates are written without a publication
			edition := &snapshots.Edition{Default: sealOf(t, "2026-11-19", "gex/spx", `{"day":"`+day+`"}`)}
			must(t, store.Save([]snapshots.File{{Product: "gex/spx", Edition: edition, Dated: true}}, nil))
			if _, body := ask("GET", "/api/v1/gex/spx/historical?date=2026-11-19", ""); !strings.Contains(body, day) {
				t.Errorf("%s: %s", name, body)
			}
		}
	}
}

// panicking is a finder that panics when it is asked for one resource.
type panicking struct {
	*finder
	resource, detail string
}

func (f panicking) Current(resource string) *snapshots.Edition {
	if resource == f.resource {
		panic(f.detail)
	}
	return f.finder.Current(resource)
}

// A server that was told to stop before it served does not serve.
func TestShutdownBeforeServe(t *testing.T) {
	web := newServer(newFinder(t))
	if err := web.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	ln, err := loop.Listen("127.0.0.1:0")
	if err == nil {
		err = web.Serve(ln)
	}
	if err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener is open")
	}
}

// Clients that always have requests under way when a server stops get whole answers, and the last one says that it is the last.
func TestStopsUnderRequests(t *testing.T) {
	const ahead, half = 50, 10 // requests; bytes of the next one, which keep the connection of a slow client from being idle
	address, shutdown := serve(t, newServer(newFinder(t)))
	var clients sync.WaitGroup
	for range 20 {
		c := dial(t, address)
		write(t, c, strings.Repeat(series, ahead)+series[:half])
		answers := bufio.NewReader(c)
		next := func() (last bool) {
			resp, err := http.ReadResponse(answers, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
			}
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("%v %v", resp, err)
				return true
			}
			return resp.Close
		}
		next()
		clients.Go(func() {
			for n := 0; !next(); n++ {
				if n%ahead == 0 {
					// This fails only if the server has ended the connection.
					_, _ = io.WriteString(c, series[half:]+strings.Repeat(series, ahead)+series[:half])
				}
			}
			if b, _ := io.ReadAll(answers); len(b) > 0 {
				t.Errorf("more after the last answer: %q", b)
			}
		})
	}
	if err := shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	clients.Wait()
}
