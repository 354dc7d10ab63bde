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
	Waiting  []string  // resources that the source can feed and that have no answer yet
	Failures []Failure // of waiting resources whose refreshes have failed
	Unfed    []string  // resources that the source cannot feed
	Degraded []string  // codes of impaired parts, without duplicates: disk, clock, refresh, keys, usage, tls, log, fleet
	Role     string    // in a fleet: refresher, follower or edge
	History  string    // past sessions that have been played, such as 41 of 250; "" if there are none
}

// Failure is the last failure of a resource.
type Failure struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"` // a code
}

// Impaired adds a code to Degraded if err is not nil. Clients see the code and not the error.
func (r *Readiness) Impaired(code string, err error) {
	if err != nil {
		r.Degraded = append(r.Degraded, code)
	}
}

// Healthz returns the status, always 200, and the JSON body of /healthz.
func (s *Server) Healthz() (status int, body []byte) {
	return http.StatusOK, []byte(`{"status":"ok","source":` + string(s.source) + `}`)
}

// Readyz returns the status and the JSON body of /readyz: 200 once every resource that the source can feed has an answer,
// else 503.
func (s *Server) Readyz() (status int, body []byte) {
	r := s.cfg.Readiness()
	ready := len(r.Waiting) == 0
	list := func(names []string) []string { return append([]string{}, names...) } // [] and not null
	body, _ = json.Marshal(struct {                                               // strings can always be encoded
		Ready    bool      `json:"ready"`
		Source   string    `json:"source"`
		Role     string    `json:"role,omitempty"`
		Waiting  []string  `json:"waiting"`
		Failures []Failure `json:"failures"`
		Unfed    []string  `json:"unfed"`
		Degraded []string  `json:"degraded"`
		History  string    `json:"history,omitempty"`
	}{ready, s.cfg.Source, r.Role, list(r.Waiting), append([]Failure{}, r.Failures...), list(r.Unfed), list(r.Degraded), r.History})
	return statusOf(ready), body
}

func statusOf(ready bool) int {
	if ready {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

const (
	// askTimeout bounds a request of [AskReady]. It is shorter than the usual timeout of a container's health check.
	askTimeout = 5 * time.Second
	// maxReadyBody bounds the body in bytes.
	maxReadyBody = 64 << 10
)

// askTransport uses no proxy.
var askTransport = &http.Transport{}

// AskReady asks the server at a base URL, such as http://127.0.0.1:8080, whether it is ready. If the server is ready,
// AskReady writes the body of /readyz to out. It returns an error with the body if the server is not ready, and an error if
// the server does not give a valid response within 5 seconds. It follows no redirect and uses no proxy.
func AskReady(ctx context.Context, base string, out io.Writer) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--ready must be the URL of a server, such as http://127.0.0.1:8080, not %q", base)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/readyz") + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport: askTransport, Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("not ready: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReadyBody))
	var d struct{ Ready *bool }
	switch {
	case err != nil:
		return fmt.Errorf("not ready: %w", err)
	case json.Unmarshal(body, &d) != nil || d.Ready == nil || statusOf(*d.Ready) != resp.StatusCode:
		return fmt.Errorf("not ready: %s answers with status %d, not as strikecache does", u, resp.StatusCode)
	case !*d.Ready:
		return fmt.Errorf("not ready: %s", body)
	}
	_, err = fmt.Fprintf(out, "ready: %s\n", body)
	return err
}
