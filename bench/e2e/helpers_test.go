// Package e2e tests the binary as a stranger would: it builds it, starts it, speaks HTTP, kills it and starts it again.
package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. No test states a speed, so it is long enough for a race
// detector on a busy machine.
const patience = 5 * time.Minute

var (
	root    string // of the project
	scratch string // folder of what all tests share; removed at the end
	binary  string // built once

	buildFlags []string // of every program
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
	if out, err := exec.Command("go", "env", "GOMOD").Output(); err == nil {
		root = filepath.Dir(strings.TrimSpace(string(out)))
	}
	if binary, err = build("strikecache", "."); err != nil {
		fmt.Println(err)
		return 1
	}
	if flag.Lookup("test.parallel").Value.String() == "2" { // two cores: most tests wait for other processes
		if err := flag.Set("test.parallel", "4"); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return m.Run()
}

// build builds a program of the project into the scratch folder and returns its path.
func build(name string, args ...string) (string, error) {
	path := filepath.Join(scratch, name)
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, buildFlags, args)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return path, nil
}

// full says whether the run is a full one, as make faults and make soak ask for, and not the short form of make test.
func full() bool { return os.Getenv("STRIKECACHE_FULL") != "" }

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

// needs skips a test that lacks something, or fails it when STRIKECACHE_REQUIRE, a comma-separated list or "all", names
// what is lacking.
func needs(t testing.TB, name, sentence string) {
	t.Helper()
	required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ",")
	if slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("%s; STRIKECACHE_REQUIRE asks for %s", sentence, name)
	}
	t.Skip(sentence)
}

// program returns the path of an installed program.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name) // where Debian keeps servers, out of most users' search path
	}
	if err != nil {
		needs(t, name, "needs the program "+name)
	}
	return path
}

// recorded returns the folder of recorded upstream documents.
func recorded(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(root, "..", "shared", "recorded")
	if _, err := os.Stat(dir); err != nil {
		needs(t, "recorded", "needs the recorded documents (../shared/recorded): real Cboe documents that are not published; their formats are described in refresh/cboe")
	}
	return dir
}

// until polls a condition. When patience is over, the test ends with what was waited for and all that more tells.
func until(t testing.TB, what string, holds func() bool, more ...func() string) {
	t.Helper()
	pause := time.Millisecond
	for deadline := time.Now().Add(patience); !holds(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			for _, tell := range more {
				what += "\n" + tell()
			}
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

// output is a text that is read while a process writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer // not embedded: io.Copy would use its ReadFrom, which takes no lock
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// command returns a command of the binary. It binds no default port, and its data directory is an empty one, unless args
// say otherwise.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := commandOf(binary, args...)
	cmd.Env = append(cmd.Env, "STRIKECACHE_DATA_DIR="+t.TempDir())
	return cmd
}

func commandOf(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	// In a session of its own: Linux shares the processor among sessions first, so that the low priority of a refresh counts
	// beside its own server and not beside whatever else keeps the machine busy.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "STRIKECACHE_LISTEN=127.0.0.1:0", "STRIKECACHE_ADMIN_LISTEN=")
	return cmd
}

// run runs a command to its end and returns its output and exit code.
func run(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// verified checks that every stored file of a directory is good.
func verified(t testing.TB, dir string) {
	t.Helper()
	if out, stderr, code := run(t, commandOf(binary, "verify", "--data-dir", dir)); code != 0 || !strings.Contains(out, " 0 bad") {
		t.Errorf("verify: exit %d, %s%s", code, out, stderr)
	}
}

// process is a running server.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	admin string // URL of the admin listener, "" without one

	log *output
	end chan error // holds the result once the process has ended
}

var (
	servingLine = regexp.MustCompile(`msg=serving address=(https?://\S+)`)
	adminLine   = regexp.MustCompile(`msg="serving admin" address=(http://\S+)`)
)

// serve starts a server on a free port and waits until it listens.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	return serveWith(t, command(t, append([]string{"serve"}, args...)...))
}

func serveWith(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return serveWatched(t, cmd, func(string) {})
}

// serveWatched calls watch with every line of the log, as it comes, until the process has ended.
func serveWatched(t *testing.T, cmd *exec.Cmd, watch func(line string)) *process {
	t.Helper()
	p, err := start(cmd, watch)
	if err != nil {
		t.Fatal(err)
	}
	p.t = t
	t.Cleanup(p.kill)
	return p
}

// start starts a server and waits until it listens.
func start(cmd *exec.Cmd, watch func(line string)) (*process, error) {
	p := &process{cmd: cmd, log: new(output), end: make(chan error, 1)}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			watch(lines.Text())
			fmt.Fprintln(p.log, lines.Text())
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		p.end <- cmd.Wait()
	}()
	select {
	case p.url = <-listening:
	case err := <-p.end:
		p.end <- err
		return nil, fmt.Errorf("the server ended: %w\n%s", err, p.logged())
	case <-time.After(patience):
		p.kill()
		return nil, fmt.Errorf("the server does not listen\n%s", p.logged())
	}
	if m := adminLine.FindStringSubmatch(p.logged()); m != nil {
		p.admin = m[1]
	}
	return p, nil
}

// logged returns the log until now, "" of a process whose log nobody reads.
func (p *process) logged() string {
	if p.log == nil {
		return ""
	}
	return p.log.String()
}

func (p *process) address() string { return strings.TrimPrefix(p.url, "http://") }

// kill ends the process at once, as a power cut would, if it still runs.
func (p *process) kill() {
	killGroup(p.cmd)
	_ = p.ended()
}

// killGroup kills a command with all its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// stop sends a signal and waits for the end.
func (p *process) stop(sig os.Signal) error {
	_ = p.cmd.Process.Signal(sig)
	return p.ended()
}

// stopped ends the process as a service manager does, which must succeed.
func (p *process) stopped() {
	p.t.Helper()
	if err := p.stop(syscall.SIGTERM); err != nil {
		p.t.Errorf("stopped with %v\n%s", err, p.logged())
	}
}

// ended waits for the end.
func (p *process) ended() error {
	select {
	case err := <-p.end:
		p.end <- err
		return err
	case <-time.After(patience):
		killGroup(p.cmd)
		return errors.New("the process does not end")
	}
}

// fetch sends a GET with headers, given as name and value.
func fetch(url string, headers ...string) (*http.Response, []byte, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// get fetches a path and fails the test when nothing answers.
func (p *process) get(path string, headers ...string) (*http.Response, []byte) {
	p.t.Helper()
	resp, body, err := fetch(p.url+path, headers...)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.logged())
	}
	return resp, body
}

// operator fetches a path of the admin listener.
func (p *process) operator(path string) string {
	p.t.Helper()
	resp, body, err := fetch(p.admin + path)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatalf("%s%s: %v %v\n%s", p.admin, path, resp, err, p.logged())
	}
	return string(body)
}

// until polls a condition.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	until(p.t, what, holds, p.logged)
}

func (p *process) ready() {
	p.t.Helper()
	p.until("ready", func() bool { resp, _ := p.get("/readyz"); return resp.StatusCode == http.StatusOK })
}

// each calls f for 0 to n-1, so many at a time.
func each(n, atOnce int, f func(i int)) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}
