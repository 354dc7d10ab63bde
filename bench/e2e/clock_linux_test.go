package e2e

import (
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/simulated"
)

// wallShift is a file of package time in the binary of [shiftedBinary]: it adds the seconds in a file to the machine's clock. The
// monotonic clock stays.
const wallShift = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var wallShift = func() *int64 {
	path, _ := syscall.Getenv("WALL_SHIFT_FILE")
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		panic("WALL_SHIFT_FILE: " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("WALL_SHIFT_FILE: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func shifted() int64 { return atomic.LoadInt64(wallShift) }
`

// shiftedBinary builds the binary with a package time whose clock a test can set. Every package is compiled a second time.
var shiftedBinary = sync.OnceValues(func() (string, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	const reading = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reading) != 1 {
		return "", fmt.Errorf("time.Now of %s does not begin with %q", folder, reading)
	}
	files := map[string]string{"time.go": strings.Replace(string(source), reading, reading+"\tsec += shifted()\n", 1), "wallshift.go": wallShift}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, text := range files {
		path := filepath.Join(scratch, "overlay-"+name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(folder, name)] = path
	}
	text, err := json.Marshal(overlay)
	path := filepath.Join(scratch, "overlay.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return "", err
	}
	return build("strikecache-shifted", ".", "-overlay", path)
})

// noon is the right time when a clock trial begins. An hour before and after it, and at noon of the next day, a session is on.
var noon = time.Date(2026, 11, 18, 12, 0, 0, 0, compute.NewYork)

// clockTrial is a server whose clock the test sets, and an upstream whose clock is right.
type clockTrial struct {
	*process
	shift  *os.File      // of the server's clock
	right  time.Duration // the shift of a right clock
	chains atomic.Int64  // those for the chain
	wrong  time.Duration // by how much the server's clock is wrong
	latest time.Duration // the greatest of these at which an answer was computed
	steps  []time.Duration
}

const (
	tolerated = 10 * time.Minute // a document may be so far ahead of the clock
	fresh     = 15 * time.Minute // a clock may be so far ahead before the documents seem to be late
)

// newClockTrial starts the server with a clock that is wrong by some time, and waits until it refreshes.
func newClockTrial(t *testing.T, wrong time.Duration) *clockTrial {
	t.Helper()
	if !full() {
		t.Skip("compiles every package a second time: runs in make faults alone")
	}
	path, err := shiftedBinary()
	must(t, err)
	x := &clockTrial{right: time.Until(noon).Truncate(time.Second)}
	x.shift, err = os.Create(filepath.Join(t.TempDir(), "shift"))
	must(t, err)
	t.Cleanup(func() { x.shift.Close() })
	upstream := &fakeUpstream{market: simulated.New(simulated.Config{
		Seed: 7, Now: func() time.Time { return time.Now().Add(x.right) }, Calendar: compute.NewCalendar(nil, nil),
	})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == quotesBase+"/options/_SPX.json" {
			x.chains.Add(1)
		}
		upstream.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	x.set(t, wrong)
	cmd := command(t, "serve", "--source", "cboe", "--cboe-base-url", server.URL+quotesBase, "--cboe-requests-per-minute", "600",
		"--underlyings", "SPX", "--gex-every", "5s")
	cmd.Path = path
	cmd.Env = append(cmd.Env, "WALL_SHIFT_FILE="+x.shift.Name())
	x.process = serveWith(t, cmd)
	if wrong > -tolerated {
		x.ready()
		x.latest = wrong
	}
	x.until("the chain is refreshed", func() bool { return x.chains.Load() >= 3 })
	return x
}

// set makes the server's clock wrong by some time.
func (x *clockTrial) set(t testing.TB, wrong time.Duration) {
	t.Helper()
	x.wrong = wrong
	_, err := x.shift.WriteAt(endian.NativeEndian.AppendUint64(nil, uint64((x.right+wrong)/time.Second)), 0)
	must(t, err)
}

// step makes the server's clock wrong by another time. It waits until the log names the step, the chain is asked for by the new time, and
// the answer has the freshness of that time.
func (x *clockTrial) step(wrong time.Duration) {
	x.t.Helper()
	x.steps = append(x.steps, wrong-x.wrong)
	x.set(x.t, wrong)
	after := fmt.Sprintf(" after the steps %v", x.steps)
	x.until("the log names the step"+after, func() bool { return len(x.named()) >= len(x.steps) })
	before := x.chains.Load() // a request that was planned before the step may follow
	x.until("the chain is asked for"+after, func() bool { return x.chains.Load() >= before+2 })
	if wrong > -tolerated {
		state := map[bool]string{true: "fresh", false: "stale"}[wrong < fresh]
		x.until("gamma is "+state+" and computed by the new time"+after, func() bool {
			resp, body := x.get(gammaPath)
			if resp.StatusCode != http.StatusOK {
				return false
			}
			m := envelopeOf(x.t, body).Meta
			return m.Freshness.State == state && time.Until(m.Computed.Add(-x.right-wrong)).Abs() < tolerated
		})
		x.latest = max(x.latest, wrong)
		x.ready()
	}
	degraded := map[bool]string{true: "clock", false: ""}[wrong < x.latest-tolerated]
	x.until("degraded is ["+degraded+"]"+after, func() bool { return x.degraded() == degraded })
}

var stepLine = regexp.MustCompile(`machine clock was set.* by=(\S+)`)

// named returns the steps that the log names.
func (x *clockTrial) named() (steps []time.Duration) {
	for _, m := range stepLine.FindAllStringSubmatch(x.logged(), -1) {
		step, err := time.ParseDuration(m[1])
		must(x.t, err)
		steps = append(steps, step.Round(time.Second))
	}
	return steps
}

// finish stops the server. The log has named each step once.
func (x *clockTrial) finish() {
	x.t.Helper()
	if named := x.named(); !slices.Equal(named, x.steps) {
		x.t.Errorf("the log names the steps %v, want %v", named, x.steps)
	}
	x.stop()
	figure(x.t, "steps of the machine's clock %v: each was named in the log, and all jobs went on", x.steps)
}

// wrongClocks are by how much a clock may be wrong.
var wrongClocks = []time.Duration{time.Minute, -time.Minute, time.Hour, -time.Hour, 24 * time.Hour}

// The refreshes go on after each step of the machine's clock, there and back.
func TestFaultClockSteps(t *testing.T) {
	t.Parallel()
	x := newClockTrial(t, 0)
	for _, wrong := range wrongClocks {
		x.step(wrong)
		x.step(0)
	}
	x.step(time.Minute) // for good
	x.finish()
}

// The refreshes go on when the clock was wrong at the start and is put right.
func TestFaultClockAtTheStart(t *testing.T) {
	for _, wrong := range wrongClocks {
		t.Run(wrong.String(), func(t *testing.T) {
			t.Parallel()
			x := newClockTrial(t, wrong)
			x.step(0)
			x.finish()
		})
	}
}
