package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/snapshots"
)

// Finder finds snapshots. [snapshots.Store] is one. Its methods are called for every request and must neither
// block for long nor allocate when they find something in memory.
type Finder interface {
	// Current returns what a resource serves now, nil before its first answer.
	Current(resource string) *snapshots.Edition
	// Historical returns the stored gamma answer of a UTC date; "" is the newest.
	Historical(date string) (*snapshots.Snapshot, error)
	// Dates returns the stored UTC dates, rising.
	Dates() []string
}

// Readiness is what /readyz says.
type Readiness struct {
	Waiting  []string // resources that the source can feed and that have no answer yet
	Unfed    []string // resources that the source cannot feed
	Degraded []string // reason codes of what is impaired, such as disk
}

// Impaired adds a reason code when there is an error, of which clients learn no more.
func (r *Readiness) Impaired(code string, err error) {
	if err != nil {
		r.Degraded = append(r.Degraded, code)
	}
}

// Config says what a [Server] serves.
type Config struct {
	Finder Finder
	Source string // name of the upstream
	// Now is the market's clock, in UTC. It decides which dates lie in the future and which are closed.
	Now       func() time.Time
	Readiness func() Readiness
	Log       *slog.Logger

	MaxConnections int // default 10,000

	// Keys are the keys that are known; nil knows none.
	Keys *keys.Table
	// Addresses are the limits of clients without a key, nil for none; Proxies those whose X-Forwarded-For says
	// who the client is.
	Addresses *limits.Addresses
	Proxies   *limits.Proxies
	// LogEvery logs one in so many requests; 0 logs none.
	LogEvery int
}

// The limits of one connection and one request.
const (
	readTimeout  = 5 * time.Second        // for the head of a request, and for its body
	writeTimeout = 30 * time.Second       // for a whole response
	idleTimeout  = 75 * time.Second       // between requests
	maxHeader    = 8 << 10                // bytes of request line and headers
	maxTarget    = 4 << 10                // bytes of a request target
	maxMethod    = 16                     // bytes of a method
	maxBody      = 1 << 10                // bytes of a request body, which nothing reads
	drainTimeout = 100 * time.Millisecond // for the next request on a connection of a server that stops
	// A refused connection is read for a little longer, so that the client can read the refusal.
	lingerTimeout = 500 * time.Millisecond
	lingerBytes   = 64 << 10
	// maxPerConnection bounds nothing: a poller keeps its connection for days.
	maxPerConnection = 0

	defaultMaxConnections = 10_000
)

// Server answers the public resources. Create it with [New].
type Server struct {
	cfg    Config
	http   *fasthttp.Server
	byPath map[string]*route
	// registered returns the paths that are answered, by method.
	registered func() map[string][]string
	// errorBodies has the errors that are always the same, by endpoint.
	errorBodies map[string]map[*apiError][]byte
	date        dateLine
	traffic     traffic
	conns       connSet
	stopping    atomic.Bool
}

// New returns a server that listens nowhere yet.
func New(cfg Config) *Server {
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = defaultMaxConnections
	}
	s := &Server{cfg: cfg}
	s.traffic.samples = make(chan sample, sampleRoom)
	s.prepareErrors()
	s.http = &fasthttp.Server{
		Handler:                      s.handler(),
		ErrorHandler:                 s.protocolError,
		Name:                         serverName,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		ReadBufferSize:               maxHeader,
		MaxRequestBodySize:           maxBody,
		MaxRequestsPerConn:           maxPerConnection,
		Concurrency:                  cfg.MaxConnections,
		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		Logger:                       quiet{},
	}
	return s
}

// quiet drops fasthttp's own log lines, which name client addresses; what matters is counted.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Listen opens a TCP listener: an address such as 127.0.0.1:8080, [::1]:8080 or :8080.
func Listen(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	return ln, nil
}

// Serve answers requests on a listener until [Server.Shutdown].
func (s *Server) Serve(ln net.Listener) error {
	done := make(chan struct{})
	defer close(done)
	go s.report(done)
	if err := s.http.Serve(gate{ln, s}); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// ServeConn answers the requests of one connection until it ends, and closes it.
func (s *Server) ServeConn(c net.Conn) error { return s.http.ServeConn(s.admit(c)) }

// Shutdown stops accepting connections and waits for the requests in flight, at most until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.conns.wake()
	if err := s.http.ShutdownWithContext(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut down: %w", err)
	}
	return ctx.Err()
}
