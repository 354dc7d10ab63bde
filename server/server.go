package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/valyala/fasthttp"

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

// Config says what a [Server] serves.
type Config struct {
	Finder Finder
	Source string // name of the upstream
	// Now is the market's clock, in UTC. It decides which dates lie in the future and which are closed.
	Now       func() time.Time
	Readiness func() Readiness
	Log       *slog.Logger

	MaxConnections int // default 10,000
}

// The limits of one connection and one request.
const (
	readTimeout  = 5 * time.Second  // for a whole request
	writeTimeout = 30 * time.Second // for a whole response
	idleTimeout  = 75 * time.Second // between requests
	maxHeader    = 8 << 10          // bytes of request line and headers
	maxBody      = 1 << 10          // bytes of a request body, which nothing reads
	// maxPerConnection bounds nothing: a poller keeps its connection for days.
	maxPerConnection = 0

	defaultMaxConnections = 10_000
)

// Server answers the public resources. Create it with [New].
type Server struct {
	cfg    Config
	http   *fasthttp.Server
	cache  cacheControls
	source string
}

// New returns a server that listens nowhere yet.
func New(cfg Config) *Server {
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = defaultMaxConnections
	}
	s := &Server{cfg: cfg, source: cfg.Source}
	s.http = &fasthttp.Server{
		Handler:                      s.handler(),
		ErrorHandler:                 s.protocolError,
		Name:                         "strikecache",
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
	if err := s.http.Serve(ln); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Shutdown stops accepting connections and waits for the requests in flight, at most until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.ShutdownWithContext(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("shut down: %w", err)
	}
	return ctx.Err()
}
