package server_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"strikecache/bench/openapi"
	"strikecache/snapshots"
)

func TestStaticFiles(t *testing.T) {
	c := start(t, newShelf(t))
	tags := map[string]bool{}
	for path, typ := range map[string]string{"/openapi.json": "application/json", "/docs": "text/html; charset=utf-8", "/docs.css": "text/css; charset=utf-8"} {
		_, plain := do(t, c, "GET", path)
		for coding, decode := range map[string]func(io.Reader) (io.Reader, error){
			"":     func(r io.Reader) (io.Reader, error) { return r, nil },
			"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
			"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
			"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		} {
			resp, body := do(t, c, "GET", path, "Accept-Encoding", coding)
			r, err := decode(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if decoded, err := io.ReadAll(r); err != nil || !bytes.Equal(decoded, plain) || resp.Header.Get("Content-Encoding") != coding {
				t.Errorf("%s as %q: %v, %d bytes as %q", path, coding, err, len(decoded), resp.Header.Get("Content-Encoding"))
			}
			if coding != "" && len(body) > len(plain)/2 {
				t.Errorf("%s as %s: %d of %d bytes", path, coding, len(body), len(plain))
			}
			tag, since := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
			if tags[tag] {
				t.Errorf("two bodies have the tag %s", tag)
			}
			tags[tag] = true
			h := resp.Header
			if h.Get("Content-Type") != typ || h.Get("Cache-Control") != "no-cache" || h.Get("Vary") != "Accept-Encoding" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", path, h)
			}
			if safe := strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'"); safe != (path != "/openapi.json") || safe == (h.Get("Access-Control-Allow-Origin") == "*") {
				t.Errorf("%s: %v", path, h)
			}
			head, body := do(t, c, "HEAD", path, "Accept-Encoding", coding)
			if head.Header.Get("ETag") != tag || head.ContentLength != resp.ContentLength || len(body) != 0 {
				t.Errorf("HEAD %s: %v, %d bytes", path, head.Header, len(body))
			}
			for _, condition := range [][2]string{
				{"If-None-Match", tag}, {"If-None-Match", "W/" + tag}, {"If-None-Match", `"other", ` + tag}, {"If-None-Match", "*"}, {"If-Modified-Since", since},
			} {
				if resp, body := do(t, c, "GET", path, condition[0], condition[1]); resp.StatusCode != 304 || len(body) != 0 || resp.Header.Get("ETag") == "" {
					t.Errorf("%s %v: %d, %d bytes", path, condition, resp.StatusCode, len(body))
				}
			}
		}
		for _, condition := range [][2]string{{"If-None-Match", `"other"`}, {"If-Modified-Since", "Fri, 20 Nov 2026 16:00:12 GMT"}} {
			if resp, _ := do(t, c, "GET", path, condition[0], condition[1]); resp.StatusCode != 200 {
				t.Errorf("%s %v: %d", path, condition, resp.StatusCode)
			}
		}
		if resp, _ := do(t, c, "POST", path); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
			t.Errorf("POST %s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
}

// The errors that no healthy server shows are as documented, too.
func TestFaultsAreDocumented(t *testing.T) {
	shelf := newShelf(t)
	c := start(t, shelf)
	_, body := do(t, c, "GET", "/openapi.json")
	doc, err := openapi.Load(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []struct {
		err    error
		status int
		code   string
	}{
		{errors.New("a disk at /secret/path fails"), 500, "internal_error"},
		{fmt.Errorf("read: %w", snapshots.ErrBusy), 503, "overloaded"},
	} {
		shelf.err = fault.err
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			req, err := http.NewRequest(method, "http://strikecache/api/v1/gex/spx/historical?date=2026-11-19", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != fault.status || method == http.MethodGet && !strings.Contains(string(body), `"code":"`+fault.code+`"`) || strings.Contains(string(body), "secret") {
				t.Errorf("%s: %v, %d %s", method, err, resp.StatusCode, body)
			}
			if err := doc.Check(req, resp, body); err != nil {
				t.Errorf("%s %d: %v", method, fault.status, err)
			}
		}
	}
}
