package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// request is one thing to ask for, again and again.
type request struct {
	path    string
	headers []string
	revisit bool   // sends the last ETag seen, as a poller does
	coding  string // the Content-Encoding that must come back; empty: any
}

// workload is a named mix of requests.
type workload struct {
	name, about string
	requests    func(*discovery) ([]request, error)
	refreshes   bool // tells latencies around a change of the polled document from the others
}

const (
	gamma       = "/api/v1/gex/spx"
	historical  = "/api/v1/gex/spx/historical"
	series      = "/api/v1/gex/spx/series"
	sectors     = "/api/v1/sectors/rotation"
	maxPain     = "/api/public/spx-max-pain"
	flow        = "/api/v1/options/flow/unusual"
	volatility  = "/api/public/vix-term-structure"
	acceptsGzip = "Accept-Encoding: gzip"
)

// workloads are all that can be named, in the order in which they run.
var workloads = []workload{
	{name: "hot", about: "one document polled, uncompressed", requests: one(request{path: gamma})},
	{name: "conditional", about: "one document polled with If-None-Match: 304 while it does not change",
		requests: one(request{path: gamma, revisit: true})},
	{name: "gzip", about: "one document polled as gzip",
		requests: one(request{path: gamma, headers: []string{acceptsGzip}, coding: "gzip"})},
	{name: "zstd", about: "one document polled as zstd",
		requests: one(request{path: gamma, headers: []string{"Accept-Encoding: zstd"}, coding: "zstd"})},
	{name: "historical", about: "random dates of the stored history, gzip", requests: byDate},
	{name: "expirations", about: "max pain of every expiration in turn, gzip", requests: byExpiration},
	{name: "keyed", about: "one document polled with an API key (--key)", requests: withKey},
	{name: "cdn", about: "what a CDN misses: every resource, dates, expirations, limits, codings, revalidations", requests: cdnMisses},
	{name: "refreshing", about: "the documents of the option chain, latencies around their refresh apart", requests: ofTheChain, refreshes: true},
}

func one(r request) func(*discovery) ([]request, error) {
	return func(*discovery) ([]request, error) { return []request{r}, nil }
}

// chooseWorkloads reads a comma-separated list of names, or all.
func chooseWorkloads(list string) ([]workload, error) {
	if list == "all" {
		return workloads, nil
	}
	var chosen []workload
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("workload %q is not known; known are %s and all", name, strings.Join(workloadNames(), ", "))
		}
		chosen = append(chosen, workloads[i])
	}
	return chosen, nil
}

func workloadNames() []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.name
	}
	return names
}

// errSkip marks a workload that the target or the flags leave without anything to measure.
var errSkip = errors.New("skipped")

// discovery learns from the target what can be asked for.
type discovery struct {
	ctx    context.Context
	target *target
	key    string
}

// fetch gets a document as it is.
func (d *discovery) fetch(path string, headers ...string) (reply, []byte, error) {
	c, err := d.target.dial(d.ctx)
	if err != nil {
		return reply{}, nil, err
	}
	defer c.close()
	var body bytes.Buffer
	r, err := c.do(d.target.wire(http.MethodGet, path, headers...), &body)
	if err != nil {
		return reply{}, nil, fmt.Errorf("get %s: %w", path, err)
	}
	r.etag, r.coding = bytes.Clone(r.etag), bytes.Clone(r.coding)
	return r, body.Bytes(), nil
}

func (d *discovery) json(path string, into any) error {
	r, body, err := d.fetch(path)
	switch {
	case err != nil:
		return err
	case r.status != http.StatusOK:
		return fmt.Errorf("%w: %s answers %d", errSkip, path, r.status)
	}
	return json.Unmarshal(body, into)
}

// dates returns the dates of the stored history.
func (d *discovery) dates() ([]string, error) {
	var doc struct {
		Data struct {
			Columns []string            `json:"columns"`
			Rows    [][]json.RawMessage `json:"rows"`
		} `json:"data"`
	}
	if err := d.json(series, &doc); err != nil {
		return nil, err
	}
	column := slices.Index(doc.Data.Columns, "date")
	var dates []string
	for _, row := range doc.Data.Rows {
		if column >= 0 && column < len(row) {
			dates = append(dates, strings.Trim(string(row[column]), `"`))
		}
	}
	if len(dates) == 0 {
		return nil, fmt.Errorf("%w: %s lists no dates", errSkip, series)
	}
	return dates, nil
}

// expirations returns the expirations of which there is a max pain.
func (d *discovery) expirations() ([]string, error) {
	var doc struct {
		Data struct {
			Expirations []struct{ Expiration string } `json:"expirations"`
		} `json:"data"`
	}
	if err := d.json(maxPain, &doc); err != nil {
		return nil, err
	}
	var dates []string
	for _, e := range doc.Data.Expirations {
		dates = append(dates, e.Expiration)
	}
	if len(dates) == 0 {
		return nil, fmt.Errorf("%w: %s lists no expirations", errSkip, maxPain)
	}
	return dates, nil
}

func byDate(d *discovery) ([]request, error) {
	dates, err := d.dates()
	return each(dates, historical+"?date="), err
}

func byExpiration(d *discovery) ([]request, error) {
	dates, err := d.expirations()
	return each(dates, maxPain+"?expiration="), err
}

func each(values []string, prefix string) []request {
	requests := make([]request, len(values))
	for i, v := range values {
		requests[i] = request{path: prefix + v, headers: []string{acceptsGzip}}
	}
	return requests
}

func withKey(d *discovery) ([]request, error) {
	if d.key == "" {
		return nil, fmt.Errorf("%w: no --key given", errSkip)
	}
	return []request{{path: gamma, headers: []string{acceptsGzip, "X-API-Key: " + d.key}}}, nil
}

// cdnMisses is a synthetic mix: what the hit ratio of a cache before the server leaves over is the long tail of
// variants, and revalidations.
func cdnMisses(d *discovery) ([]request, error) {
	var paths []string
	for _, path := range []string{gamma, historical, series, sectors, maxPain, flow, volatility} {
		paths = slices.Concat(paths, slices.Repeat([]string{path}, 4))
	}
	dates, err := d.dates()
	if err != nil && !errors.Is(err, errSkip) {
		return nil, err
	}
	expirations, err := d.expirations()
	if err != nil && !errors.Is(err, errSkip) {
		return nil, err
	}
	for _, v := range dates {
		paths = append(paths, historical+"?date="+v)
	}
	for _, v := range expirations {
		paths = append(paths, maxPain+"?expiration="+v)
	}
	for limit := 1; limit <= 100; limit += 9 {
		paths = append(paths, flow+"?limit="+strconv.Itoa(limit))
	}
	codings := []string{"gzip, deflate, br, zstd", "gzip", "br", "identity"}
	var requests []request
	for i, path := range paths {
		r := request{path: path, headers: []string{"Accept-Encoding: " + codings[i%len(codings)]}, revisit: i%3 == 0}
		requests = append(requests, r)
	}
	return requests, nil
}

func ofTheChain(d *discovery) ([]request, error) {
	expirations, err := d.expirations()
	if err != nil {
		return nil, err
	}
	requests := each(expirations[:min(len(expirations), 8)], maxPain+"?expiration=")
	// Half of the load polls the one document whose change tells of a refresh.
	n := len(requests) + 2
	requests = append(requests, request{path: flow, headers: []string{acceptsGzip}}, request{path: flow})
	return append(requests, slices.Repeat([]request{{path: gamma, headers: []string{acceptsGzip}}}, n)...), nil
}

// check asks for each distinct request once and says what does not answer as it should.
func (d *discovery) check(requests []request) error {
	seen := map[string]bool{}
	for _, r := range requests {
		id := r.path + "\n" + strings.Join(r.headers, "\n")
		if seen[id] {
			continue
		}
		seen[id] = true
		got, _, err := d.fetch(r.path, r.headers...)
		switch {
		case err != nil:
			return err
		case got.status == http.StatusUnauthorized:
			return fmt.Errorf("%w: %s answers 401, the key is not known there", errSkip, r.path)
		case got.status != http.StatusOK:
			return fmt.Errorf("%s answers %d", r.path, got.status)
		case r.coding != "" && string(got.coding) != r.coding:
			return fmt.Errorf("%w: %s is not sent as %s", errSkip, r.path, r.coding)
		}
	}
	return nil
}
