package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// notModified is the answer that has no body.
const notModified = "304"

// measured are the answers of strikecache that every server gives, by their size.
var measured = []answer{
	{Name: "1 KB", Resource: volatility, Coding: "gzip"},
	{Name: "8 KB", Resource: flow + "?limit=6", Coding: "identity"},
	{Name: "60 KB", Resource: flow + "?limit=73", Coding: "identity"},
	{Name: notModified, Resource: gamma, Coding: "identity"},
}

// ask returns the bytes of a request as every server of the run is asked.
func ask(path, coding, etag string) []byte {
	text := "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: strikecache-bench\r\nAccept: application/json\r\nAccept-Encoding: " + coding + "\r\n"
	if etag != "" {
		text += "If-None-Match: " + etag + "\r\n"
	}
	return []byte(text + "\r\n")
}

// exchangeWith sends a request on a connection of its own and returns the whole answer.
func exchangeWith(ctx context.Context, address string, request []byte) (*exchange, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var raw bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &raw)), nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	x := &exchange{status: resp.StatusCode, etag: resp.Header.Get("ETag"), coding: resp.Header.Get("Content-Encoding")}
	if x.coding == "" {
		x.coding = "identity"
	}
	x.body, err = io.ReadAll(resp.Body)
	x.raw = raw.Bytes()
	return x, err
}

// takeAnswers takes the answers from strikecache and writes them for its rivals.
func (b *sideBySide) takeAnswers(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(b.dir, "www"), 0o755); err != nil {
		return err
	}
	for _, a := range measured {
		x, err := exchangeWith(ctx, b.ours, ask(a.Resource, a.Coding, ""))
		if err != nil {
			return fmt.Errorf("get %s: %w", a.Resource, err)
		}
		if x.status != http.StatusOK || x.coding != a.Coding {
			return fmt.Errorf("%s answers %d in %s, not in %s", a.Resource, x.status, x.coding, a.Coding)
		}
		sum := sha256.Sum256(x.body)
		a.BodyBytes, a.SHA256, a.exchange = len(x.body), hex.EncodeToString(sum[:]), x
		if err := b.write(ctx, &a); err != nil {
			return err
		}
		b.answers = append(b.answers, &a)
	}
	return nil
}

// write stores an answer: NAME.raw is what net/http sends, NAME.wire what the bare loop sends, and www/NAME the body.
func (b *sideBySide) write(ctx context.Context, a *answer) error {
	wire := a.raw
	if a.Name == notModified {
		x, err := exchangeWith(ctx, b.ours, ask(a.Resource, a.Coding, a.etag))
		if err != nil {
			return fmt.Errorf("conditional %s: %w", a.Resource, err)
		}
		if x.status != http.StatusNotModified {
			return fmt.Errorf("%s with If-None-Match: %s answers %d", a.Resource, a.etag, x.status)
		}
		wire = x.raw
	}
	base := filepath.Join(b.dir, a.file())
	for path, bytes := range map[string][]byte{base + ".raw": a.raw, base + ".wire": wire, filepath.Join(b.dir, "www", a.file()): a.body} {
		if err := os.WriteFile(path, bytes, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file is the name of an answer's files.
func (a *answer) file() string { return strings.ToLower(strings.ReplaceAll(a.Name, " ", "")) }

// side is a server of the run, and what it is asked for.
type side struct {
	server
	process   *process
	address   string
	addresses map[string]string // of the bare loop instead, by answer
	asked     map[string]*asked // by answer
}

// asked is a request to one server, and its first answer.
type asked struct {
	address        string
	request, first []byte
}

// plan fixes what a server is asked for each answer.
func (b *sideBySide) plan(ctx context.Context, s *side) error {
	s.asked = map[string]*asked{}
	for _, a := range b.answers {
		path := "/" + a.file()
		if s.Name == "strikecache" || s.Name == "varnish" {
			path = a.Resource
		}
		q := &asked{address: cmp.Or(s.address, s.addresses[a.Name]), request: ask(path, a.Coding, "")}
		if a.Name == notModified {
			x, err := exchangeWith(ctx, q.address, q.request)
			if err != nil {
				return fmt.Errorf("%s: %w", a.Name, err)
			}
			q.request = ask(path, a.Coding, x.etag)
		}
		s.asked[a.Name] = q
	}
	return b.verify(ctx, s)
}

// verify fetches every answer: a status of 200 with strikecache's very bytes, or 304.
func (b *sideBySide) verify(ctx context.Context, s *side) error {
	for _, a := range b.answers {
		q := s.asked[a.Name]
		status, body := http.StatusOK, a.body
		if a.Name == notModified {
			status, body = http.StatusNotModified, nil
		}
		x, err := exchangeWith(ctx, q.address, q.request)
		switch {
		case err != nil:
			return fmt.Errorf("%s, %s: %w\n%s", s.Name, a.Name, err, s.process.log.end())
		case x.status != status:
			return fmt.Errorf("%s, %s: status %d, want %d", s.Name, a.Name, x.status, status)
		case !bytes.Equal(x.body, body):
			return fmt.Errorf("%s, %s: its %d bytes are not strikecache's %d", s.Name, a.Name, len(x.body), len(body))
		}
		q.first = x.raw
	}
	return nil
}
