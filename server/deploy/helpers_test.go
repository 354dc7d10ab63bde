package deploy_test

import (
	"bufio"
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

	"strikecache/bench/testkit"
)

var must, program, equal = testkit.Must, testkit.Program, testkit.Equal

// binary builds the program once for all tests and returns its path.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "strikecache")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "..")
	build.Stderr = os.Stderr
	return path, build.Run()
})

// scratch is a directory for the whole run.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "strikecache-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if server.process != nil {
		server.process.Kill()
		server.process.Wait()
	}
	os.RemoveAll(scratch)
	os.Exit(code)
}

func strikecache(t *testing.T) string {
	t.Helper()
	path, err := binary()
	must(t, err)
	return path
}

// run runs a program and returns what it prints. An error fails the test.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// text returns the content of a file of this folder.
func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}

// server is that of [live].
var server struct {
	once          sync.Once
	process       *os.Process
	public, admin string
}

// live starts a server of the simulated market, once for all tests, waits until it is ready, and returns the URLs of its two
// listeners. TestMain ends it.
func live(t *testing.T) (public, admin string) {
	t.Helper()
	cmd, log := exec.Command(strikecache(t), "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", filepath.Join(scratch, "data"),
		"--underlyings", "SPX,QQQ", "--sim-start", "2026-11-20T16:00:00Z", "--sim-speed", "0", "--sim-small"), filepath.Join(scratch, "log")
	server.once.Do(func() {
		file, err := os.Create(log)
		must(t, err)
		defer file.Close()
		cmd.Stderr = file
		must(t, cmd.Start())
		server.process = cmd.Process
		address := regexp.MustCompile(`msg=(serving|"serving admin") address=(http://\S+)`)
		for deadline := time.Now().Add(5 * time.Minute); server.admin == "" || exec.Command(cmd.Path, "verify", "--ready", server.admin).Run() != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not ready within 5 minutes:\n%s", text(t, log))
			}
			for _, m := range address.FindAllStringSubmatch(text(t, log), -1) {
				if m[1] == "serving" {
					server.public = m[2]
				} else {
					server.admin = m[2]
				}
			}
		}
	})
	if server.public == "" || server.admin == "" {
		t.Fatal("the server has not started")
	}
	return server.public, server.admin
}

// serveUntil runs a server until its log shows that it has done enough, and then tells it to stop.
func serveUntil(t *testing.T, cmd *exec.Cmd, enough func(log string) bool) {
	t.Helper()
	log, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	hung := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	defer hung.Stop()
	said, done := "", false
	for lines := bufio.NewScanner(log); lines.Scan(); { // until the server ends
		said += lines.Text() + "\n"
		if !done && enough(said) {
			done = true
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	// On a busy machine, a refresh of low priority may not end in time.
	if err := cmd.Wait(); !done || err != nil && !strings.Contains(said, "has not ended within") {
		t.Errorf("did enough: %t, ended with %v:\n%s", done, err, said)
	}
}

// fetched returns the body of a URL, which must answer 200.
func fetched(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %.300s", url, resp.StatusCode, err, body)
	}
	return string(body)
}
