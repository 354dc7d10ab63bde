package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// netHTTPCommand is Go's net/http sending the same bytes as the server under test: the plainest handler that a Go
// programmer would write with the answers in memory. It serves each DIR/NAME.raw, a whole HTTP response, as /NAME.
type netHTTPCommand struct {
	Address, Dir string `arg:""`
}

// Run serves until the process ends.
func (c netHTTPCommand) Run() error {
	files, err := filepath.Glob(filepath.Join(c.Dir, "*.raw"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no .raw files in %s", c.Dir)
	}
	mux := http.NewServeMux()
	for _, file := range files {
		h, err := answerOf(file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		mux.Handle("/"+strings.TrimSuffix(filepath.Base(file), ".raw"), h)
	}
	server := &http.Server{Addr: c.Address, Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 5 * time.Minute}
	return server.ListenAndServe()
}

// answerOf sends the response in a file, or 304 to its ETag.
func answerOf(file string) (http.Handler, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	etag := resp.Header.Get("ETag")
	resp.Header.Del("Date")
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, values := range resp.Header {
			h[name] = values
		}
		if etag != "" && r.Header.Get("If-None-Match") == etag {
			h.Del("Content-Length")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(body) // the client may have gone
	}), nil
}
