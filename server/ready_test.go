package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			err := server.AskReady(t.Context(), base, &out)
			if (err != nil) != (c.fail != "") || err != nil && !strings.Contains(err.Error(), c.fail) || out.String() != says {
				t.Errorf("%s: %s: %q %v", name, base, out.String(), err)
			}
		}
		s.Close()
		if err := server.AskReady(t.Context(), s.URL, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "not ready: ") {
			t.Errorf("nothing listens: %v", err)
		}
	}
	for _, base := range []string{"", "127.0.0.1:8080", "localhost", "ftp://127.0.0.1", "http://", "http://%zz", "/readyz"} {
		if err := server.AskReady(t.Context(), base, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "--ready must be the URL") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// A service manager that is gone is in the log, and stops nothing.
func TestNotifyOfAManagerThatIsGone(t *testing.T) {
	var log logText
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	server.Notify("READY=1", log.logger())
	if !strings.Contains(log.String(), "service manager not notified") {
		t.Error(log.String())
	}
}

// AskReady fails after five seconds, by the bubble's clock, when the server never answers.
func TestAskIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := server.AskReadyOver(ctx, func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server) // and never answers
			return client, nil
		})
		if took := time.Since(began); err == nil || took != 5*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
