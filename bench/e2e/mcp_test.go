package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// model is a client of `strikecache mcp`, in the place of a program with a language model.
type model struct {
	t       testing.TB
	session *mcp.ClientSession
	log     *output // standard error of the command
}

// connect starts `strikecache mcp` and connects to it. The session ends with the test.
func connect(t testing.TB, url string, args ...string) model {
	t.Helper()
	m := model{t: t, log: &output{}}
	cmd := command(t, append([]string{"mcp", "--url", url}, args...)...)
	cmd.Stderr = m.log
	m.connect(&mcp.CommandTransport{Command: cmd})
	return m
}

// connect begins the session.
func (m *model) connect(transport mcp.Transport) {
	t := m.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var err error
	m.session, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, transport, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, m.log)
	}
	t.Cleanup(func() {
		if err := m.session.Close(); err != nil { // closes its standard input: the exit code must be 0
			t.Errorf("end: %v\n%s", err, m.log)
		}
	})
}

// call calls a tool and returns the text of its result, which has it once. It is JSON unless the result is an error.
func (m model) call(name string, args map[string]any) (text string, failed bool) {
	m.t.Helper()
	result, err := m.session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", name, err, m.log)
	}
	if len(result.Content) != 1 {
		m.t.Fatalf("%s: %d parts", name, len(result.Content))
	}
	text = result.Content[0].(*mcp.TextContent).Text
	if json.Valid([]byte(text)) == result.IsError || result.StructuredContent != nil {
		m.t.Errorf("%s: error %v with the text %.200s and %.200s", name, result.IsError, text, fmt.Sprint(result.StructuredContent))
	}
	return text, result.IsError
}

// asked is the compact answer of a tool.
type asked struct {
	Warning string
	Meta    struct {
		Source, Notice string
		AsOf           string `json:"as_of"`
		Freshness      struct{ State string }
	}
	Cut  []string
	Data map[string]any
}

// ask calls a tool, which must not fail.
func (m model) ask(name string, args map[string]any) (a asked, size int) {
	m.t.Helper()
	text, failed := m.call(name, args)
	if failed {
		m.t.Fatalf("%s: %s", name, text)
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		m.t.Fatalf("%s: %v in %s", name, err, text)
	}
	for _, unwanted := range []string{`"receipt"`, `"usage"`, `"success"`, "\n"} {
		if strings.Contains(text, unwanted) {
			m.t.Errorf("%s contains %s", name, unwanted)
		}
	}
	if a.Meta.Source != "simulated" || !strings.Contains(a.Warning, "SIMULATED") || a.Meta.AsOf == "" || a.Meta.Notice == "" || a.Meta.Freshness.State == "" || len(a.Data) == 0 {
		m.t.Errorf("%s: %.500s", name, text)
	}
	return a, len(text)
}

// rows returns the number of rows of a table of an answer.
func (a asked) rows(name string) int {
	table, _ := a.Data[name].(map[string]any)
	rows, _ := table["rows"].([]any)
	return len(rows)
}

// Every public resource is a tool with its parameters, and its answer is short. The pages are those of the server.
func TestModelTools(t *testing.T) {
	t.Parallel()
	p := shared(t)
	m := connect(t, p.url)
	tools, err := m.session.ListTools(t.Context(), nil)
	must(t, err)
	var document struct{ Paths map[string]any }
	_, body := p.get("/openapi.json")
	must(t, json.Unmarshal(body, &document))
	paths := map[string]string{} // of the resources, by the name of the tool
	for path := range document.Paths {
		for _, prefix := range []string{"/api/v1/", "/api/public/"} {
			if resource, ok := strings.CutPrefix(path, prefix); ok {
				paths[strings.NewReplacer("/{u}", "", "{u}-", "", "/", "_", "-", "_").Replace(resource)] = path
			}
		}
	}
	list, _ := json.Marshal(tools)
	figure(t, "%d tools in %d bytes", len(tools.Tools), len(list))
	if len(tools.Tools) != len(paths) || len(paths) < 7 || len(list) >= 20_000 { // a model reads the list before its first question
		t.Errorf("%d tools in %d bytes for %d resources", len(tools.Tools), len(list), len(paths))
	}
	for _, tool := range tools.Tools {
		path := paths[tool.Name]
		about := 0
		_, err := fmt.Sscanf(tool.Description[strings.LastIndex(tool.Description, "About "):], "About %d KB.", &about)
		must(t, err)
		if path == "" || tool.Title == "" || !tool.Annotations.ReadOnlyHint {
			t.Fatalf("tool %+v", tool)
		}
		_, body := p.get(strings.Replace(path, "{u}", "spx", 1))
		answer, size := m.ask(tool.Name, nil)
		if whole := tool.Name == "underlyings" || tool.Name == "gex_levels"; whole && len(answer.Cut) > 0 {
			t.Errorf("%s lacks rows: %q", tool.Name, answer.Cut)
		}
		figure(t, "%s: %d bytes for a model, %d bytes as JSON", tool.Name, size, len(body))
		if size > about<<10+512 {
			t.Errorf("%s: the answer has %d bytes, not about %d KB", tool.Name, size, about)
		}
	}
	for uri, path := range map[string]string{"strikecache://methods": "/methods.markdown", "strikecache://openapi": "/openapi.json"} {
		_, page := p.get(path)
		read, err := m.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != string(page) {
			t.Errorf("%s: %v", uri, err)
		}
	}
	m.parameters(p)
}

// Over HTTP the tools are the same. A page of another origin is refused, and a signal ends the command.
func TestModelOverHTTP(t *testing.T) {
	t.Parallel()
	p := launch(t, command(t, "mcp", "--url", shared(t).url, "--http-listen", ":0"))
	t.Cleanup(p.kill)
	var address []string
	p.until("listens", func() bool {
		address = regexp.MustCompile(`address=(http://127\.0\.0\.1:\d+/mcp)`).FindStringSubmatch(p.logged())
		return address != nil
	})
	p.signal(syscall.SIGHUP) // it ends nothing
	m := model{t: t, log: p.log}
	m.connect(&mcp.StreamableClientTransport{Endpoint: address[1]})
	if tools, err := m.session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) < 7 {
		t.Errorf("%v", err)
	}
	if three, _ := m.ask("gex", map[string]any{"rows": 3}); three.rows("by_strike") != 3 {
		t.Errorf("%d strikes", three.rows("by_strike"))
	}
	for want, x := range map[int]struct{ host, site, body string }{
		http.StatusOK:                    {"127.0.0.1", "", "{}"},
		http.StatusForbidden:             {"evil.example", "", "{}"}, // a page whose name resolves to this address
		http.StatusRequestEntityTooLarge: {"127.0.0.1", "", strings.Repeat(" ", 9<<10)},
		-http.StatusForbidden:            {"127.0.0.1", "cross-site", "{}"},
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + x.body + `}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address[1], strings.NewReader(body))
		must(t, err)
		req.Host = x.host
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if x.site != "" {
			req.Header.Set("Sec-Fetch-Site", x.site)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != max(want, -want) {
			t.Errorf("%.80q for %s of %q gets %s", body, x.host, x.site, resp.Status)
		}
	}
	if _, stderr, code := run(t, command(t, "mcp", "--http-listen", "0.0.0.0:0")); code != 1 || !strings.Contains(stderr, "is not a loopback address") {
		t.Errorf("other machines could ask: exit %d, %s", code, stderr)
	}
	p.signal(os.Interrupt)
	if err := p.wait(); err != nil {
		t.Errorf("%v\n%s", err, p.logged())
	}
}

// parameters checks that a parameter reaches the server. A wrong one, an unknown date and an unknown expiration get an error that
// says what is right.
func (m model) parameters(p *process) {
	t := m.t
	t.Helper()
	all, _ := m.ask("gex", nil) // the client sends null
	if all.rows("by_strike") != 12 || !strings.Contains(strings.Join(all.Cut, "\n"), "data.by_strike: 12 of ") {
		t.Errorf("%d strikes, %q", all.rows("by_strike"), all.Cut)
	}
	var strikes []any
	for _, row := range all.Data["by_strike"].(map[string]any)["rows"].([]any) {
		strikes = append(strikes, row.([]any)[0])
	}
	for _, wall := range []string{"call_wall", "put_wall"} {
		if !slices.Contains(strikes, all.Data[wall]) {
			t.Errorf("%s %v is not among %v", wall, all.Data[wall], strikes)
		}
	}
	matrix, _ := m.ask("gex_matrix", map[string]any{"underlying": "SPX", "rows": nil})
	for i, part := range matrix.Data["parts"].([]any) {
		if rows := part.(map[string]any)["by_strike"].(map[string]any)["rows"].([]any); len(rows) != 12 || !strings.Contains(strings.Join(matrix.Cut, "\n"), fmt.Sprintf("data.parts[%d].by_strike: 12 of ", i)) {
			t.Errorf("part %d: %d rows, %q", i, len(rows), matrix.Cut)
		}
	}
	if few, _ := m.ask("gex", map[string]any{"rows": 3}); few.rows("by_strike") != 3 || few.rows("profile") != 3 {
		t.Errorf("%d strikes, %d points", few.rows("by_strike"), few.rows("profile"))
	}
	if two, _ := m.ask("options_flow_unusual", map[string]any{"limit": 2}); two.rows("items") != 2 || len(two.Cut) > 0 {
		t.Errorf("%d items, %q", two.rows("items"), two.Cut)
	}
	expirations := all.Data["by_expiration"].(map[string]any)
	expiration := expirations["rows"].([]any)[5].([]any)[slices.Index(expirations["columns"].([]any), any("expiration"))]
	if a, _ := m.ask("max_pain", map[string]any{"expiration": expiration}); a.Data["expiration"] != expiration {
		t.Errorf("%v, want %v", a.Data["expiration"], expiration)
	}
	session, first := all.Data["session_date"].(string), slices.Min(p.sessions())
	if a, _ := m.ask("gex_historical", map[string]any{"date": session}); a.Data["session_date"] != session {
		t.Errorf("%v, want %v", a.Data["session_date"], session)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want []string
	}{
		{"options_flow_unusual", map[string]any{"limit": 500}, []string{"limit must be a whole number from 1 to 100"}},
		{"options_flow_unusual", map[string]any{"limit": 1.5}, []string{"limit must be a whole number from 1 to 100"}},
		{"options_flow_unusual", map[string]any{"rows": 5}, []string{"options_flow_unusual takes no rows; its arguments are date, limit"}},
		{"gex", map[string]any{"underlying": 5}, []string{"underlying must be a string, not 5"}},
		{"gex", map[string]any{"rows": 0}, []string{"rows must be a whole number from 1 to 500"}},
		{"gex", map[string]any{"rows": 2.5}, []string{"rows must be a whole number from 1 to 500"}},
		{"gex", map[string]any{"underlying": "nope"}, []string{`404 Not Found: {"code":"unknown_underlying"`, `"spx"`}},
		{"gex", map[string]any{"underlying": "../../healthz?"}, []string{`404 Not Found: {"code":"not_found"`}},
		{"gex_historical", map[string]any{"date": "yesterday"}, []string{"date must be YYYY-MM-DD"}},
		{"gex_historical", map[string]any{"date": "2026-02-30"}, []string{`400 Bad Request: {"code":"invalid_parameter","message":"date must be YYYY-MM-DD`}},
		{"gex_historical", map[string]any{"date": "2020-01-02"}, []string{`404 Not Found: {"code":"snapshot_not_found"`, `"earlier":null,"later":"` + first}},
		{"max_pain", map[string]any{"expiration": "2020-01-02"}, []string{`404 Not Found: {"code":"expiration_not_found"`, expiration.(string)}},
	} {
		text, failed := m.call(c.tool, c.args)
		for _, want := range c.want {
			if !failed || !strings.Contains(text, want) {
				t.Errorf("%s %v: failed %v, %s; want %s", c.tool, c.args, failed, text, want)
			}
		}
	}
}

// A signal and the end of standard input end the command without an error, even during a call. What was asked before the end of input
// gets its answer. Standard output has only the protocol, the key goes to the server, and no log line has it.
func TestModelEnds(t *testing.T) {
	t.Parallel()
	const key = "sk_secret_of_this_test"
	asked := make(chan string, 10)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path + " " + r.Header.Get("X-API-Key")
		if strings.HasPrefix(r.URL.Path, "/hangs/") {
			<-r.Context().Done()
		}
	}))
	defer web.Close()
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	const listen = `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}` + "\n"
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"gex","arguments":{}}}` + "\n"
	for _, c := range []struct {
		name, input, path string
		signal            os.Signal
		answers           int
	}{
		{"signal", hello, "/hangs/", os.Interrupt, 1},
		{"signal in a call", hello + call, "/hangs/", syscall.SIGTERM, 1},
		{"end of input", hello, "/proxy/", nil, 1},
		{"end of input in a call, after a byte order mark", "\xef\xbb\xbf" + hello + call, "/proxy/", nil, 2},
		{"no JSON after a call", hello + call + "bad\n", "/proxy/", nil, 2},
		{"end of input while it listens", hello + listen, "/proxy/", nil, 1},
		{"end of input after a number that is used", hello + call + call, "/proxy/", nil, 2},
		{"end of input before a session", "", "/proxy/", nil, 0},
	} {
		cmd := command(t, "mcp", "--url", web.URL+c.path, "--api-key", key)
		in, err := cmd.StdinPipe()
		must(t, err)
		p := launch(t, cmd)
		t.Cleanup(p.kill)
		if _, err := io.WriteString(in, c.input); err != nil {
			t.Fatal(err)
		}
		want := c.path + "api/v1/gex/spx " + key
		if c.signal == nil {
			in.Close()
		} else {
			p.until("answered", func() bool { return len(p.out.lines()) == c.answers && len(asked) == strings.Count(c.input, call) })
			p.signal(c.signal)
		}
		if err := p.wait(); (err != nil) != strings.HasSuffix(c.input, "bad\n") || strings.Contains(p.logged(), key) {
			t.Errorf("%s: %v\n%s", c.name, err, p.logged())
		}
		for len(asked) > 0 {
			if got := <-asked; got != want {
				t.Errorf("%s: asked for %s", c.name, got)
			}
		}
		if lines := p.out.lines(); len(lines) < c.answers {
			t.Errorf("%s: %d answers, want %d: %q", c.name, len(lines), c.answers, lines)
		}
		for _, line := range p.out.lines() {
			var message struct{ JSONRPC string }
			if json.Unmarshal([]byte(line), &message) != nil || message.JSONRPC != "2.0" {
				t.Errorf("%s: standard output has %q", c.name, line)
			}
		}
	}
}

// A wrong address is an error, which does not show a password. Input that is not the protocol is an error.
func TestModelFlags(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"--url", "file:///etc/passwd"}, {"--url", "127.0.0.1:8080"}, {"--url", "http://user:pw@127.0.0.1"}, {"--url", "http://"},
		{"--url", "http://127.0.0.1/?a=b"},
	} {
		_, stderr, code := run(t, command(t, "mcp", c[0], c[1]))
		if code != 1 || !strings.Contains(stderr, c[0]+" must") || strings.Contains(stderr, "pw") {
			t.Errorf("%s: exit %d, %s", fmt.Sprint(c), code, stderr)
		}
	}
	m := connect(t, "http://127.0.0.1:1")
	for range 2 { // while the server is down, calls fail with a reason, and the command goes on
		if text, failed := m.call("gex", nil); !failed || !strings.Contains(text, "http://127.0.0.1:1 gives no complete answer") || !strings.Contains(text, `api/v1/gex/spx"`) {
			t.Errorf("failed %v, %s", failed, text)
		}
	}
	cmd := command(t, "mcp")
	cmd.Stdin = strings.NewReader("hello\n")
	if stdout, stderr, code := run(t, cmd); code != 1 || stdout != "" || !strings.Contains(stderr, "protocol error") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if help := does(t, "mcp", "--help"); !strings.Contains(help, `"mcpServers"`) || !strings.Contains(help, "STRIKECACHE_API_KEY") {
		t.Error(help)
	}
}
