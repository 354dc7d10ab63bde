package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// measured lists the answers of strikecache that every server sends.
var measured = []answer{
	{Name: "small", Resource: volatility, Coding: "gzip"},
	{Name: "medium", Resource: flow + "?limit=1", Coding: "identity"},
	{Name: "large", Resource: flow + "?limit=73", Coding: "identity"},
	{Name: notModified, Resource: gamma, Coding: "identity"},
}

// ask returns the bytes of a request. The requests to all servers have the same header fields.
func ask(path, coding, etag string) []byte {
	text := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: strikecache-bench\r\nAccept: application/json\r\nAccept-Encoding: " + coding + "\r\n"
	if etag != "" {
		text += "If-None-Match: " + etag + "\r\n"
	}
	return []byte(text + "\r\n")
}

// exchangeWith is [exchangeOver] on a new connection.
func exchangeWith(ctx context.Context, address string, request []byte) (*exchange, error) {
	conn, err := (&net.Dialer{Timeout: longestSilence}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return exchangeOver(conn, longestSilence, request)
}

// takeAnswers fetches the answers from strikecache and writes them to files. The rivals serve answer N as /N: net/http
// from N.raw, the bare loop from N.wire, and the other servers from www/N, which has only the body.
func (b *comparison) takeAnswers(ctx context.Context, ours string) error {
	b.answers = nil
	www := filepath.Join(b.dir, "www")
	if err := os.MkdirAll(www, 0o755); err != nil {
		return err
	}
	for i, a := range measured {
		x, err := exchangeWith(ctx, ours, ask(a.Resource, a.Coding, ""))
		if err != nil {
			return fmt.Errorf("get %s: %w", a.Resource, err)
		}
		if x.status != http.StatusOK || x.coding != a.Coding {
			return fmt.Errorf("%s answers %d in %s, want 200 in %s", a.Resource, x.status, x.coding, a.Coding)
		}
		sent := x
		if a.Name == notModified {
			if sent, err = exchangeWith(ctx, ours, ask(a.Resource, a.Coding, x.ETag)); err != nil {
				return fmt.Errorf("conditional %s: %w", a.Resource, err)
			}
		}
		a.BodyBytes, a.exchange = len(x.body), x
		b.answers = append(b.answers, a)
		number := strconv.Itoa(i)
		base := filepath.Join(b.dir, number)
		for path, text := range map[string][]byte{base + ".raw": x.raw, base + ".wire": sent.raw, filepath.Join(www, number): x.body} {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// side is a server of the run.
type side struct {
	server
	*process
	ours      bool              // a strikecache: it is asked for its own paths, not for /N
	ownBodies bool              // its bodies may differ from those of strikecache
	asked     map[string]*asked // by the name of the cell
}

// asked is a request to a server, and the expected answer.
type asked struct {
	request []byte
	status  int
	body    []byte
	first   []byte // head and body of the first answer
}

// plan prepares the requests to a server, one for each cell, and verifies the answers.
func (b *comparison) plan(ctx context.Context, s *side, cells []cell) error {
	s.asked = map[string]*asked{}
	for _, c := range cells {
		number := slices.IndexFunc(b.answers, func(a answer) bool { return a.Name == c.Answer })
		a := b.answers[number]
		path := "/" + strconv.Itoa(number)
		if s.ours {
			path = a.Resource
		}
		q := &asked{request: ask(path, a.Coding, ""), status: http.StatusOK, body: a.body}
		if s.ownBodies || a.Name == notModified {
			x, err := exchangeWith(ctx, s.address, q.request)
			if err != nil {
				return fmt.Errorf("%s, %s: %w\n%s", s.Name, a.Name, err, s.lastLines())
			}
			q.body = x.body
			if a.Name == notModified {
				q = &asked{request: ask(path, a.Coding, x.ETag), status: http.StatusNotModified}
			}
		}
		s.asked[c.Name] = q
	}
	return b.verify(ctx, s, cells)
}

// verify fetches the answer of every cell, and checks its status and its body byte for byte.
func (b *comparison) verify(ctx context.Context, s *side, cells []cell) error {
	for _, c := range cells {
		q := s.asked[c.Name]
		x, err := exchangeWith(ctx, s.address, q.request)
		switch {
		case err != nil:
			return fmt.Errorf("%s, %s: %w\n%s", s.Name, c.Name, err, s.lastLines())
		case x.status != q.status:
			return fmt.Errorf("%s, %s: status %d, want %d", s.Name, c.Name, x.status, q.status)
		case !bytes.Equal(x.body, q.body):
			return fmt.Errorf("%s, %s: the body of %d bytes differs from the expected body of %d bytes", s.Name, c.Name, len(x.body), len(q.body))
		}
		q.first = x.raw
	}
	return nil
}
