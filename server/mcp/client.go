package mcp

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
	// requestTimeout bounds a request with its answer, and so the wait for answers after the end of input. It is shorter than the time
	// for which clients usually wait for a tool.
	requestTimeout = 20 * time.Second
	// maxBody bounds a decompressed body in bytes. The largest answer has about 140 KB, the OpenAPI document 300 KB.
	maxBody = 8 << 20
	// maxRequest bounds a request over HTTP in bytes. A call has some 200, and a request may have several.
	maxRequest = 8 << 10
	// atOnce bounds the requests to the server at the same time. Others wait.
	atOnce = 8
)

// client asks one strikecache server. Its methods may be called at the same time.
type client struct {
	http  http.Client
	base  string
	key   string
	stop  context.Context // its end ends all requests
	slots chan struct{}   // has an element for each request in progress
}

func newClient(stop context.Context, base, key string) *client {
	return &client{base: base, key: key, stop: stop, slots: make(chan struct{}, atOnce), http: http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes to no other host
	}}
}

// get returns the body of a 200 answer. Any other answer becomes an error whose text is for the model.
func (c *client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stop, cancel)()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	target := strings.TrimSuffix(c.base, "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil, err
	}
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	resp, err := c.http.Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody))
	}
	if err != nil {
		return nil, fmt.Errorf("the server at %s gives no complete answer: %w. Is strikecache serve running, and is --url right?", c.base, err)
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	var refusal struct{ Error json.RawMessage } // its code, its message, and what helps, such as the nearest dates
	if json.Unmarshal(body, &refusal) != nil || refusal.Error == nil {
		return nil, fmt.Errorf("the server at %s answers %q, not as strikecache does: check --url", c.base, strings.TrimSpace(resp.Status+" "+resp.Header.Get("Location")))
	}
	text := resp.Status + ": " + string(refusal.Error)
	if seconds := resp.Header.Get("Retry-After"); seconds != "" {
		text += ". Try again in " + seconds + " seconds."
	}
	return nil, errors.New(text)
}
