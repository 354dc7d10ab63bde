// Package server sends sealed snapshots over HTTP.
//
// The path and one parameter of a request name a snapshot, and the client gets the snapshot's own bytes. No request computes,
// encodes, compresses or fetches anything.
//
// The path of a request:
//
//  1. One strict parser reads the head ([head]). It decides where every request ends.
//  2. On Linux, a [loop] answers the common requests on plain TCP connections itself. It hands a connection with any other
//     request to fasthttp, for which [conn] reads one request at a time. So do TLS and other systems from the start.
//  3. [Server.decide] checks the key and the limits, finds the snapshot, chooses the coding and evaluates the conditions.
//     Both the loop and the handlers of fasthttp call decide, and write the same bytes.
//  4. The prepared bytes are sent.
package server

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"strikecache/server/keys"
	"strikecache/server/limits"
)

// Config configures a [Server]. Finder, Source, Now, Readiness and Log must be set. The functions must be safe for
// concurrent use.
type Config struct {
	Finder Finder
	Source string // name of the upstream
	// Now returns the market's time in UTC. It decides which dates lie in the future and which are closed.
	Now       func() time.Time
	Readiness func() Readiness
	Fleet     bool // the process is in a fleet: the dashboard shows its role
	Log       *slog.Logger

	// MaxConnections is how many connections are served at a time; 0 means 10,000. The server lowers the number if the
	// limit of open files is too low. Further connections are refused with 503.
	MaxConnections int
	ReadTimeout    time.Duration // for the head of a request, and for its body; 0 means 5 s
	WriteTimeout   time.Duration // for a whole response; 0 means 30 s
	IdleTimeout    time.Duration // between two requests of a connection; 0 means 75 s

	// TLS is the TLS configuration of every connection; nil for plain HTTP. It must offer HTTP/1.1 alone.
	TLS *tls.Config

	Keys      *keys.Table       // nil: every key is unknown
	Addresses *limits.Addresses // limits of clients without a key; nil: no limits
	Proxies   limits.Proxies    // proxies whose X-Forwarded-For names the client; nil: no proxies
	LogEvery  int               // n > 0: every n-th response is logged. No log line has a client's address.
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
	// After a refusal, at most lingerBytes are read, for at most lingerTimeout, so that the client can read the refusal.
	lingerTimeout = 500 * time.Millisecond
	lingerBytes   = 64 << 10
)

// Server answers requests for the public resources, the pages and the probes. Create it with [New]. It is safe for
// concurrent use.
type Server struct {
	cfg      Config
	http     *fasthttp.Server
	routeOf  map[string]*route // by path
	source   []byte            // name of the upstream in JSON
	date     dateLine
	traffic  *traffic
	cores    int          // that Go uses, without those that a refresh adds for a while
	open     atomic.Int64 // connections
	files    atomic.Int32 // in memory, that responses are sent from
	conns    connSet
	refusing chan struct{} // has an element for each connection that is refused patiently

	active   atomic.Int64 // goroutines of Serve, connections and refusals
	stopping atomic.Bool
	cutOff   atomic.Bool   // the time limit of Shutdown has passed
	stop     chan struct{} // closed when stopping becomes true
}

// New returns a server. Call [Server.Serve] to accept connections. It is called before refreshes begin.
func New(cfg Config) *Server {
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, defaultMaxConnections)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, readTimeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, writeTimeout)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, idleTimeout)
	if room := max(maxDescriptors()-reservedDescriptors, 1); cfg.MaxConnections > room {
		cfg.Log.Warn("connections limited by the limit of open files", "max_connections", cfg.MaxConnections, "served", room)
		cfg.MaxConnections = room
	}
	s := &Server{
		cfg: cfg, routeOf: map[string]*route{}, traffic: newTraffic(), cores: runtime.GOMAXPROCS(0),
		refusing: make(chan struct{}, patientRefusals), stop: make(chan struct{}),
	}
	s.source, _ = json.Marshal(cfg.Source) // a string can always be encoded
	for _, r := range routes {
		r.counts = s.traffic.newCounts(r.endpoint)
		s.routeOf[r.path] = &r
	}
	s.http = &fasthttp.Server{
		Handler:                      s.guarded(s.router().Handler),
		ErrorHandler:                 s.protocolError,
		Name:                         serverName,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
		IdleTimeout:                  cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		MaxRequestBodySize:           maxBody,
		Concurrency:                  math.MaxInt32, // connSet limits the connections
		DisablePreParseMultipartForm: true,
		NoDefaultContentType:         true,
		Logger:                       noLog{},
	}
	return s
}

// noLog drops fasthttp's own log lines, because they name client addresses. [Server.Stats] counts the errors.
type noLog struct{}

func (noLog) Printf(string, ...any) {}
