// Package faulty serves the documents of a simulated market over HTTP, as the real upstream does, with faults. It is
// for tests.
package faulty

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// Base is the path below which chains, quotes and histories are served, Settlement that of settlement files.
const (
	Base       = "/api/global/delayed_quotes"
	Settlement = "/us/futures/settlement/csv"
)

// HugeBody is how many bytes a [simulated.HugeBody] wants to send.
const HugeBody = 1 << 30

// Request is one request that the server saw.
type Request struct {
	Host  string
	Name  upstream.Name
	At    time.Time
	Fault simulated.Fault // what it was answered with
	Sent  int64           // bytes of a huge body that were taken
}

// Server is the upstream. It implements [http.Handler] and is safe for concurrent use.
type Server struct {
	market     *simulated.Market
	retryAfter time.Duration

	mu       sync.Mutex
	faults   map[upstream.Name]simulated.Fault
	frozen   map[upstream.Name]*upstream.Document
	requests []Request
}

// New returns an upstream without faults. A throttled client is told to wait for retryAfter, in whole seconds.
func New(market *simulated.Market, retryAfter time.Duration) *Server {
	return &Server{
		market: market, retryAfter: retryAfter, faults: map[upstream.Name]simulated.Fault{}, frozen: map[upstream.Name]*upstream.Document{},
	}
}

// Fail makes every request for a document fail, until it is told [simulated.NoFault]. A name that ends in a slash stands
// for all below it that have no fault of their own. A [simulated.Refuse] breaks the connection without an answer, a
// [simulated.Shrink] and a [simulated.BackwardClock] go on with the document that they began with.
func (s *Server) Fail(name upstream.Name, f simulated.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name] = f
	clear(s.frozen)
}

// Requests returns what was asked for since n requests ago, oldest first.
func (s *Server) Requests(from int) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[from:])
}

// begin notes a request and returns its fault and its place.
func (s *Server) begin(host string, name upstream.Name) (simulated.Fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, own := s.faults[name]
	if !own {
		f = s.faults[name[:strings.LastIndexByte(string(name), '/')+1]]
	}
	s.requests = append(s.requests, Request{Host: host, Name: name, At: time.Now(), Fault: f})
	return f, len(s.requests) - 1
}

// nameOf returns the document that a request asks for, and how often it was redirected.
func nameOf(r *http.Request) (name upstream.Name, hops int) {
	query := r.URL.Query()
	hops, _ = strconv.Atoi(query.Get("hops"))
	if date := query.Get("dt"); r.URL.Path == Settlement {
		return upstream.Settlement(date), hops
	}
	return upstream.Name(strings.TrimPrefix(r.URL.Path, Base+"/")), hops
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, hops := nameOf(r)
	fault, at := s.begin(r.Host, name)
	switch fault {
	case simulated.Refuse:
		panic(http.ErrAbortHandler)
	case simulated.Stall:
		<-r.Context().Done()
		return
	case simulated.Forbidden:
		w.WriteHeader(http.StatusForbidden)
		return
	case simulated.Throttle:
		w.Header().Set("Retry-After", strconv.Itoa(int(s.retryAfter.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case simulated.RedirectLoop:
		query := r.URL.Query()
		query.Set("hops", strconv.Itoa(hops+1)) // never the same address twice
		http.Redirect(w, r, r.URL.Path+"?"+query.Encode(), http.StatusTemporaryRedirect)
		return
	case simulated.HugeBody:
		s.huge(w, at)
		return
	}
	doc, err := s.document(r, name, fault)
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.send(w, r, doc, fault)
}

// huge sends a gigabyte of white space and counts what is taken of it.
func (s *Server) huge(w http.ResponseWriter, at int) {
	blank := bytes.Repeat([]byte{' '}, 64<<10)
	for sent := int64(0); sent < HugeBody; {
		n, err := w.Write(blank)
		sent += int64(n)
		s.mu.Lock()
		s.requests[at].Sent = sent
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// document returns what the market says, spoiled by the fault if it is of that kind.
func (s *Server) document(r *http.Request, name upstream.Name, fault simulated.Fault) (*upstream.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if doc := s.frozen[name]; doc != nil {
		return doc, nil
	}
	switch fault {
	case simulated.Reset, simulated.TruncatedGzip:
	default:
		s.market.Fail(name, fault, 1)
	}
	doc, err := s.market.Fetch(r.Context(), name, nil)
	if err == nil && (fault == simulated.Shrink || fault == simulated.BackwardClock) {
		s.frozen[name] = doc
	}
	return doc, err
}

// send writes a document as the upstream does, or the first half of it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, doc *upstream.Document, fault simulated.Fault) {
	h := w.Header()
	h.Set("ETag", doc.ETag)
	h.Set("Last-Modified", doc.LastModified)
	if doc.FileDate != "" {
		h.Set("Content-Disposition", "attachment; filename=FuturesSettlements_"+doc.FileDate+".csv")
	}
	if r.Header.Get("If-None-Match") == doc.ETag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if fault == simulated.HTMLPage {
		h.Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "%s", doc.Body)
		return
	}
	packed := pack(doc.Body)
	h.Set("Content-Encoding", "gzip")
	switch fault {
	case simulated.TruncatedGzip:
		packed = packed[:len(packed)/2]
	case simulated.Reset:
		h.Set("Content-Length", strconv.Itoa(len(packed)))
		_, _ = w.Write(packed[:len(packed)/2]) // a client that goes away is no fault of ours, here and below
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(packed)
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(body) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
