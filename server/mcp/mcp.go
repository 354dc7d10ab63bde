// Package mcp is `strikecache mcp`: a Model Context Protocol server on standard input and output. A program with a language
// model starts it and calls its tools. There is one tool for each public resource of a running strikecache server. A call
// fetches the resource over HTTP and returns its answer in a compact form, without receipt and envelope and with short tables.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Flags are the flags of `strikecache mcp`, in the form that the kong parser reads.
type Flags struct {
	URL    string `name:"url" help:"Address of the strikecache server." default:"http://127.0.0.1:8080"`
	APIKey string `help:"API key, if the server needs to know you. Prefer the variable: other users of the machine can read a command line." placeholder:"KEY"`
}

// Help is printed by `strikecache mcp --help`.
func (Flags) Help() string {
	return `The program that uses the model starts this command and speaks the protocol on its standard input and output. Most of
these programs read a file like this:

    {"mcpServers": {"strikecache": {"command": "/usr/local/bin/strikecache", "args": ["mcp", "--url", "http://127.0.0.1:8080"]}}}

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

// Serve speaks the protocol over in and out until in ends or ctx ends. It closes neither.
func (f *Flags) Serve(ctx context.Context, version string, in io.Reader, out, errs io.Writer) error {
	server := sdk.NewServer(&sdk.Implementation{Name: "strikecache", Title: "strikecache", Version: version}, &sdk.ServerOptions{Instructions: instructions})
	server.AddReceivingMiddleware(nullArguments)
	c := newClient(ctx, f.URL, f.APIKey)
	addPages(server, c)
	if err := addTools(server, c); err != nil {
		return err
	}
	slog.New(slog.NewTextHandler(errs, nil)).Info("speaking the Model Context Protocol on standard input and output", "server", f.URL)
	open := io.NopCloser(in)
	err := server.Run(ctx, &sdk.IOTransport{Reader: open, Writer: struct {
		io.Writer
		io.Closer
	}{out, open}})
	if err != nil && ctx.Err() == nil { // not after a signal
		return fmt.Errorf("protocol error: %w", err)
	}
	return nil
}

const instructions = `Options market structure from a strikecache server: dealer gamma, volatility and max pain of SPX and other underlyings, unusual ` +
	`options flow, sector rotation, VIX futures. Every answer is JSON with data and, in meta, its source, as_of (the last trade of the underlying, in UTC), ` +
	`freshness and a notice. When source is "simulated", no number is real: say so. Numbers are delayed, derived and modelled; they are no ` +
	`forecast and no investment advice. null means unknown, never 0. A table has columns and rows. "cut" names the tables that lack rows. ` +
	`The resource strikecache://methods defines every number.`

// nullArguments makes a call whose arguments are null one without arguments. Some clients send null, and version 1.8.0 of the SDK
// panics when it fills in the defaults.
func nullArguments(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if call, ok := req.(*sdk.CallToolRequest); ok && call.Params != nil && string(call.Params.Arguments) == "null" {
			call.Params.Arguments = nil
		}
		return next(ctx, method, req)
	}
}
