//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// caseStep is a step of a case. It does one thing, and its checks say what must then be so. bench/cases/README.md shows how to
// write one.
type caseStep struct {
	Serve  string // starts a server with these flags, after it has stopped the one before
	Put    string // renames the documents of this folder into the folder in, and waits until a refresh has looked at them
	Get    string // asks for a path, with Method and Headers; $TAG in a header field is the tag of the last answer
	Send   string // sends these bytes
	Run    string // runs a command of the binary to its end
	Signal string // sends this signal, such as HUP
	Stop   bool   // sends TERM and waits for the end

	Method  string
	Headers map[string]string
	Env     map[string]string // of Serve and Run
	Stderr  string            // of Serve: closed or unread, from the first answer on
	Fsync   []string          // of Serve: directories whose fsync fails with EINVAL

	Status    int    // of Get and Send, default 200
	Exit      int    // exit code of Run
	Says      string // is part of the output of Run, or of the log of Serve
	OrRefused string `json:"or_refused"` // a server that ends at its start is right, too, if it names this; then the case is over
	Want      []caseCheck
}

// caseCheck is a check of the answer to a request: of a value of its JSON body, or of a header field.
type caseCheck struct {
	At      string          `json:"at,omitempty"`      // path into the body, see placesOf
	Header  string          `json:"header,omitempty"`  // name of the field
	Is      json.RawMessage `json:"is,omitempty"`      // JSON value
	Within  float64         `json:"within,omitempty"`  // how far a number may be off
	Matches string          `json:"matches,omitempty"` // regular expression
	Absent  bool            `json:"absent,omitempty"`
}

// TestCases runs each case of bench/cases.
func TestCases(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(root, "bench", "cases", "*", ""))
	if err != nil || len(folders) < 2 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		if filepath.Base(folder) != "README.md" {
			t.Run(filepath.Base(folder), func(t *testing.T) {
				t.Parallel()
				runCase(t, folder)
			})
		}
	}
}

func runCase(t *testing.T, folder string) {
	r := &caseRun{t: t, dir: t.TempDir()}
	must(t, errors.Join(os.CopyFS(r.dir, os.DirFS(folder)), os.MkdirAll(filepath.Join(r.dir, "in"), 0o700)))
	var steps []caseStep
	decoder := json.NewDecoder(strings.NewReader(text(t, filepath.Join(r.dir, "want.json"))))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&steps); err != nil || len(steps) == 0 {
		t.Fatalf("want.json: %d steps, %v", len(steps), err)
	}
	for _, s := range steps {
		if !r.does(s) {
			break
		}
	}
	if t.Failed() && r.p != nil {
		t.Log(r.p.logged())
	}
}

// caseRun is a case that runs in a copy of its folder.
type caseRun struct {
	t   *testing.T
	dir string
	p   *process // nil before the first server
	tag string   // of the last answer, without quotes
}

// does runs a step, and returns whether the case goes on.
func (r *caseRun) does(s caseStep) bool {
	r.t.Helper()
	switch {
	case s.Serve != "":
		return r.serves(s)
	case s.Put != "":
		r.puts(s)
	case s.Get != "" || s.Send != "":
		r.asks(s)
	case s.Run != "":
		if stdout, stderr, code := run(r.t, r.command(s, s.Run)); code != s.Exit || !strings.Contains(stdout+stderr, s.Says) {
			r.t.Errorf("%s: exit code %d, want %d, and %q in its output:\n%s%s", s.Run, code, s.Exit, s.Says, stdout, stderr)
		}
	case s.Signal != "":
		r.p.signal(unix.SignalNum("SIG" + s.Signal))
	case s.Stop:
		r.p.stop()
	default:
		r.t.Fatalf("this step does nothing: %+v", s)
	}
	return true
}

// command returns a command of the binary in the folder of the case, with one underlying unless it says otherwise.
func (r *caseRun) command(s caseStep, args string) *exec.Cmd {
	cmd := command(r.t, strings.Fields(args)...)
	cmd.Dir = r.dir
	cmd.Env = append(cmd.Env, "GOGC=off", // a third less processor time for a server that lives for half a second
		"STRIKECACHE_DATA_DIR=data", "STRIKECACHE_ADMIN_LISTEN=127.0.0.1:0", "STRIKECACHE_UNDERLYINGS=SPX")
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// serves starts a server and waits until each of its feeds has been refreshed, with or without success.
func (r *caseRun) serves(s caseStep) bool {
	r.t.Helper()
	if r.p != nil {
		r.p.stop()
	}
	cmd := r.command(s, "serve "+s.Serve)
	if s.Fsync != nil { // as on CIFS and on some file systems of FUSE
		var dirs []string
		for _, dir := range s.Fsync {
			dirs = append(dirs, filepath.Join(r.dir, dir))
		}
		tampered(r.t, cmd, "fsync", "error=EINVAL", dirs...)
	}
	var log *caseLog
	if s.Stderr != "" {
		log = newCaseLog(r.t, cmd)
	}
	r.p = launch(r.t, cmd)
	r.t.Cleanup(r.p.kill)
	if log != nil {
		go log.copyTo(r.p)
	}
	r.p.until("it listens or ends", func() bool { return r.p.hasEnded() || servingLine.MatchString(r.p.logged()) })
	if r.p.hasEnded() {
		if s.OrRefused == "" || !strings.Contains(r.p.logged(), s.OrRefused) {
			r.t.Errorf("serve %s: ends at its start: %v", s.Serve, r.p.err)
		}
		return false
	}
	r.p.listens()
	r.p.until("every feed is refreshed", func() bool {
		counts := r.refreshes()
		for _, symbol := range append(strings.Split(underlyings.FindStringSubmatch(s.Serve + " --underlyings SPX")[1], ","), "sectors", "vix") {
			if counts[feedOf(symbol)] == 0 {
				return r.p.hasEnded()
			}
		}
		return true
	})
	if log != nil {
		log.end(s.Stderr)
	}
	if r.p.hasEnded() || !strings.Contains(r.p.logged(), s.Says) {
		r.t.Fatalf("serve %s: ended %t, and the log does not say %q:\n%s", s.Serve, r.p.hasEnded(), s.Says, r.p.logged())
	}
	return true
}

// underlyings finds the symbols among the flags of serve.
var underlyings = regexp.MustCompile(`--underlyings (\S+)`)

// feedOf returns the name under which the metrics count the refreshes of a symbol, without points.
func feedOf(symbol string) string {
	return strings.NewReplacer(".", "", "_", "").Replace(strings.ToLower(symbol))
}

// refreshes returns how many refreshes of each feed the server has counted, none if it does not answer.
func (r *caseRun) refreshes() map[string]int {
	_, scrape, _ := fetch(http.MethodGet, r.p.admin+"/metrics")
	counts := map[string]int{}
	for _, m := range refreshesTotal.FindAllSubmatch(scrape, -1) {
		n, err := strconv.Atoi(string(m[2]))
		must(r.t, err)
		counts[feedOf(string(m[1]))] += n
	}
	return counts
}

var refreshesTotal = regexp.MustCompile(`(?m)^strikecache_refreshes_total\{.*feed="([^"]*)".*\} (\d+)$`)

// tampered changes a command so that strace tampers with a system call on some paths, see strace(1).
func tampered(t *testing.T, cmd *exec.Cmd, call, how string, paths ...string) {
	t.Helper()
	flags := []string{"-o", os.DevNull, "-e", "trace=" + call, "-e", "inject=" + call + ":" + how}
	for _, path := range paths {
		flags = append(flags, "-P", path)
	}
	traced(t, cmd, flags...)
}

// traced changes a command so that it runs under strace with these flags.
func traced(t *testing.T, cmd *exec.Cmd, flags ...string) {
	t.Helper()
	strace := installed(t, "strace")
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("needs ptrace: %v %s", err, out)
	}
	cmd.Args, cmd.Path = slices.Concat([]string{strace, "-D", "-f", "-qq"}, flags, []string{cmd.Path}, cmd.Args[1:]), strace // with -D, cmd.Process is the server
}

// caseLog is a FIFO, the standard error of a server.
type caseLog struct {
	t    *testing.T
	fifo *os.File // both ends, so that no read ends before the server has opened it
}

func newCaseLog(t *testing.T, cmd *exec.Cmd) *caseLog {
	t.Helper()
	l, path := &caseLog{t: t}, filepath.Join(t.TempDir(), "stderr")
	err := syscall.Mkfifo(path, 0o600)
	if err == nil {
		l.fifo, err = os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	}
	must(t, err)
	t.Cleanup(func() { l.fifo.Close() })
	cmd.Args = append([]string{"sh", "-c", `exec "$@" 2>"$0"`, path, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return l
}

// copyTo copies the log to that of a process until the process listens.
func (l *caseLog) copyTo(p *process) {
	for buffer := make([]byte, 4096); !servingLine.MatchString(p.logged()); {
		n, err := l.fifo.Read(buffer)
		if _, _ = p.log.Write(buffer[:n]); err != nil { // the test is over
			return
		}
	}
}

// end closes the FIFO, or fills it so that it takes no further byte.
func (l *caseLog) end(as string) {
	l.t.Helper()
	if as == "closed" {
		l.fifo.Close()
		return
	}
	raw, err := l.fifo.SyscallConn()
	if err != nil || as != "unread" {
		l.t.Fatalf("stderr is closed or unread, not %q: %v", as, err)
	}
	if err := raw.Control(func(fd uintptr) {
		for _, piece := range [][]byte{make([]byte, 4096), {0}} {
			for err = nil; err == nil; {
				_, err = syscall.Write(int(fd), piece)
			}
		}
	}); err != nil {
		l.t.Fatal(err)
	}
	if !errors.Is(err, syscall.EAGAIN) {
		l.t.Fatal(err)
	}
}

// puts puts the chains of a folder into the folder in, and waits for a refresh of each.
func (r *caseRun) puts(s caseStep) {
	r.t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, s.Put, "options", "*.json"))
	if err != nil || len(paths) == 0 {
		r.t.Fatalf("%s has no chains: %v", s.Put, err)
	}
	to := filepath.Join(r.dir, "in", "options")
	for _, path := range paths {
		feed := feedOf(strings.TrimSuffix(filepath.Base(path), ".json"))
		before := r.refreshes()[feed]
		must(r.t, errors.Join(os.MkdirAll(to, 0o700), os.Rename(path, filepath.Join(to, filepath.Base(path)))))
		r.p.until("a refresh of "+feed+" after "+s.Put, func() bool { return r.p.hasEnded() || r.refreshes()[feed] > before })
		if r.p.hasEnded() {
			r.t.Fatalf("put %s: the process has ended:\n%s", s.Put, r.p.logged())
		}
	}
}

// asks sends a request and checks its answer.
func (r *caseRun) asks(s caseStep) {
	r.t.Helper()
	if s.Method == "" {
		s.Method = http.MethodGet
	}
	if s.Status == 0 {
		s.Status = http.StatusOK
	}
	what := s.Method + " " + s.Get
	var resp *http.Response
	var body []byte
	var err error
	if s.Send != "" {
		what = strconv.Quote(s.Send)
		resp, body, err = r.p.dial(s.Send).receive(s.Method)
	} else {
		var headers []string
		for name, value := range s.Headers {
			headers = append(headers, name, strings.ReplaceAll(value, "$TAG", r.tag))
		}
		resp, body, err = fetch(s.Method, r.p.url+s.Get, headers...)
	}
	if err != nil {
		r.t.Errorf("%s: no answer: %v", what, err)
		return
	}
	if resp.StatusCode == http.StatusOK {
		r.tag = strings.Trim(resp.Header.Get("ETag"), `W/"`)
	}
	if resp.StatusCode != s.Status {
		r.t.Errorf("%s: status %d, want %d: %.200s", what, resp.StatusCode, s.Status, body)
		return
	}
	for _, c := range s.Want {
		found, err := c.places(resp.Header, body)
		if err != nil || !c.holds(r.t, found) {
			r.t.Errorf("%s: %s%s is %v, %v, want %s", what, c.At, c.Header, found, err, c)
		}
	}
}

// places returns what a check is about.
func (c caseCheck) places(header http.Header, body []byte) (found []any, err error) {
	if c.At == "" {
		for _, value := range header.Values(c.Header) {
			found = append(found, value)
		}
		return found, nil
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	return placesOf(answer, c.At)
}

// placesOf returns the values at a path: names with points between them, and after the name of a list [*] for all its elements
// or [name=value,name=value] for those with these values. Each part of null is null. It fails where the answer has nothing before the
// last name.
func placesOf(answer any, path string) ([]any, error) {
	found := []any{answer}
	for _, part := range regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`).FindAllString(path, -1) {
		var next []any
		for _, value := range found {
			switch value := value.(type) {
			case map[string]any:
				if inner, has := value[part]; has {
					next = append(next, inner)
				}
			case []any:
				for _, element := range value {
					if selects(part, element) {
						next = append(next, element)
					}
				}
			case nil:
				next = append(next, nil) // of what is unknown, each part is
			default:
				return nil, fmt.Errorf("%v has no part %s", value, part)
			}
		}
		if found = next; len(found) == 0 && !strings.HasSuffix(path, part) && !strings.HasPrefix(part, "[") {
			return nil, fmt.Errorf("the answer has no %s", part)
		}
	}
	return found, nil
}

// selects says whether [*] or [name=value,name=value] selects an element of a list.
func selects(part string, element any) bool {
	row, _ := element.(map[string]any)
	for condition := range strings.SplitSeq(strings.Trim(part, "[]"), ",") {
		if name, want, _ := strings.Cut(condition, "="); name != "*" && fmt.Sprint(row[name]) != want {
			return false
		}
	}
	return true
}

func (c caseCheck) String() string {
	text, _ := json.Marshal(c)
	return string(text)
}

// holds says whether each of the found values is as the check wants it.
func (c caseCheck) holds(t *testing.T, found []any) bool {
	t.Helper()
	if c.Absent {
		return len(found) == 0
	}
	for _, value := range found {
		if !c.likes(t, value) {
			return false
		}
	}
	return len(found) > 0
}

func (c caseCheck) likes(t *testing.T, value any) bool {
	t.Helper()
	if c.Matches != "" {
		return regexp.MustCompile(c.Matches).MatchString(fmt.Sprint(value))
	}
	var want any
	if err := json.Unmarshal(c.Is, &want); err != nil {
		t.Fatalf("a check says neither is, matches nor absent: %v", err)
	}
	number, isNumber := value.(float64)
	if wanted, ok := want.(float64); ok && isNumber {
		return math.Abs(number-wanted) <= c.Within
	}
	return reflect.DeepEqual(value, want)
}
