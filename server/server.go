// Package server sends sealed snapshots over HTTP.
//
// The path and one parameter of a request name a snapshot, and the client gets the snapshot's own bytes. No request computes,
// encodes, compresses or fetches anything.
//
// The path of a request:
//
//  1. One of two engines takes the connection from accept to close: package [loop] on plain connections of Linux, or
//     fasthttp ([fastEngine]) with TLS, on other systems, and wherever the configuration asks for it.
//  2. In both engines, the same strict parser reads the head ([head]). It refuses a request that two parsers could read differently.
//     The connection ends after a refused request, and after a request with a body.
//  3. [Server.respond] checks the key and the limits, finds the snapshot, chooses the coding and evaluates the conditions.
//  4. The engine sends the prepared bytes.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"strikecache/server/keys"
	"strikecache/server/limits"
	"strikecache/server/loop"
)

// Config configures a [Server]. Finder, Source, Now, Readiness and Log must be set. The functions must be safe for
// concurrent use.
type Config struct {
	Finder Finder
	Source string // name of the upstream
	// Underlyings are the symbols, such as SPX, whose resources are served; nil: SPX alone.
	Underlyings []string
	// Now returns the market's time in UTC. A date is in the future, or final, by this time.
	Now func() time.Time
	// NextChange returns the machine time at which a resource may change next; zero time: never. max-age counts down to it. The server asks
	// once a second and once after a publication. nil: never.
	NextChange func(resource string, now time.Time) time.Time
	Readiness  func() Readiness
	Fleet      bool // the process is in a fleet: the dashboard shows its role
	// Complete says whether every stored date that is over has its last answer; nil: always true. A member of a fleet that was cut
	// off may lack such an answer.
	Complete func() bool
	Log      *slog.Logger

	// MaxConnections is how many connections are served at a time; 0 means 10,000. The server lowers the number if the
	// limit of open files is too low. Further connections are refused with 503, also over a quarter from one address, see
	// [loop.Connections]; loopback and Proxies are exempt.
	MaxConnections int
	ReadTimeout    time.Duration // for the head of a request; 0 means 5 s
	WriteTimeout   time.Duration // for a whole response; 0 means 30 s
	IdleTimeout    time.Duration // between two requests of a connection; 0 means 75 s

	// Engine is [EngineLoop] or [EngineFasthttp]; "" means the loop. With TLS, and on other systems than Linux, the server uses
	// fasthttp for both.
	Engine string

	// TLS is the TLS configuration of every connection; nil for plain HTTP. It must not offer HTTP/2.
	TLS *tls.Config

	Keys      *keys.Table       // nil: every key is unknown
	Addresses *limits.Addresses // limits of clients without a key; nil: no limits
	Proxies   limits.Proxies    // proxies whose X-Forwarded-For names the client; nil: no proxies
}

// The engines.
const (
	EngineLoop     = "loop"
	EngineFasthttp = "fasthttp"
)

// The limits of one connection and one request.
const (
	maxHeader = loop.MaxHead // bytes of request line and headers
	maxTarget = 4 << 10      // bytes of a request target
	maxMethod = 16           // bytes of a method
	maxBody   = 1 << 10      // bytes of a request body by its Content-Length; every body is read and dropped

	// reservedDescriptors is how many descriptors are reserved for stored files, connections to the upstream, and refusals.
	reservedDescriptors = 64 + loop.MaxRejecting
)

// Server answers requests for the public resources, the pages and the probes. Create it with [New]. It is safe for
// concurrent use.
type Server struct {
	cfg         Config
	underlyings []string // in small letters
	routes      []route
	targets     map[string]*target // by path; never changed after New
	source      []byte             // name of the upstream in JSON
	date        dateLine
	traffic     *traffic
	connections loop.Connections
	engine      engine
}

// engine serves connections. Serve may be called for several listeners.
type engine interface {
	Serve(ln loop.Listener) error
	Shutdown(ctx context.Context) error
}

// New returns a server. Call [Server.Serve] to accept connections. It is called before refreshes begin.
func New(cfg Config) *Server {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, 10_000)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, 5*time.Second)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, 30*time.Second)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, 75*time.Second)
	if room := max(maxDescriptors()-reservedDescriptors, 1); cfg.MaxConnections > room {
		cfg.Log.Warn("connections limited by the limit of open files", "max_connections", cfg.MaxConnections, "served", room)
		cfg.MaxConnections = room
	}
	s := &Server{cfg: cfg, traffic: newTraffic(), underlyings: strings.Split(nameOf(cmp.Or(strings.Join(cfg.Underlyings, ","), "SPX")), ",")}
	s.routes = routesOf(s.underlyings)
	s.connections.Max = cfg.MaxConnections
	s.connections.Exempt = func(from netip.Addr) bool { return from.IsLoopback() || cfg.Proxies.Trusts(from) }
	s.source, _ = json.Marshal(cfg.Source) // a string can always be encoded
	s.targets = s.newTargets()
	if loop.Available && cfg.TLS == nil && cfg.Engine != EngineFasthttp {
		s.engine = loop.New(loop.Config{
			NewHandler: func() loop.Handler { return &handler{server: s} },
			Loops:      runtime.GOMAXPROCS(0), Connections: &s.connections, Log: cfg.Log,
			ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout,
		})
	} else {
		s.engine = newFastEngine(s)
	}
	return s
}

// Serve answers requests on listeners of [loop.Listen] until [Server.Shutdown], and then returns nil. It closes the listeners. It keeps
// accepting after temporary errors, such as a lack of descriptors. It returns the first other error at once. It is called once.
func (s *Server) Serve(listeners ...loop.Listener) error {
	served := make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() { served <- s.engine.Serve(ln) }()
	}
	for range listeners {
		if err := <-served; err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	return nil
}

// Shutdown stops accepting connections and waits for the requests in progress, at most until ctx ends. If ctx ends first,
// Shutdown closes the remaining connections and returns an error with their number.
func (s *Server) Shutdown(ctx context.Context) error { return s.engine.Shutdown(ctx) }
