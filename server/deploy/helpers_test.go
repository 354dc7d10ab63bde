package deploy_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	os.RemoveAll(scratch)
	os.Exit(code)
}

// must fails the test at once if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func strikecache(t *testing.T) string {
	t.Helper()
	path, err := binary()
	must(t, err)
	return path
}

// program returns the path of a program, or skips the test. STRIKECACHE_REQUIRE, a comma-separated list of programs or
// all, turns the skip into a failure.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if required := strings.Split(os.Getenv("STRIKECACHE_REQUIRE"), ","); slices.Contains(required, name) || slices.Contains(required, "all") {
		t.Fatalf("program %s is not installed, and STRIKECACHE_REQUIRE asks for it", name)
	}
	t.Skipf("needs %s, which is not installed", name)
	return ""
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

// live starts a server of the simulated market, waits until it is ready, and returns the URLs of its two listeners.
func live(t *testing.T) (public, admin string) {
	t.Helper()
	cmd := exec.Command(strikecache(t), "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir", t.TempDir(),
		"--underlyings", "SPX,QQQ", "--sim-start", "2026-11-20T16:00:00Z", "--sim-speed", "0")
	log, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	lines, ended := bufio.NewScanner(log), make(chan struct{})
	hung := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		hung.Stop()
		cmd.Process.Kill()
		<-ended
		cmd.Wait()
	})
	said := ""
	address := regexp.MustCompile(`address=(http://\S+)`)
	for (public == "" || admin == "") && lines.Scan() {
		said += lines.Text() + "\n"
		if m := address.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), `"serving admin"`) {
			admin = m[1]
		} else if m != nil {
			public = m[1]
		}
	}
	go func() {
		defer close(ended)
		io.Copy(io.Discard, log) // the server must not wait for its log to be read
	}()
	if public == "" || admin == "" {
		t.Fatalf("the server does not say its addresses:\n%s", said)
	}
	for deadline := time.Now().Add(5 * time.Minute); exec.Command(strikecache(t), "verify", "--ready", admin).Run() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("not ready within 5 minutes")
		}
	}
	return public, admin
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
