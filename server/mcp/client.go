package mcp

import (
	"cmp"
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
	// requestTimeout bounds a request with its answer. It is shorter than the time for which clients usually wait for a tool.
	requestTimeout = 20 * time.Second
	// maxBody bounds a decompressed body in bytes. The largest answer has about 130 KB, the OpenAPI document 300 KB.
	maxBody = 8 << 20
)

// client asks one strikecache server. Its methods may be called at the same time.
type client struct {
	http http.Client
	base *url.URL
	key  string
	stop context.Context // its end ends all requests
}

func newClient(stop context.Context, base *url.URL, key string) *client {
	return &client{base: base, key: key, stop: stop, http: http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes to no other host
	}}
}

// answer returns the body of a 200 answer. Any other answer becomes an error whose text is for the model.
func (c *client) answer(ctx context.Context, path string, query url.Values) ([]byte, error) {
	resp, body, err := c.get(ctx, path, query)
	if err != nil || resp.StatusCode == http.StatusOK {
		return body, err
	}
	var refusal struct {
		Error map[string]json.RawMessage
		Meta  struct{ Source string }
	}
	var code, message string
	if json.Unmarshal(body, &refusal) != nil || json.Unmarshal(refusal.Error["code"], &code) != nil ||
		json.Unmarshal(refusal.Error["message"], &message) != nil {
		return nil, c.foreign(resp)
	}
	text := fmt.Sprintf("%d %s: %s.", resp.StatusCode, code, strings.TrimSuffix(message, "."))
	delete(refusal.Error, "code")
	delete(refusal.Error, "message")
	if len(refusal.Error) > 0 { // such as the nearest dates
		rest, err := json.Marshal(refusal.Error)
		if err != nil {
			return nil, err
		}
		text += " " + string(rest)
	}
	if seconds := resp.Header.Get("Retry-After"); seconds != "" {
		text += " Try again in " + seconds + " seconds."
	}
	return nil, fmt.Errorf("%s Source: %s", text, cmp.Or(refusal.Meta.Source, "unknown"))
}

// page returns a page of the server.
func (c *client) page(ctx context.Context, path string) ([]byte, error) {
	resp, body, err := c.get(ctx, path, nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = c.foreign(resp)
	}
	return body, err
}

// foreign returns the error for a response that strikecache does not give.
func (c *client) foreign(resp *http.Response) error {
	if to := resp.Header.Get("Location"); to != "" {
		return fmt.Errorf("the server at %s redirects to %q, and redirects are not followed: check --url", c.base, to)
	}
	return fmt.Errorf("the server at %s answers with status %d, not as strikecache does: check --url", c.base, resp.StatusCode)
}

// get makes a request and reads the whole body.
func (c *client) get(ctx context.Context, path string, query url.Values) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)()
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, nil, c.unreachable(err)
	case len(body) > maxBody:
		return nil, nil, fmt.Errorf("the answer of %s is larger than %d bytes: check --url", c.base, maxBody)
	}
	return resp, body, nil
}

// unreachable returns the error for a request without a complete answer.
func (c *client) unreachable(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("the server at %s gives no complete answer within %v", c.base, c.http.Timeout)
	}
	var wrapped *url.Error // names the request again
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("the server at %s cannot be reached: %w. Is strikecache serve running, and is --url right?", c.base, err)
}
