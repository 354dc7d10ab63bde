// Package server sends sealed snapshots over HTTP.
//
// A request finds its snapshot by its path and one parameter, and gets the snapshot's own bytes: nothing is computed,
// encoded or compressed during a request, and no request causes an upstream fetch.
//
// The path of a request: one strict parser reads its head ([head]); [Server.decide] checks key and limits, finds the
// snapshot, chooses the coding and evaluates the conditions; the prepared bytes are sent. Common requests are answered
// from the connection itself ([conn]). All others are handed to fasthttp, one at a time, and end in the same decide and
// the same field lines.
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

// Finder finds snapshots. [snapshots.Store] is one. Its methods are called for every request. They must neither block
// for long nor allocate when what they find is in memory.
type Finder interface {
	// Current returns what a resource serves now, nil before its first answer.
	Current(resource string) *snapshots.Edition
	// Historical returns the stored gamma answer of a UTC date; "" is the newest.
	Historical(date string) (*snapshots.Snapshot, error)
	// Dates returns the stored UTC dates, rising.
	Dates() []string
}

// Config says what a [Server] serves.
type Config struct {
	Finder Finder
	Source string // name of the upstream
	// Now is the market's clock, in UTC. It decides which dates lie in the future and which are closed.
	Now       func() time.Time
	Readiness func() Readiness
	Log       *slog.Logger

	// MaxConnections is how many connections are served at a time. The default is 10,000. The limit of open files may
	// lower it. Further connections are refused.
	MaxConnections int
	ReadTimeout    time.Duration // for the head of a request, and for its body; default 5 s
	WriteTimeout   time.Duration // for a whole response; default 30 s
	IdleTimeout    time.Duration // between requests; default 75 s

	// TLS is spoken on every connection; nil for plain HTTP. It must offer HTTP/1.1 alone.
	TLS *tls.Config

	Keys      *keys.Table       // nil: every key is unknown
	Addresses *limits.Addresses // limits of clients without a key; nil for none
	Proxies   *limits.Proxies   // whose X-Forwarded-For names the client; nil for none
	// LogEvery logs one in so many requests; 0 logs none. LogClientAddr adds the client's address to those lines. No
	// other line has it.
	LogEvery      int
	LogClientAddr bool
}

// The limits of one connection and one request.
const (
	defaultMaxConnections = 10_000

	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 75 * time.Second
	maxHeader    = 8 << 10 // bytes of request line and headers
	maxTarget    = 4 << 10 // bytes of a request target
	maxMethod    = 16      // bytes of a method
	maxBody      = 1 << 10 // bytes of a request body, which is read and dropped
	// drainTimeout is how long a server that stops waits for the next request of an idle connection.
	drainTimeout = 100 * time.Millisecond
	// A refused connection is read for a little longer, so that the client can read the refusal.
	lingerTimeout = 500 * time.Millisecond
	lingerBytes   = 64 << 10
	// After a burst of connections idle goroutines and their stacks are freed after this time.
	workerTimeout = 2 * time.Second
)

// Server answers the public resources. Create it with [New]. Its methods may be called at the same time.
type Server struct {
	cfg         Config
	http        *fasthttp.Server
	routeOf     map[string]*route // by path
	errorBodies map[errorKey][]byte
	date        dateLine
	traffic     *traffic
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
	if room := max(maxDescriptors()-reservedDescriptors, 1); cfg.MaxConnections > room {
		cfg.Log.Warn("fewer connections than asked for: the limit of open files is too low", "max_connections", cfg.MaxConnections, "served", room)
		cfg.MaxConnections = room
	}
	s := &Server{cfg: cfg, refusing: make(chan struct{}, patientRefusals), routeOf: map[string]*route{}, traffic: newTraffic()}
	for i := range routes {
		s.routeOf[routes[i].path] = &routes[i]
	}
	s.prepareErrors()
	s.http = &fasthttp.Server{
		Handler:                      s.guarded(s.router().Handler),
		ErrorHandler:                 s.protocolError,
		Name:                         serverName,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		MaxRequestBodySize:           maxBody,
		MaxIdleWorkerDuration:        workerTimeout,
		Concurrency:                  math.MaxInt32, // the listener counts connections
		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		Logger:                       noLog{},
	}
	return s
}

// noLog drops fasthttp's own log lines, because they name client addresses. What matters is counted.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

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
	if err := s.http.Serve(&listener{Listener: ln, server: s, ended: done}); err != nil {
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

// Shutdown stops accepting connections and waits for the requests in flight, at most until ctx ends. Then it closes
// the connections that are left, and its error says how many.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.conns.wake()
	err := s.http.ShutdownWithContext(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("shut down: %d connections cut off at the limit: %w", s.conns.cutOff(), ctx.Err())
	case err != nil:
		return fmt.Errorf("shut down: %w", err)
	}
	s.refusals.Wait() // each ends by itself within twice lingerTimeout
	return nil
}
