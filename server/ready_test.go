package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/bench/testkit"
	"strikecache/server"
)

func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		fail   string // "" for ready: then the body is shown
	}{
		"ready":            {200, `{"ready":true,"source":"replay","waiting":[],"unfed":["sectors/rotation"],"degraded":["disk","tls"]}`, ""},
		"waiting":          {503, `{"ready":false,"waiting":["gex/spx"]}`, `not ready: {"ready":false,"waiting":["gex/spx"]}`},
		"contradiction":    {503, `{"ready":true}`, "status 503, not as strikecache does"},
		"another error":    {503, `overloaded`, "status 503"},
		"an error of ours": {503, `{"success":false,"error":{"code":"overloaded"}}`, "status 503, not as strikecache does"},
		"another server":   {200, `<html>`, "not as strikecache does"},
		"another path":     {404, `{}`, "status 404"},
		"a redirect":       {302, ``, "status 302"},
		"without end":      {200, `{"ready":true` + strings.Repeat(" ", 1<<20) + `}`, "not as strikecache does"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			equal(t, r.URL.Path, "/readyz", "asked for")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			w.Write([]byte(c.body))
		}))
		says := ""
		if c.fail == "" {
			says = "ready: " + c.body + "\n"
		}
		for _, base := range []string{s.URL, s.URL + "/", s.URL + "/readyz"} {
			var out strings.Builder
			err := server.ReadyFlags{Ready: base}.AskReady(t.Context(), &out)
			if (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) || out.String() != says {
				t.Errorf("%s: %s: %q %v", name, base, out.String(), err)
			}
		}
		s.Close()
		if err := (server.ReadyFlags{Ready: s.URL}).AskReady(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "not ready: ") {
			t.Errorf("nothing listens: %v", err)
		}
	}
	for _, base := range []string{"", "127.0.0.1:8080", "localhost", "ftp://127.0.0.1", "http://", "http://%zz", "/readyz"} {
		if err := (server.ReadyFlags{Ready: base, Wait: time.Hour}).AskReady(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "--ready must be the URL") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// A service manager that is gone is in the log, and stops nothing.
func TestNotifyOfAManagerThatIsGone(t *testing.T) {
	var log testkit.Text
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	server.Notify("READY=1", log.Logger(slog.LevelDebug))
	if !strings.Contains(log.String(), "service manager not notified") {
		t.Error(log.String())
	}
}

// A server that never answers is given up after five seconds. With --wait, it is asked until it is ready or the time is over, and each
// change is told once. The clock is that of the bubble.
func TestAskIsBounded(t *testing.T) {
	const all, two, ready = `{"ready":false,"waiting":["a","b","c"]}`, `{"ready":false,"waiting":["b","c"]}`, `{"ready":true,"waiting":[]}`
	const some, past = `{"ready":true,"history":"9 of 65"}`, `{"ready":true,"history":"65 of 65"}`
	for _, c := range []struct {
		flags   server.ReadyFlags
		answers []string // the last one again and again: a body of /readyz, "" for none, or the error of a connection
		took    time.Duration
		tells   string
		fails   string
	}{
		{server.ReadyFlags{}, []string{""}, 5 * time.Second, "", "not ready: "},
		{server.ReadyFlags{Wait: time.Minute}, []string{"refused", "refused", all, all, two, ready}, 5 * time.Second, "Get \"http://127.0.0.1:1/readyz\": refused\n3 of 3 wait\n2 of 3 wait\nready: " + ready + "\n", ""},
		{server.ReadyFlags{Wait: 3 * time.Second}, []string{all}, 3 * time.Second, "3 of 3 wait\n", "not ready: " + all},
		{server.ReadyFlags{Wait: time.Minute}, []string{some}, 0, "ready: " + some + "\n", ""},
		{server.ReadyFlags{Wait: time.Minute, Past: true}, []string{all, some, some, past}, 3 * time.Second, "3 of 3 wait\nhistory: 9 of 65\nready: " + past + "\n", ""},
		{server.ReadyFlags{Past: true}, []string{some}, 0, "", "not ready: history: 9 of 65"},
		{server.ReadyFlags{Past: true}, []string{ready}, 0, "ready: " + ready + "\n", ""}, // no past session is played
	} {
		synctest.Test(t, func(t *testing.T) {
			began, asked, out := time.Now(), 0, strings.Builder{}
			err := server.AskReadyOver(t.Context(), c.flags, &out, func(context.Context, string, string) (net.Conn, error) {
				answer := c.answers[min(asked, len(c.answers)-1)]
				if asked++; answer == "refused" {
					return nil, errors.New(answer)
				}
				client, server := net.Pipe()
				go func() {
					status := map[bool]int{true: 200, false: 503}[strings.HasPrefix(answer, `{"ready":true`)]
					if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil && answer != "" {
						fmt.Fprintf(server, "HTTP/1.1 %d x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, len(answer), answer)
					}
					io.Copy(io.Discard, server)
				}()
				return client, nil
			})
			if took := time.Since(began); took != c.took || out.String() != c.tells || (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
				t.Errorf("%v: after %v: %v\n%s", c.answers, took, err, &out)
			}
		})
	}
}
