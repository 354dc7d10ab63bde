// Package mcp is `strikecache mcp`: a Model Context Protocol server on standard input and output, or over HTTP. A program with a
// language model starts it, or connects to it, and calls its tools. There is one tool for each public resource of a running
// strikecache server. A call fetches the resource over HTTP and returns its answer in a compact form, without receipt and envelope
// and with short tables.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Flags are the flags of `strikecache mcp`, in the form that the kong parser reads.
type Flags struct {
	URL        string `name:"url" help:"Address of the strikecache server." default:"http://127.0.0.1:8080"`
	HTTPListen string `name:"http-listen" help:"Speak the protocol over HTTP at this loopback address, at the path /mcp, and not on standard input and output. Without a host it is 127.0.0.1. Every user of the machine can ask there, with your key." placeholder:"[HOST]:PORT"`
	APIKey     string `help:"API key, if the server needs to know you. Prefer the variable: other users of the machine can read a command line." placeholder:"KEY"`
}

// Help is printed by `strikecache mcp --help`.
func (Flags) Help() string {
	return `The program that uses the model starts this command and speaks the protocol on its standard input and output. Most of
these programs read a file like this:

    {"mcpServers": {"strikecache": {"command": "/usr/local/bin/strikecache", "args": ["mcp", "--url", "http://127.0.0.1:8080"]}}}

With --http-listen :8765, programs that speak streamable HTTP connect to http://127.0.0.1:8765/mcp instead. For other
machines, put a proxy in front that authenticates its clients and sends Host: 127.0.0.1.

The command starts even if the server cannot be reached: then each call says so, until the server answers.`
}

// Validate is called by the parser.
func (f *Flags) Validate() error {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--url must be the address of a server, such as http://127.0.0.1:8080, without user, query and fragment")
	}
	return nil
}

// Serve speaks the protocol until ctx ends: over HTTP if an address is given, otherwise over in and out, until in ends and what was
// asked before is answered. It closes neither.
func (f *Flags) Serve(ctx context.Context, version string, in io.Reader, out, errs io.Writer) error {
	server := sdk.NewServer(&sdk.Implementation{Name: "strikecache", Title: "strikecache", Version: version}, &sdk.ServerOptions{Instructions: instructions})
	c := newClient(ctx, f.URL, f.APIKey)
	addPages(server, c)
	if err := addTools(server, c); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(errs, nil)).With("server", f.URL)
	if f.HTTPListen != "" {
		return serveHTTP(ctx, f.HTTPListen, server, log)
	}
	log.Info("speaking the Model Context Protocol on standard input and output")
	open := io.NopCloser(&unmarked{Reader: in})
	err := server.Run(ctx, answering{&sdk.IOTransport{Reader: open, Writer: struct {
		io.Writer
		io.Closer
	}{out, open}}})
	if err != nil && ctx.Err() == nil { // not after a signal
		return fmt.Errorf("protocol error: %w", err)
	}
	return nil
}

// serveHTTP speaks the protocol over streamable HTTP until ctx ends. No session is kept, so a client may come back after a
// restart. Requests of pages of other origins get 403: the listener is local, so the SDK refuses every Host that is not.
func serveHTTP(ctx context.Context, address string, server *sdk.Server, log *slog.Logger) error {
	if strings.HasPrefix(address, ":") {
		address = "127.0.0.1" + address
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--http-listen: %w", err)
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return errors.Join(fmt.Errorf("--http-listen: %s is not a loopback address, such as 127.0.0.1", address), listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxRequest})))
	web := &http.Server{Handler: mux, ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	log.Info("speaking the Model Context Protocol over HTTP", "address", "http://"+listener.Addr().String()+"/mcp")
	if err := web.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

const instructions = `Options market structure from a strikecache server: dealer gamma, volatility and max pain of SPX and other underlyings, unusual ` +
	`options flow, sector rotation, VIX futures. Every answer is JSON with data and, in meta, its source, as_of (the last trade of the underlying, in UTC), ` +
	`freshness and a notice. When source is "simulated", no number is real: say so. Numbers are delayed, derived and modelled; they are no ` +
	`forecast and no investment advice. null means unknown, never 0. A name ends with its unit: _dollars, _pct (percent), _days; other prices are in USD or index points, ` +
	`volatilities in points, but the implied_volatility of a contract is a fraction. A table has columns and rows. "cut" names the tables that lack rows. ` +
	`Begin with underlyings, gex_summary and gex_levels. A description ends with the size of the answer, and a larger rows makes it larger. ` +
	`The resource strikecache://methods defines every number.`
