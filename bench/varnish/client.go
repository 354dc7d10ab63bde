package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// path is the document that is asked for: the one that is refreshed most often.
const path = "/api/v1/gex/spx"

// endpoint is what the origin's log calls it.
const endpoint = "gex/spx"

var codings = []string{"identity", "gzip", "br", "zstd"}

const (
	connections    = 16
	keyedPerMille  = 20
	requestTimeout = 10 * time.Second
	maxBody        = 16 << 20
)

// ask is one request: an index into codings, and one into the keys or -1.
type ask struct{ coding, key int }

// plan returns n requests in an order that is the same each time.
func plan(n, keys int) []ask {
	random := rand.New(rand.NewPCG(1, 1))
	asks := make([]ask, n)
	for i := range asks {
		asks[i] = ask{random.IntN(len(codings)), -1}
		if random.IntN(1000) < keyedPerMille {
			asks[i].key = random.IntN(keys)
		}
	}
	return asks
}

// client is one keep-alive connection.
type client struct{ http http.Client }

func newClient() *client {
	return &client{http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{DisableCompression: true, MaxConnsPerHost: 1, IdleConnTimeout: time.Minute},
	}}
}

// got is a response.
type got struct {
	status int
	header http.Header
	body   []byte
}

func (c *client) get(ctx context.Context, url string, header map[string]string) (got, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return got{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return got{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return got{}, fmt.Errorf("read the body: %w", err)
	}
	return got{resp.StatusCode, resp.Header, body}, nil
}

// send sends the requests on all connections, spread evenly over a length of time, and checks every answer.
func (b *bench) send(ctx context.Context, url string, asks []ask, length time.Duration, c *checker) {
	began := time.Now()
	var all sync.WaitGroup
	for first := range connections {
		all.Go(func() {
			one, seen := newClient(), newConnection()
			defer one.http.CloseIdleConnections()
			for i := first; i < len(asks); i += connections {
				due := began.Add(length * time.Duration(i) / time.Duration(len(asks)))
				if pause(ctx, time.Until(due)) != nil {
					return // whoever reads the log next says why
				}
				header := map[string]string{"Accept-Encoding": codings[asks[i].coding]}
				if asks[i].key >= 0 {
					header["X-API-Key"] = b.origin.keys[asks[i].key].secret
				}
				answer, err := one.get(ctx, url+path, header)
				c.check(asks[i], answer, err, seen)
			}
		})
	}
	all.Wait()
}
