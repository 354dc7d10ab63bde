package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strikecache/bench/need"
)

// binary builds the binary once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "strikecache-e2e-")
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "strikecache")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = filepath.Dir(strings.TrimSpace(string(root)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// command returns a command of the binary with a clean environment.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(cmd.Env, "STRIKECACHE_DATA_DIR="+t.TempDir()) // unless --data-dir says another
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}          // for killGroup
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// process is a running server.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	url string

	log need.Log
	end chan error
}

var servingLine = regexp.MustCompile(`msg=serving address=(https?://\S+)`)

// serve starts a server on a free port and waits until it listens.
func serve(t *testing.T, args ...string) *process {
	t.Helper()
	return serveWith(t, command(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", ""}, args...)...))
}

func serveWith(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	return serveWatched(t, cmd, func(string) {})
}

// serveWatched calls watch with every line of the log, as it comes, until the process has ended.
func serveWatched(t *testing.T, cmd *exec.Cmd, watch func(line string)) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, end: make(chan error, 1)}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			watch(lines.Text())
			fmt.Fprintln(&p.log, lines.Text())
			if m := servingLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		p.end <- cmd.Wait()
	}()
	t.Cleanup(p.kill)
	select {
	case p.url = <-listening:
	case err := <-p.end:
		p.end <- err
		t.Fatalf("the server ended: %v\n%s", err, p.logged())
	case <-time.After(need.Patience):
		t.Fatalf("the server does not listen\n%s", p.logged())
	}
	return p
}

func (p *process) logged() string { return p.log.String() }

// kill ends the process and its refresher at once, as a power cut would, if they still run.
func (p *process) kill() {
	killGroup(p.cmd)
	p.ended()
}

// killGroup kills a command with all its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// stop sends a signal and waits for the end.
func (p *process) stop(sig os.Signal) error {
	p.cmd.Process.Signal(sig)
	return p.ended()
}

// ended waits for the end.
func (p *process) ended() error {
	select {
	case err := <-p.end:
		p.end <- err
		return err
	case <-time.After(need.Patience):
		killGroup(p.cmd)
		p.t.Error("the process does not end")
		return nil
	}
}

// get fetches a path and fails the test when nothing answers.
func (p *process) get(path string, headers ...string) (*http.Response, []byte) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.logged())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, body
}

// until polls a condition.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	need.Until(p.t, what, holds, p.logged)
}

func (p *process) ready() {
	p.t.Helper()
	p.until("ready", func() bool { resp, _ := p.get("/readyz"); return resp.StatusCode == http.StatusOK })
}

// run runs a command to its end and returns its output and exit code.
func run(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
