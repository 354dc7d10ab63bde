package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// netHTTPCommand serves the answers of strikecache with Go's net/http, by the plainest handler that a Go programmer would
// write for answers in memory. It serves each file DIR/NAME.raw, a whole HTTP response, as /NAME.
type netHTTPCommand struct {
	Address, Dir string `arg:""`
}

// Run serves until the process ends.
func (c netHTTPCommand) Run() error {
	files, _ := filepath.Glob(filepath.Join(c.Dir, "*.raw"))
	mux := http.NewServeMux()
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		etag := resp.Header.Get("ETag")
		resp.Header.Del("Date")
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		mux.HandleFunc("/"+strings.TrimSuffix(filepath.Base(file), ".raw"), func(w http.ResponseWriter, r *http.Request) {
			maps.Copy(w.Header(), resp.Header)
			if etag != "" && r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write(body) // the client may have gone
		})
	}
	server := &http.Server{Addr: c.Address, Handler: mux, ReadHeaderTimeout: time.Hour} // no test may depend on the machine's speed
	return server.ListenAndServe()
}
