package server

import (
	"context"
	"encoding/json"
	"errors"
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
	// askTimeout bounds a request of [ReadyFlags.AskReady]. It is shorter than the usual timeout of a container's health check.
	askTimeout = 5 * time.Second
	// askAgain is the time between two requests of --wait.
	askAgain = time.Second
	// maxReadyBody bounds the body in bytes.
	maxReadyBody = 64 << 10
)

// ReadyFlags are the flags of `strikecache verify` that ask a running server whether it is ready.
type ReadyFlags struct {
	Ready string        `help:"Check no files. Ask the server at this URL whether it is ready, and print the reason when it is not." placeholder:"URL"`
	Wait  time.Duration `help:"With --ready: ask every second until the server is ready, at most for this time, and print how many resources wait when the number changes, such as \"5 of 21 wait\"." placeholder:"DURATION"`
	Past  bool          `help:"With --ready: the server is not ready before the past sessions have been played, which ranks and older dates need."`
}

// Validate is called by the parser.
func (f ReadyFlags) Validate() error {
	if f.Wait < 0 || (f.Wait > 0 || f.Past) && f.Ready == "" {
		return errors.New("--wait and --past need --ready URL, and --wait is a positive time, such as 5m")
	}
	return nil
}

// AskReady asks the server at the URL of --ready, such as http://127.0.0.1:8080, whether it is ready. If the server is ready, AskReady
// writes the body of /readyz to out. It returns an error with the body if the server is not ready, and an error if the server does
// not give a valid response within 5 seconds. It follows no redirect and uses no proxy. With --wait it asks again after each of
// these errors, and returns the last one soon after that time or at the end of ctx.
func (f ReadyFlags) AskReady(ctx context.Context, out io.Writer) error {
	u, err := url.Parse(f.Ready)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--ready must be the URL of a server, such as http://127.0.0.1:8080, not %q", f.Ready)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/readyz") + "/readyz"
	told, most := "", 0 // the last line, and the most resources that have waited
	for end := time.Now().Add(f.Wait); ; {
		body, waiting, err := f.askReady(ctx, u.String())
		if err == nil {
			_, err = fmt.Fprintf(out, "ready: %s\n", body)
			return err
		}
		if f.Wait == 0 || ctx.Err() != nil || time.Now().Add(askAgain).After(end) {
			return fmt.Errorf("not ready: %w", err)
		}
		line := err.Error()
		if most = max(most, waiting); waiting > 0 {
			line = fmt.Sprintf("%d of %d wait", waiting, most)
		}
		if line != told {
			_, _ = fmt.Fprintln(out, line) // the exit code counts
		}
		told = line
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}

// askTransport uses no proxy.
var askTransport = &http.Transport{}

// askReady returns the body of /readyz of a server that is ready, else an error and how many resources wait, as far as the server says.
func (f ReadyFlags) askReady(ctx context.Context, address string) (body []byte, waiting int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	client := http.Client{
		Transport: askTransport, Timeout: askTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxReadyBody))
	var d struct {
		Ready   *bool
		Waiting []string
		History string
	}
	if err != nil {
		return nil, 0, err
	}
	malformed := json.Unmarshal(body, &d)
	done, all, _ := strings.Cut(d.History, " of ")
	switch {
	case malformed != nil || d.Ready == nil || statusOf(*d.Ready) != resp.StatusCode:
		return nil, 0, fmt.Errorf("%s answers with status %d, not as strikecache does", address, resp.StatusCode)
	case !*d.Ready:
		return nil, len(d.Waiting), errors.New(string(body))
	case f.Past && done != all:
		return nil, 0, errors.New("history: " + d.History)
	}
	return body, 0, nil
}
