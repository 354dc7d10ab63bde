package refresh_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"strikecache/refresh/upstream"
)

// The paths below which chains, quotes and histories are served, and that of settlement files.
const (
	servedBase       = "/api/global/delayed_quotes"
	servedSettlement = "/us/futures/settlement/csv"
)

// hugeBody is how many bytes a [faultHugeBody] wants to send.
const hugeBody = 1 << 30

// seenRequest is one request that the server saw.
type seenRequest struct {
	Name  upstream.Name
	At    time.Time
	Fault fault // the fault of its answer
	Sent  int64 // bytes of a huge body that were taken
}

// faultyServer serves the documents of a market over HTTP, as the real upstream does, with faults. It implements
// [http.Handler] and is safe for concurrent use.
type faultyServer struct {
	market *faultyMarket

	mu       sync.Mutex
	faults   map[upstream.Name]fault
	requests []seenRequest
}

// newFaultyServer returns an upstream without faults.
func newFaultyServer(market *faultyMarket) *faultyServer {
	return &faultyServer{market: market, faults: map[upstream.Name]fault{}}
}

// Fail makes every request for a document fail, until it is called with [noFault]. A name that ends in a slash stands for
// all names below it that have no fault of their own. A [faultRefuse] breaks the connection without an answer.
func (s *faultyServer) Fail(name upstream.Name, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[name] = f
}

// Requests returns the requests from an index on, oldest first.
func (s *faultyServer) Requests(from int) []seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests[from:])
}

// begin records a request and returns its fault and its index.
func (s *faultyServer) begin(name upstream.Name) (fault, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, own := s.faults[name]
	if !own {
		f = s.faults[name[:strings.LastIndexByte(string(name), '/')+1]]
	}
	s.requests = append(s.requests, seenRequest{Name: name, At: time.Now(), Fault: f})
	return f, len(s.requests) - 1
}

// nameOfRequest returns the document that a request asks for, and how often it was redirected.
func nameOfRequest(r *http.Request) (name upstream.Name, hops int) {
	query := r.URL.Query()
	hops, _ = strconv.Atoi(query.Get("hops"))
	if date := query.Get("dt"); r.URL.Path == servedSettlement {
		return upstream.Settlement(date), hops
	}
	return upstream.Name(strings.TrimPrefix(r.URL.Path, servedBase+"/")), hops
}

func (s *faultyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, hops := nameOfRequest(r)
	fault, at := s.begin(name)
	switch fault {
	case faultRefuse:
		panic(http.ErrAbortHandler)
	case faultStall:
		<-r.Context().Done()
		return
	case faultForbidden:
		w.WriteHeader(http.StatusForbidden)
		return
	case faultThrottle:
		w.Header().Set("Retry-After", "50")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case faultRedirectLoop:
		query := r.URL.Query()
		query.Set("hops", strconv.Itoa(hops+1)) // never the same address twice
		http.Redirect(w, r, r.URL.Path+"?"+query.Encode(), http.StatusTemporaryRedirect)
		return
	case faultHugeBody:
		s.huge(w, at)
		return
	}
	doc, err := s.market.Fetch(r.Context(), name, nil)
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.send(w, r, doc, fault)
}

// huge sends a gigabyte of white space and counts the bytes that the client takes.
func (s *faultyServer) huge(w http.ResponseWriter, at int) {
	blank := bytes.Repeat([]byte{' '}, 64<<10)
	for sent := int64(0); sent < hugeBody; {
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

// send writes a document as the upstream does, or the first half of it.
func (s *faultyServer) send(w http.ResponseWriter, r *http.Request, doc *upstream.Document, fault fault) {
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
	if fault == faultHTMLPage {
		_, _ = w.Write([]byte(htmlPage))
		return
	}
	packed := pack(doc.Body)
	h.Set("Content-Encoding", "gzip")
	switch fault {
	case faultTruncatedGzip:
		packed = packed[:len(packed)/2]
	case faultReset:
		h.Set("Content-Length", strconv.Itoa(len(packed)))
		_, _ = w.Write(packed[:len(packed)/2]) // errors here and below mean that the client went away
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
	_, _ = z.Write(body) // writing to a buffer does not fail
	_ = z.Close()
	return b.Bytes()
}
