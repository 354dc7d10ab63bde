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
	"strings"

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

    {"mcpServers": {"strikecache": {
      "command": "/usr/local/bin/strikecache",
      "args": ["mcp", "--url", "http://127.0.0.1:8080"]
    }}}

There is one tool for each resource. The resource strikecache://methods defines every number. The log is on standard error.
The command starts even if the server cannot be reached: then each call says so, until the server answers.`
}

// Validate is called by the parser.
func (f *Flags) Validate() error {
	u, err := url.Parse(f.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--url must be the address of a server, such as http://127.0.0.1:8080, without user, query and fragment")
	}
	if strings.ContainsFunc(f.APIKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("--api-key must have no spaces and only ASCII characters") // does not print the key
	}
	return nil
}

// Serve speaks the protocol over in and out until in ends or ctx ends. It closes neither.
func (f *Flags) Serve(ctx context.Context, version string, in io.Reader, out, errs io.Writer) error {
	base, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelInfo}))
	server, err := newServer(newClient(ctx, base, f.APIKey), version, log)
	if err != nil {
		return err
	}
	session, err := server.Connect(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: unclosed{out}}, nil)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	log.Info("speaking the Model Context Protocol on standard input and output", "server", base.String())
	defer context.AfterFunc(ctx, func() { _ = session.Close() })() // waits for calls, whose requests end with ctx
	if err := session.Wait(); err != nil && ctx.Err() == nil {     // not after a signal
		return fmt.Errorf("protocol error: %w", err)
	}
	return nil
}

// unclosed is a writer that is not closed.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

const instructions = `Options market structure from a strikecache server: SPX dealer gamma, max pain, unusual options flow, ` +
	`sector rotation, VIX futures. Every answer is JSON with data and, in meta, its source, as_of (the instant that the quotes describe, in UTC), ` +
	`freshness and a notice. When source is "simulated", no number is real: say so. Numbers are delayed, derived and modelled; they are no ` +
	`forecast and no investment advice. null means unknown, never 0. A table has columns and rows; "same" holds the columns that are equal in all of its rows. "cut" names the tables ` +
	`that lack rows, and how to ask for more. The resource strikecache://methods defines every number.`

// newServer returns a protocol server whose tools and resources ask c.
func newServer(c *client, version string, log *slog.Logger) (*sdk.Server, error) {
	server := sdk.NewServer(&sdk.Implementation{Name: "strikecache", Title: "strikecache", Version: version}, &sdk.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(onlyErrors{log.Handler()}),
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	server.AddReceivingMiddleware(nullArguments)
	tools, err := tools()
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		sdk.AddTool(server, t.description, func(ctx context.Context, _ *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, any, error) {
			text, err := t.call(ctx, c, args)
			if err != nil {
				log.Warn("call failed", "tool", t.description.Name, "err", err)
				return nil, nil, err // the SDK makes it the text of a failed call
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	}
	for _, r := range []struct{ name, path, mime, text string }{
		{"methods", "/methods", "text/html", "What every number means, its unit, and how it is computed. About 40 KB."},
		{"openapi", "/openapi.json", "application/json", "Every field of the server's answers with its type and unit, as an OpenAPI document. About 300 KB."},
	} {
		uri := "strikecache://" + r.name
		server.AddResource(&sdk.Resource{URI: uri, Name: r.name, Description: r.text, MIMEType: r.mime},
			func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				body, err := c.page(ctx, r.path)
				if err != nil {
					log.Warn("resource not read", "resource", uri, "err", err)
					return nil, err
				}
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: r.mime, Text: string(body)}}}, nil
			})
	}
	return server, nil
}

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

// onlyErrors drops what the SDK logs of the course of a session.
type onlyErrors struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (onlyErrors) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
