package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// envelope is what is read of an answer.
type envelope struct {
	Success bool
	Data    struct{ Symbol string }
	Usage   usage
}

type usage struct {
	Tier          string
	Key           string
	RequestsToday int64  `json:"requests_today"`
	ResetsAt      string `json:"resets_at"`
}

// checker checks answers from several goroutines, and remembers what only all of them together can show.
type checker struct {
	keys     []key
	unzipped bool // Varnish asks for gzip only, and unzips for clients that do not accept it

	mu        sync.Mutex
	sent      int
	asked     map[ask]int
	tags      []map[string]bool // of the anonymous answers by coding
	bodies    map[[sha256.Size]byte]envelope
	counts    map[string]map[int64]bool // requests_today that answers had, by key and day
	maxAge    int                       // of the anonymous answers, in seconds
	oldest    int                       // Age of an answer
	failures  int
	leaks     int
	complaint []string // the first few
}

func newChecker(keys []key, unzipped bool) *checker {
	c := &checker{
		keys: keys, unzipped: unzipped, asked: map[ask]int{},
		bodies: map[[sha256.Size]byte]envelope{}, counts: map[string]map[int64]bool{},
	}
	for range codings {
		c.tags = append(c.tags, map[string]bool{})
	}
	return c
}

// connection is what one connection has seen, in order.
type connection struct {
	counts map[string]int64  // the last requests_today by key and day
	tags   []map[string]bool // by coding
	last   []string          // by coding
}

func newConnection() *connection {
	s := &connection{counts: map[string]int64{}, last: make([]string, len(codings))}
	for range codings {
		s.tags = append(s.tags, map[string]bool{})
	}
	return s
}

const maxComplaints = 10

func (c *checker) complain(n *int, a ask, format string, args ...any) {
	if *n++; len(c.complaint) < maxComplaints {
		who := "anonymous"
		if a.key >= 0 {
			who = c.keys[a.key].id
		}
		c.complaint = append(c.complaint, fmt.Sprintf("%s %s: %s", who, codings[a.coding], fmt.Sprintf(format, args...)))
	}
}

// check checks the answer to a request. A failure is whatever is not the answer in the coding that was asked for;
// a leak is anything that belongs to somebody else.
func (c *checker) check(a ask, g got, err error, seen *connection) {
	var e envelope
	coding := g.header.Get("Content-Encoding")
	if err == nil && g.status == 200 {
		e, err = c.read(g, coding, a.key < 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	c.asked[a]++
	switch {
	case err != nil:
		c.complain(&c.failures, a, "%v", err)
		return
	case g.status != 200:
		c.complain(&c.failures, a, "status %d", g.status)
		return
	case !e.Success || e.Data.Symbol != "SPX":
		c.complain(&c.failures, a, "not the document: %.80q", g.body)
	case coding != c.coding(a):
		c.complain(&c.failures, a, "Content-Encoding is %q, not %q", coding, c.coding(a))
	}
	if age, err := strconv.Atoi(g.header.Get("Age")); err == nil {
		c.oldest = max(c.oldest, age)
	}
	if a.key < 0 {
		c.anonymous(a, g, e.Usage, seen)
	} else {
		c.keyed(a, g, e.Usage, seen)
	}
}

// coding is the Content-Encoding that a client must get, "" for none.
func (c *checker) coding(a ask) string {
	name := codings[a.coding]
	if name == "identity" || c.unzipped && name != "gzip" {
		return ""
	}
	return name
}

func (c *checker) anonymous(a ask, g got, u usage, seen *connection) {
	directives, tag := g.header.Get("Cache-Control"), g.header.Get("ETag")
	if u != (usage{Tier: "anonymous"}) || !strings.HasPrefix(directives, "public") || limitHeader(g) != "" {
		c.complain(&c.leaks, a, "usage %+v, Cache-Control %q, limits %q", u, directives, limitHeader(g))
		return
	}
	if weak := strings.HasPrefix(tag, "W/"); tag == "" || weak != (c.unzipped && c.coding(a) == "") {
		c.complain(&c.failures, a, "ETag is %s", tag)
	}
	if _, rest, ok := strings.Cut(directives, "max-age="); ok {
		text, _, _ := strings.Cut(rest, ",")
		c.maxAge, _ = strconv.Atoi(text)
	}
	c.tags[a.coding][tag] = true
	if seen.tags[a.coding][tag] && seen.last[a.coding] != tag {
		c.complain(&c.failures, a, "went back from %s to %s", seen.last[a.coding], tag)
	}
	seen.tags[a.coding][tag], seen.last[a.coding] = true, tag
}

func (c *checker) keyed(a ask, g got, u usage, seen *connection) {
	directives := g.header.Get("Cache-Control")
	if u.Tier != "keyed" || u.Key != c.keys[a.key].id || !strings.HasPrefix(directives, "private") || limitHeader(g) == "" {
		c.complain(&c.leaks, a, "usage %+v, Cache-Control %q, limits %q", u, directives, limitHeader(g))
		return
	}
	if tag := g.header.Get("ETag"); !strings.HasPrefix(tag, "W/") {
		c.complain(&c.failures, a, "ETag is %s", tag)
	}
	day := u.Key + " " + u.ResetsAt
	if c.counts[day] == nil {
		c.counts[day] = map[int64]bool{}
	}
	if c.counts[day][u.RequestsToday] || u.RequestsToday <= seen.counts[day] {
		c.complain(&c.leaks, a, "requests_today is %d again: an answer to a key was stored", u.RequestsToday)
	}
	c.counts[day][u.RequestsToday], seen.counts[day] = true, u.RequestsToday
}

// limitHeader returns a header that only answers to keys have.
func limitHeader(g got) string {
	return g.header.Get("X-RateLimit-Remaining") + g.header.Get("RateLimit")
}

// gaps returns how many requests of the keys were counted without an answer, given how many each day began with.
func (c *checker) gaps(before map[string]int64) (n int64) {
	for day, counts := range c.counts {
		last := before[day]
		for count := range counts {
			last = max(last, count)
		}
		n += last - before[day] - int64(len(counts))
	}
	return n
}

// latest returns the highest requests_today by key and day.
func (c *checker) latest() map[string]int64 {
	last := map[string]int64{}
	for day, counts := range c.counts {
		for count := range counts {
			last[day] = max(last[day], count)
		}
	}
	return last
}

// read decodes and parses an answer. Anonymous bodies repeat, so each is decoded once and known by its hash.
func (c *checker) read(g got, coding string, repeats bool) (envelope, error) {
	var e envelope
	var sum [sha256.Size]byte
	if repeats {
		sum = sha256.Sum256(append(g.body[:len(g.body):len(g.body)], coding...))
		c.mu.Lock()
		known, ok := c.bodies[sum]
		c.mu.Unlock()
		if ok {
			return known, nil
		}
	}
	text, err := decode(coding, g.body)
	if err != nil {
		return e, fmt.Errorf("decode %q: %w", coding, err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return e, fmt.Errorf("parse: %w", err)
	}
	if repeats {
		c.mu.Lock()
		c.bodies[sum] = e
		c.mu.Unlock()
	}
	return e, nil
}

var unzstd = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody))
})

func decode(coding string, body []byte) ([]byte, error) {
	var r io.Reader
	switch coding {
	case "":
		return body, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r = z
	case "br":
		r = brotli.NewReader(bytes.NewReader(body))
	case "zstd":
		z, err := unzstd()
		if err != nil {
			return nil, err
		}
		return z.DecodeAll(body, nil)
	default:
		return nil, fmt.Errorf("unknown coding")
	}
	return io.ReadAll(io.LimitReader(r, maxBody))
}
