package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Readiness is the content of /readyz.
type Readiness struct {
	Waiting  []string // resources that the source can feed and that have no answer yet
	Unfed    []string // resources that the source cannot feed
	Degraded []string // codes of impaired parts: disk, keys, usage, tls
}

// Impaired adds a code to Degraded if err is not nil. Clients see the code and not the error.
func (r *Readiness) Impaired(code string, err error) {
	if err != nil {
		r.Degraded = append(r.Degraded, code)
	}
}

// readyDocument is the body of /readyz.
type readyDocument struct {
	Ready    *bool    `json:"ready"` // nil in a body that does not come from /readyz
	Source   string   `json:"source"`
	Waiting  []string `json:"waiting"`
	Unfed    []string `json:"unfed"`
	Degraded []string `json:"degraded"`
}

// Healthz returns the status, always 200, and the JSON body of /healthz.
func (s *Server) Healthz() (status int, body []byte, err error) {
	body, err = json.Marshal(struct {
		Status string `json:"status"`
		Source string `json:"source"`
	}{"ok", s.cfg.Source})
	return http.StatusOK, body, err
}

// Readyz returns the status and the JSON body of /readyz: 200 once every resource that the source can feed has an answer,
// else 503.
func (s *Server) Readyz() (status int, body []byte, err error) {
	r := s.cfg.Readiness()
	ready := len(r.Waiting) == 0
	list := func(names []string) []string { return append([]string{}, names...) } // null is no list
	body, err = json.Marshal(readyDocument{&ready, s.cfg.Source, list(r.Waiting), list(r.Unfed), list(r.Degraded)})
	return statusOf(ready), body, err
}

const (
	// askTimeout bounds a request of [AskReady]. It is shorter than the usual timeout of a container's health check.
	askTimeout = 5 * time.Second
	// maxReadyDocument is how many bytes of a body are read. A server with every part impaired sends less than 1 KB.
	maxReadyDocument = 64 << 10
)

// askTransport uses no proxy.
var askTransport = &http.Transport{}

// AskReady asks the server at a base URL, such as http://127.0.0.1:8080, whether it is ready. If the server is ready,
// AskReady writes a line to out. It returns an error with the reason if the server is not ready, or does not give a valid
// response within 5 seconds. It follows no redirect and uses no proxy.
func AskReady(ctx context.Context, base string, out io.Writer) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--ready must be the URL of a server, such as http://127.0.0.1:8080, not %q", base)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/readyz") + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	d, err := fetchReady(ctx, u.String())
	switch {
	case err != nil:
		return fmt.Errorf("not ready: %w", err)
	case !*d.Ready:
		return fmt.Errorf("not ready: %s", d.reasons("no reason given"))
	}
	_, err = fmt.Fprintf(out, "ready: %s\n", d.reasons("source "+d.Source))
	return err
}

func fetchReady(ctx context.Context, address string) (d readyDocument, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return d, err
	}
	defer askTransport.CloseIdleConnections()
	client := http.Client{
		Transport:     askTransport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return d, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReadyDocument))
	if err != nil {
		return d, fmt.Errorf("read %s: %w", address, err)
	}
	if json.Unmarshal(body, &d) != nil || d.Ready == nil || statusOf(*d.Ready) != resp.StatusCode {
		return d, fmt.Errorf("%s answers with status %d, not as strikecache does", address, resp.StatusCode)
	}
	return d, nil
}

// statusOf is the status of /readyz.
func statusOf(ready bool) int {
	if ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// reasons returns the lists of the document as text, or otherwise when all lists are empty.
func (d readyDocument) reasons(otherwise string) string {
	var all []string
	for _, r := range []struct {
		what  string
		names []string
	}{{"waiting for", d.Waiting}, {"not fed by the source:", d.Unfed}, {"degraded:", d.Degraded}} {
		if len(r.names) > 0 {
			all = append(all, r.what+" "+strings.Join(r.names, ", "))
		}
	}
	if len(all) == 0 {
		return otherwise
	}
	return strings.Join(all, "; ")
}
