package ready

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

const (
	// limit is for the whole of a question; a health check has its own, longer one.
	limit = 5 * time.Second
	// maxAnswer bounds the answer in bytes; a server with everything amiss says less than 1 KB.
	maxAnswer = 64 << 10
)

// transport asks no proxy.
var transport = &http.Transport{}

// answer is what /readyz says.
type answer struct {
	Ready    *bool    `json:"ready"`
	Source   string   `json:"source"`
	Waiting  []string `json:"waiting"`
	Unfed    []string `json:"unfed"`
	Degraded []string `json:"degraded"`
}

// Ask asks the server at a base URL, such as http://127.0.0.1:8080, and writes a line about it when it is ready.
// Otherwise, and when there is no proper answer within 5 seconds, the error says why. It follows no redirect and asks
// no proxy.
func Ask(ctx context.Context, base string, out io.Writer) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--ready must be the URL of a server, such as http://127.0.0.1:8080, not %q", base)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/readyz") + "/readyz"
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := ask(ctx, u.String())
	switch {
	case err != nil:
		return fmt.Errorf("not ready: %w", err)
	case !*a.Ready:
		return fmt.Errorf("not ready: %s", a.reasons("no reason given"))
	}
	_, err = fmt.Fprintf(out, "ready: %s\n", a.reasons("source "+a.Source))
	return err
}

func ask(ctx context.Context, address string) (answer, error) {
	var a answer
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return a, err
	}
	defer transport.CloseIdleConnections()
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return a, fmt.Errorf("read %s: %w", address, err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return a, fmt.Errorf("%s answers with status %d", address, resp.StatusCode)
	}
	if json.Unmarshal(body, &a) != nil || a.Ready == nil {
		return a, fmt.Errorf("%s answers with status %d, not as strikecache does", address, resp.StatusCode)
	}
	if *a.Ready != (resp.StatusCode == http.StatusOK) {
		return a, errors.New("the answer contradicts its status")
	}
	return a, nil
}

// reasons returns what the answer names, or what to say when it names nothing.
func (a answer) reasons(otherwise string) string {
	var all []string
	for _, r := range []struct {
		what  string
		names []string
	}{{"waiting for", a.Waiting}, {"not fed by the source:", a.Unfed}, {"degraded:", a.Degraded}} {
		if len(r.names) > 0 {
			all = append(all, r.what+" "+strings.Join(r.names, ", "))
		}
	}
	if len(all) == 0 {
		return otherwise
	}
	return strings.Join(all, "; ")
}
