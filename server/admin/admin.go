// Package admin serves metrics, profiles and the probes to the operator, on a separate listener.
//
// It uses net/http, because the listener is not public and need not be fast. Each scrape reads the current values: a public
// request changes only counters and does not use Prometheus. Labels are names of resources, underlyings, levels, feeds and roles,
// statuses, error codes, codings, steps of a write and ids of keys. A label is never a secret, a date, an address or another text that
// a client chooses.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" //nolint:gosec // G108: it registers on http.DefaultServeMux, of which only /debug/pprof/ is served, here
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"strikecache/server/loop"
)

// The limits of the listener.
const (
	readTimeout   = 5 * time.Second
	writeTimeout  = 30 * time.Second // pprof adds the requested seconds of a profile
	idleTimeout   = 75 * time.Second
	maxHeader     = 8 << 10 // bytes
	maxScrapes    = 4       // at a time; further scrapes get 503
	scrapeTimeout = 10 * time.Second
	closeTimeout  = time.Second // for the scrapes and profiles in progress
)

// Probe answers with a status and a JSON body.
type Probe func() (status int, body []byte)

// Config says what a [Server] serves.
type Config struct {
	Sources
	Healthz, Readyz Probe
	Log             *slog.Logger
}

// Server is the operator's server. Create it with [Open].
type Server struct {
	http    http.Server
	log     *slog.Logger
	addr    net.Addr
	serving sync.WaitGroup
}

// Open serves on a TCP address such as 127.0.0.1:9090, [::1]:9090 or :9090 until [Server.Close]. If the address is empty,
// it serves nothing.
func Open(address string, cfg Config) (*Server, error) {
	s := &Server{log: cfg.Log}
	if address == "" {
		return s, nil
	}
	ln, err := net.Listen(loop.Network(address), address)
	if err != nil {
		return nil, fmt.Errorf("admin listener on %q: %w; --admin-listen takes another address, or \"\" for none", address, err)
	}
	s.addr = ln.Addr()
	s.log.Info("serving admin", "address", "http://"+s.addr.String())
	local := s.addr.(*net.TCPAddr).IP.IsLoopback()
	if !local {
		s.log.Warn("admin listener is open to other machines: anyone there can read metrics and profiles", "address", s.addr.String())
	}
	s.http = http.Server{
		Handler: s.guarded(s.routes(NewRegistry(cfg.Sources), cfg), local), ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: new(connections).track,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // its lines name client addresses
	}
	s.serving.Go(func() {
		if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("admin listener failed", "err", err)
		}
	})
	return s, nil
}

// Close stops listening. It cuts off the requests that do not end within a second.
func (s *Server) Close() {
	limit, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(limit) != nil {
		_ = s.http.Close() // its error is that of closing a connection
	}
	s.serving.Wait()
}

func (s *Server) routes(metrics prometheus.Gatherer, cfg Config) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelError),
	}))
	mux.Handle("/debug/pprof/", http.DefaultServeMux)
	mux.HandleFunc("/healthz", probe(cfg.Healthz))
	mux.HandleFunc("/readyz", probe(cfg.Readyz))
	return mux
}

// guarded passes only GET and HEAD requests to next. If the listener is local (only this machine reaches it), Host must also be
// localhost, an address, or empty as in a health check of HTTP/1.0: a web page whose domain resolves to this machine (DNS rebinding)
// sends its own domain as Host. After a panic, guarded answers 500 and logs the panic without the client's address, which net/http
// would log.
func (s *Server) guarded(next http.Handler, local bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // a panic value, not an error chain
				s.log.Error("admin request panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()
		if r.ContentLength != 0 {
			// No route reads a body. Without this deadline, net/http would wait for the rest of the body after the answer.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // fails only if the connection has ended
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case local && !localHost(r.Host):
			http.Error(w, "this listener is only for this machine: use localhost or an IP address as Host", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func localHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil
}

func probe(p Probe) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status, body := p()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(body) // a client that went away is no fault
	}
}
