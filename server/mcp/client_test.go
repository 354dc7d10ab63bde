package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// clientOf returns a client of a test server.
func clientOf(t *testing.T, handler http.HandlerFunc) *client {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return newClient(t.Context(), web.URL, "")
}

// An answer that is not 200, or not of strikecache, becomes an error that says what to do.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{404, `{"error":{"code":"snapshot_not_found","nearest":{"earlier":"2026-11-19","later":null}},"meta":{"source":"simulated"}}`,
			`404 Not Found: {"code":"snapshot_not_found","nearest":{"earlier":"2026-11-19","later":null}}`},
		{503, `{"error":{"code":"not_ready"}}`, `503 Service Unavailable: {"code":"not_ready"}. Try again in 7 seconds.`},
		{502, `<html>Bad gateway</html>`, `"502 Bad Gateway", not as strikecache does: check --url`},
		{400, `{}`, `"400 Bad Request", not as strikecache does`},
		{302, ``, `"302 Found http://other.example/", not as strikecache does`},
	} {
		client := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
			switch c.status {
			case 503:
				w.Header().Set("Retry-After", "7")
			case 302:
				w.Header().Set("Location", "http://other.example/")
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		})
		if _, err := client.get(t.Context(), "/", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, want %s", c.status, err, c.want)
		}
	}
}

// A body is read up to a bound, a request ends at its time limit, and a broken body is an error. No error shows the key.
func TestBounds(t *testing.T) {
	large := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		for range maxBody>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	if body, err := large.get(t.Context(), "/", nil); err != nil || len(body) != maxBody {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	slow := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	slow.http.Timeout = 1
	torn := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		fmt.Fprint(w, "{")
	})
	badKey := newClient(t.Context(), torn.base, "secret\nX-Other: 1")
	for want, c := range map[string]*client{"Client.Timeout": slow, "unexpected EOF": torn, "invalid header field value": badKey} {
		_, err := c.get(t.Context(), "/", nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gives no complete answer") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
