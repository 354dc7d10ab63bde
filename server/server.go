package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
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

	// MaxConnections is how many connections are served at a time; default 10,000, and never more than the limit of
	// open files leaves room for. Further ones are refused.
	MaxConnections int
	ReadTimeout    time.Duration // for the head of a request, and for its body; default 5 s
	WriteTimeout   time.Duration // for a whole response; default 30 s
	IdleTimeout    time.Duration // between requests; default 75 s

	// TLS is spoken on every connection, nil for none. It must offer HTTP/1.1 alone.
	TLS *tls.Config

	// Keys are the keys that are known; nil knows none.
	Keys *keys.Table
	// Addresses are the limits of clients without a key, nil for none; Proxies those whose X-Forwarded-For says
	// who the client is.
	Addresses *limits.Addresses
	Proxies   *limits.Proxies
	// LogEvery logs one in so many requests; 0 logs none. LogClientAddr lets those lines name the client's address,
	// which nothing else logs.
	LogEvery      int
	LogClientAddr bool
}

// The limits of one connection and one request.
const (
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 75 * time.Second
	maxHeader    = 8 << 10                // bytes of request line and headers
	maxTarget    = 4 << 10                // bytes of a request target
	maxMethod    = 16                     // bytes of a method
	maxBody      = 1 << 10                // bytes of a request body, which nothing reads
	drainTimeout = 100 * time.Millisecond // for the next request on a connection of a server that stops
	// A refused connection is read for a little longer, so that the client can read the refusal.
	lingerTimeout = 500 * time.Millisecond
	lingerBytes   = 64 << 10
	// A burst of connections gives back its goroutines, and their stacks, after this.
	workerTimeout = 2 * time.Second
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
	pages       []page
	date        dateLine
	traffic     traffic
	conns       connSet
	stopping    atomic.Bool
	refusing    chan struct{} // one for each of refusals
	refusals    sync.WaitGroup
}

// New returns a server that listens nowhere yet.
func New(cfg Config) *Server {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, defaultMaxConnections)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, readTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, writeTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, idleTimeout)
	if room := max(descriptors()-reservedDescriptors, 1); cfg.MaxConnections > room {
		cfg.Log.Warn("fewer connections than asked for: the limit of open files is too low", "max_connections", cfg.MaxConnections, "served", room)
		cfg.MaxConnections = room
	}
	s := &Server{cfg: cfg, refusing: make(chan struct{}, politeRefusals)}
	s.traffic.samples, s.traffic.errors = make(chan sample, sampleRoom), errorCounts()
	s.prepareErrors()
	s.pages = sealPages(cfg)
	s.http = &fasthttp.Server{
		Handler:                      s.guarded(s.handler()),
		ErrorHandler:                 s.protocolError,
		Name:                         serverName,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		MaxRequestBodySize:           maxBody,
		MaxRequestsPerConn:           maxPerConnection,
		MaxIdleWorkerDuration:        workerTimeout,
		Concurrency:                  math.MaxInt32, // the gate has counted
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
	if err := s.http.Serve(&gate{Listener: ln, server: s, ended: done}); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// ServeConn answers the requests of one connection until it ends, and closes it.
func (s *Server) ServeConn(c net.Conn) error {
	if admitted := s.admit(c); admitted != nil {
		return s.http.ServeConn(admitted)
	}
	return nil
}

// Connections returns how many connections are open.
func (s *Server) Connections() int { return s.conns.count() }

// Shutdown stops accepting connections and waits for the requests in flight, at most until ctx ends. Then it cuts
// off those that are left, and says how many.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.conns.wake()
	err := s.http.ShutdownWithContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("shut down: %d connections cut off at the limit: %w", s.conns.cut(), ctx.Err())
	case err != nil:
		return fmt.Errorf("shut down: %w", err)
	}
	s.refusals.Wait() // each ends by itself within twice lingerTimeout
	return nil
}
