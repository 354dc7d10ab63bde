package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/server/loop"
	"strikecache/snapshots"

	"strikecache/bench/testkit"
)

var must, full, until, equal = testkit.Must, testkit.Full, testkit.Until, testkit.Equal

// engine serves the connections of newServer. All tests run once with each.
var engine string

type bothEngines struct{ m *testing.M }

func (b bothEngines) Run() (code int) {
	for _, engine = range []string{server.EngineLoop, server.EngineFasthttp} {
		if code = max(code, b.m.Run()); code != 0 {
			_, _ = os.Stderr.WriteString("the engine was " + engine + "\n")
		}
	}
	return code
}

// fasthttp starts a clock that cannot be stopped.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(bothEngines{m}, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// Requests.
const (
	vix    = "GET /api/public/vix-term-structure HTTP/1.1\r\nHost: a\r\n\r\n"
	gamma  = "GET /api/v1/gex/spx HTTP/1.1\r\nHost: a\r\n\r\n"
	pain   = "GET /api/public/spx-max-pain HTTP/1.1\r\nHost: a\r\n\r\n"
	series = seriesLine + "Host: a\r\n\r\n"
	// seriesLine is the first line of a request.
	seriesLine = "GET /api/v1/gex/spx/series HTTP/1.1\r\n"
)

// finder is a server.Finder with a few sealed snapshots.
type finder struct {
	editions     map[string]*snapshots.Edition
	past         map[string]map[string]*snapshots.Snapshot // by resource and date
	limited      map[string]*snapshots.Snapshot            // of each date of the unusual flow, by limit
	err          error
	publications atomic.Uint64
}

func (f *finder) Current(resource string) *snapshots.Edition { return f.editions[resource] }

func (f *finder) Publications() uint64 { return f.publications.Load() }

func (f *finder) DatesOf(resource string) []string { return slices.Sorted(maps.Keys(f.past[resource])) }

func (f *finder) Historical(resource, date string) (*snapshots.Edition, error) {
	if f.err != nil {
		return nil, f.err
	}
	if dates := f.DatesOf(resource); date == "" && len(dates) > 0 {
		date = dates[len(dates)-1]
	}
	if snapshot := f.past[resource][date]; snapshot != nil {
		if resource == "spx-max-pain" {
			return &snapshots.Edition{Default: snapshot, Variants: map[string]*snapshots.Snapshot{"2026-12-18": snapshot}}, nil
		}
		return &snapshots.Edition{Default: snapshot, Variants: f.limited}, nil
	}
	return nil, snapshots.ErrNoSnapshot
}

func seal(t testing.TB, endpoint, data string) *snapshots.Snapshot {
	t.Helper()
	return sealOf(t, "", endpoint, data)
}

// sealOf seals an answer of a UTC date; "" gives an answer without as_of.
func sealOf(t testing.TB, date, endpoint, data string) *snapshots.Snapshot {
	t.Helper()
	asOf, _ := time.Parse(time.DateOnly, date)
	s, err := snapshots.Seal([]byte(data), snapshots.Meta{
		Endpoint: endpoint, Source: "simulated", AsOf: asOf, RefreshSeconds: 60, Quality: json.RawMessage("{}"), Receipt: snapshots.Receipt{InputSHA256: []string{}},
	}, snapshots.Brotli, snapshots.Zstd)
	must(t, err)
	return s
}

// now is the market time of all tests: after midnight UTC, when the date before is not closed yet.
var now = time.Date(2026, 11, 20, 0, 14, 59, 0, time.UTC)

func newFinder(t testing.TB) *finder {
	flow := map[string]*snapshots.Snapshot{}
	for _, n := range []string{"20", "100"} {
		flow[n] = seal(t, "options/flow/unusual", `{"count":`+n+`}`)
	}
	cuts, err := flow["100"].Cut([]snapshots.Cut{{End: len(`{"count":1`), Rest: []byte("}")}})
	must(t, err)
	flow["1"] = cuts[0]
	december, november := seal(t, "spx-max-pain", `{"expiration":"2026-12-18"}`), seal(t, "spx-max-pain", `{"expiration":"2026-11-27"}`)
	f := &finder{
		editions: map[string]*snapshots.Edition{
			"gex/spx":              {Default: seal(t, "gex/spx", `{"spot":7000,"filler":"`+strings.Repeat("gamma ", 500)+`"}`)},
			"spx-max-pain":         {Default: december, Variants: map[string]*snapshots.Snapshot{"2026-12-18": december, "2026-11-27": november}},
			"options/flow/unusual": {Default: flow["20"], Variants: flow},
		},
		past:    map[string]map[string]*snapshots.Snapshot{},
		limited: map[string]*snapshots.Snapshot{"1": seal(t, "options/flow/unusual", `{"count":1,"of":"a date"}`), "100": formed(t, seal(t, "options/flow/unusual", `{"count":100,"of":"a date"}`))},
	}
	for resource, days := range map[string]string{"gex/spx": "17 19 20", "gex/spx/intraday": "18 20", "sectors/rotation": "13 16 19", "vix-term-structure": "13 16 19", "volatility/spx": "19", "options/flow/unusual": "18 19", "spx-max-pain": "17 19"} {
		f.past[resource] = map[string]*snapshots.Snapshot{}
		for _, day := range strings.Fields(days) {
			f.past[resource]["2026-11-"+day] = sealOf(t, "2026-11-"+day, resource, `{"day":`+day+`}`)
		}
	}
	for _, name := range server.New(server.Config{Finder: f, Log: slog.New(slog.DiscardHandler)}).Resources() {
		if f.editions[name] == nil {
			f.editions[name] = &snapshots.Edition{Default: seal(t, name, `{"x":1}`)}
		}
	}
	for _, name := range []string{"spx-max-pain", "gex/spx", "gex/spx/intraday", "gex/spx/levels", "gex/spx/matrix", "gex/spx/series"} {
		f.editions[name].Default = formed(t, f.editions[name].Default)
	}
	flow["20"], flow["100"] = formed(t, flow["20"]), formed(t, flow["100"])
	f.editions["options/flow/unusual"].Default = flow["20"]
	for _, name := range []string{"gex/spx", "gex/spx/intraday"} {
		for date, s := range f.past[name] {
			f.past[name][date] = formed(t, s)
		}
	}
	return f
}

// formed returns an answer with forms.
func formed(t testing.TB, s *snapshots.Snapshot) *snapshots.Snapshot {
	t.Helper()
	text := string(s.Data())
	s, err := s.WithForms(
		snapshots.Form{Name: "csv", ContentType: "text/csv; charset=utf-8", Body: []byte("a,b\r\n" + strings.Repeat("1,2\r\n", 100) + text)},
		snapshots.Form{Name: "line", ContentType: "text/plain; charset=utf-8", Body: []byte("$SPX: Call Wall, 6000, " + text)},
	)
	must(t, err)
	return s
}

// newServer returns a server that listens nowhere yet.
func newServer(f *finder, change ...func(*server.Config)) *server.Server {
	cfg := server.Config{
		Finder: f, Source: "simulated", Engine: engine, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Readiness: func() server.Readiness { return server.Readiness{} },
	}
	for _, c := range change {
		if c != nil {
			c(&cfg)
		}
	}
	return server.New(cfg)
}

// withKeys returns a server that knows keys, and the secrets by name.
func withKeys(t testing.TB, f *finder, change func(*server.Config), specs ...keys.Key) (*server.Server, map[string]string) {
	t.Helper()
	path, secrets := filepath.Join(t.TempDir(), "keys.json"), map[string]string{}
	for _, spec := range specs {
		secret, _, err := keys.Create(path, spec, time.Now())
		must(t, err)
		secrets[spec.Name] = secret
	}
	table, err := keys.Open(path, &keys.Counts{}, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(table.Close)
	return newServer(f, func(c *server.Config) { c.Keys = table }, change), secrets
}

// serveOn serves on listeners until shutdown is called, at the latest at the end of the test.
func serveOn(t testing.TB, web *server.Server, listeners ...loop.Listener) (shutdown func(context.Context) error) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- web.Serve(listeners...) }()
	var once sync.Once
	shutdown = func(ctx context.Context) (err error) {
		once.Do(func() {
			err = web.Shutdown(ctx)
			if failed := <-served; failed != nil {
				t.Error(failed)
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return shutdown
}

// serve serves on loopback, see [serveOn].
func serve(t testing.TB, web *server.Server) (address string, shutdown func(context.Context) error) {
	t.Helper()
	ln, err := loop.Listen("127.0.0.1:0")
	must(t, err)
	return ln.Addr().String(), serveOn(t, web, ln)
}

// listen serves on loopback and returns the address.
func listen(t testing.TB, web *server.Server) string {
	t.Helper()
	address, _ := serve(t, web)
	return address
}

// clientOf serves and returns a client.
func clientOf(t testing.TB, web *server.Server) *http.Client {
	t.Helper()
	address := listen(t, web)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("tcp", address) }, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// do makes a request with header fields given as names and values.
func do(t testing.TB, c *http.Client, method, target string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, "http://strikecache"+target, nil)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp, body
}

// dial opens a connection with a deadline. It is closed at the end of the test.
func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(testkit.Patience)))
	return c.(*net.TCPConn)
}

// write sends a text on a connection.
func write(t testing.TB, c net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	must(t, err)
}

// exchange sends raw bytes on a new connection and returns all bytes that come back until the server closes it. With done,
// the client closes its sending side.
func exchange(t testing.TB, address, raw string, done bool) string {
	t.Helper()
	c := dial(t, address)
	defer c.Close()
	_, err := io.WriteString(c, raw)
	if err == nil && done {
		err = c.CloseWrite()
	}
	must(t, err)
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%.60q: %v after %.80q", raw, err, got)
	}
	return string(got)
}

// scaled returns n in a full run, and a part of it otherwise.
func scaled(n int) int {
	if full() {
		return n
	}
	return max(n/40, 8)
}

// isReset says whether an error means that the other end has reset the connection.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// bigBody is more bytes than the kernels of both ends buffer.
const bigBody = 8 << 20

func fill(t testing.TB, text string, size int) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(`"`+strings.Repeat(text, size/len(text))+`"`), snapshots.Meta{Quality: json.RawMessage("{}")})
	must(t, err)
	return s
}
