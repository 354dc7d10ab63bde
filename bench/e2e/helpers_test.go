// Package e2e tests the binary from outside: it builds and starts the binary, speaks HTTP, and kills and restarts it.
package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/testkit"
)

var full, must, needs, installed, equal = testkit.Full, testkit.Must, testkit.Needs, testkit.Program, testkit.Equal

// patience is how long a test waits for an event. No test measures speed, so patience is long enough for the race detector
// on a busy machine.
const patience = 10 * time.Minute

var (
	root    string // of the project
	scratch string // folder of the files that all tests share; removed at the end
	binary  string // built once

	raceFlags []string // of the programs under the race detector
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "strikecache-e2e-"); err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(scratch)
	defer market.stop()
	defer stopChromium()
	if out, err := exec.Command("go", "env", "GOMOD").Output(); err == nil {
		root = filepath.Dir(strings.TrimSpace(string(out)))
	}
	if binary, err = build("strikecache", ".", raceFlags...); err != nil {
		fmt.Println(err)
		return 1
	}
	if flag.Lookup("test.parallel").Value.String() == "2" { // on two cores run four tests, because most wait for other processes
		if err := flag.Set("test.parallel", "4"); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return m.Run()
}

// build builds a program of the project into the scratch folder and returns its path.
func build(name, folder string, flags ...string) (string, error) {
	path := filepath.Join(scratch, name)
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, flags, []string{folder})...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return path, nil
}

// count returns n in a full run, and a tenth of n, rounded up, in the short form.
func count(n int) int {
	if full() {
		return n
	}
	return (n + 9) / 10
}

// figure reports a figure of a test: what was injected, survived or held. make faults lists the figures.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf("figure: "+format, args...)
}

// recorded returns the folder of recorded upstream documents.
func recorded(t testing.TB) string { return testkit.Shared(t, "recorded") }

// freeAddress returns an address on which nobody listens. Its port is below those that systems give to connections: else one of
// them might take it before a server listens, or while the server is down.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// writeFile writes a new file and returns its path.
func writeFile(t testing.TB, path, text string) string {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	return path
}

// text returns the content of a file, of the project if the path is relative.
func text(t testing.TB, path string) string {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// prints runs a program and returns what it prints. An error fails the test.
func prints(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// until polls a condition, the less often the longer it waits. When patience is over, the test fails with what it waited for and with
// the texts of more.
func until(t testing.TB, what string, holds func() bool, more ...func() string) {
	t.Helper()
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > patience {
			for _, tell := range more {
				what += "\n" + tell()
			}
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(min(max(waited/20, time.Millisecond), 500*time.Millisecond))
	}
}

// output is a text that is read while a process writes it.
type output struct{ testkit.Text }

// lines returns the lines that are not empty.
func (o *output) lines() []string {
	return strings.FieldsFunc(o.String(), func(r rune) bool { return r == '\n' })
}

// command returns a command of the binary. Unless args say otherwise, it uses free ports, an empty data directory, and SPX
// alone.
func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "STRIKECACHE_LISTEN=127.0.0.1:0", "STRIKECACHE_ADMIN_LISTEN=", "STRIKECACHE_UNDERLYINGS=SPX", "STRIKECACHE_SIM_SMALL=true", "STRIKECACHE_DATA_DIR="+filepath.Join(t.TempDir(), "data"))
	return cmd
}

// run runs a command to its end and returns its output and exit code.
func run(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(t, cmd.Start())
	over := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // a server that should not have started
	defer over.Stop()
	_ = cmd.Wait() // its error is in the exit code
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// does runs the binary to its end, and returns its standard output. The exit code must be 0.
func does(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, code := run(t, command(t, args...))
	if code != 0 {
		t.Fatalf("%v: exit %d, %s%s", args, code, stdout, stderr)
	}
	return stdout
}

// verified checks that every stored file of a directory is good.
func verified(t testing.TB, dir string) {
	t.Helper()
	if out, stderr, code := run(t, command(t, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
		t.Errorf("verify: exit %d, %s%s", code, out, stderr)
	}
}

// process is a running program: a server, a client of one, or a cache in front of one.
type process struct {
	t        testing.TB
	cmd      *exec.Cmd
	out, log *output // standard output and standard error
	end      chan struct{}
	err      error // what it ended with, once end is closed

	url   string // of a server
	admin string // URL of its admin listener, "" without one
}

// launch starts a program. It and its children have a session of their own, because Linux first shares the processor among
// sessions: so a refresh has low priority compared with its own server, but not with other programs on a busy machine.
// A writer in cmd.Stderr gets its standard error, too. A file there is its standard error, and log stays empty.
func launch(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, out: &output{}, log: &output{}, end: make(chan struct{})}
	writers := []io.Writer{p.log}
	if cmd.Stderr != nil {
		writers = append(writers, cmd.Stderr)
	}
	cmd.Stdout = p.out
	if _, ok := cmd.Stderr.(*os.File); !ok {
		cmd.Stderr = io.MultiWriter(writers...)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	must(t, cmd.Start())
	go func() {
		p.err = cmd.Wait()
		close(p.end)
	}()
	return p
}

var (
	servingLine = regexp.MustCompile(`msg=serving address=(https?://\S+)`)
	adminLine   = regexp.MustCompile(`msg="serving admin" address=(http://\S+)`)
)

// listens waits until a server listens.
func (p *process) listens() *process {
	p.t.Helper()
	p.until("listening", func() bool {
		m := servingLine.FindStringSubmatch(p.logged())
		if m != nil {
			p.url = m[1]
		}
		if p.hasEnded() {
			p.t.Fatalf("the server ended: %v\n%s", p.err, p.logged())
		}
		return m != nil
	})
	if m := adminLine.FindStringSubmatch(p.logged()); m != nil {
		p.admin = m[1]
	}
	return p
}

// serve starts a server on a free port and waits until it listens. It ends with the test.
func serve(t testing.TB, args ...string) *process {
	t.Helper()
	return serveWith(t, command(t, append([]string{"serve"}, args...)...))
}

func serveWith(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := launch(t, cmd)
	t.Cleanup(p.kill)
	return p.listens()
}

// serveReady starts a server and waits until it is ready.
func serveReady(t testing.TB, args ...string) *process {
	t.Helper()
	p := serve(t, args...)
	p.ready()
	return p
}

func (p *process) logged() string { return p.log.String() }

func (p *process) address() string { return strings.TrimPrefix(p.url, "http://") }

func (p *process) hasEnded() bool {
	select {
	case <-p.end:
		return true
	default:
		return false
	}
}

// kill ends the process with all its children at once, as a power cut would, if it still runs.
func (p *process) kill() {
	if !p.hasEnded() {
		killGroup(p.cmd)
		<-p.end
	}
}

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// wait waits for the end, and returns what the process ended with.
func (p *process) wait() error {
	p.t.Helper()
	p.until("the process ends", p.hasEnded)
	return p.err
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(sig))
}

// stop ends the process as a service manager does. The process must end without an error.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.t.Errorf("stopped with %v\n%s", err, p.logged())
	}
}

// until polls a condition.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	until(p.t, what, holds, p.out.String, p.logged)
}

// send sends a request with header fields, given as name and value, and reads the whole answer. The client decodes
// nothing.
func send(client *http.Client, method, url string, headers ...string) (*http.Response, []byte, error) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// newClient returns a client that keeps its connections, and decodes nothing.
func newClient() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableCompression: true}}
}

// fetch sends a request over a connection of its own.
func fetch(method, url string, headers ...string) (*http.Response, []byte, error) {
	client := newClient()
	defer client.CloseIdleConnections()
	return send(client, method, url, headers...)
}

// get fetches a path, and fails the test without an answer.
func (p *process) get(path string, headers ...string) (*http.Response, []byte) {
	p.t.Helper()
	resp, body, err := fetch(http.MethodGet, p.url+path, headers...)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.logged())
	}
	return resp, body
}

// answers says whether a path is answered with a status.
func (p *process) answers(path string, status int, headers ...string) bool {
	p.t.Helper()
	resp, _ := p.get(path, headers...)
	return resp.StatusCode == status
}

func (p *process) ready() {
	p.t.Helper()
	p.until("ready", func() bool { return p.answers("/readyz", http.StatusOK) })
}

// operator fetches a path of the admin listener.
func (p *process) operator(path string) string {
	p.t.Helper()
	resp, body, err := fetch(http.MethodGet, p.admin+path)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s%s: %v %v\n%s", p.admin, path, resp, err, p.logged())
	}
	return string(body)
}

// metric returns the value of a sample in a scrape, "" without one.
func metric(scrape, sample string) string {
	for line := range strings.Lines(scrape) {
		if value, ok := strings.CutPrefix(line, sample+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// conn is a connection on which a test speaks HTTP by hand. It has a deadline, so that no operation hangs for ever.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(address string) (*conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return newConn(c), c.SetDeadline(time.Now().Add(patience))
}

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReader(c)} }

// dial opens a connection that ends with the test, and writes to it.
func (p *process) dial(raw string) *conn {
	p.t.Helper()
	c, err := dial(p.address())
	must(p.t, err)
	p.t.Cleanup(func() { c.Close() })
	c.write(p.t, raw)
	return c
}

func (c *conn) write(t testing.TB, raw string) {
	t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		t.Fatal(err)
	}
}

// receive reads one whole answer to a request of a method.
func (c *conn) receive(method string) (*http.Response, []byte, error) {
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}
