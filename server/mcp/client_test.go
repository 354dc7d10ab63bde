package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// clientOf returns a client of a test server.
func clientOf(t *testing.T, handler http.HandlerFunc) *client {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	base, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t.Context(), base, "")
}

// An answer that is not 200, or not of strikecache, becomes an error that says what to do.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{404, `{"success":false,"error":{"code":"snapshot_not_found","message":"no snapshot","nearest":{"earlier":"2026-11-19","later":null}},"meta":{"source":"simulated"}}`,
			`404 snapshot_not_found: no snapshot. {"nearest":{"earlier":"2026-11-19","later":null}} Source: simulated`},
		{503, `{"success":false,"error":{"code":"not_ready","message":"nothing computed yet"},"meta":{"source":"cboe"}}`,
			`503 not_ready: nothing computed yet. Try again in 7 seconds. Source: cboe`},
		{401, `{"error":{"code":"invalid_api_key","message":"no"}}`, `401 invalid_api_key: no. Source: unknown`},
		{502, `<html>Bad gateway</html>`, `status 502, not as strikecache does`},
		{400, `{"error":{"code":7}}`, `status 400, not as strikecache does`},
		{302, ``, `redirects to "http://other.example/", and redirects are not followed`},
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
		if _, err := client.answer(t.Context(), "/", nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, want %s", c.status, err, c.want)
		}
		if _, err := client.page(t.Context(), "/"); err == nil {
			t.Errorf("%d: no error", c.status)
		}
	}
}

// A body is read up to a bound, a request ends at its time limit, and a broken body is an error.
func TestBounds(t *testing.T) {
	large := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		for range maxBody>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	slow := clientOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	slow.http.Timeout = 1
	torn := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		fmt.Fprint(w, "{")
	})
	for want, c := range map[string]*client{
		"is larger than 8388608 bytes":        large,
		"gives no complete answer within 1ns": slow,
		"cannot be reached: unexpected EOF":   torn,
	} {
		if _, err := c.answer(t.Context(), "/", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// After a request without an answer, the next request gets its answer.
func TestServerIsBack(t *testing.T) {
	var up atomic.Bool
	c := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		if !up.Load() {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "answer")
	})
	if _, err := c.answer(t.Context(), "/", nil); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Error(err)
	}
	up.Store(true)
	if body, err := c.answer(t.Context(), "/", nil); err != nil || string(body) != "answer" {
		t.Errorf("%s, %v", body, err)
	}
}

// When the command stops, its requests end.
func TestStop(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	c := clientOf(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	c.stop = stop
	if _, err := c.answer(t.Context(), "/", nil); err == nil {
		t.Error("no error")
	}
}
