package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strikecache/snapshots"
)

var killSeed = flag.Uint64("kill-seed", 0, "seed of the choices of TestFaultKills, as an earlier run logged it; 0: a new one")

// storing lists the steps between the creation of a temporary file and the end of the directory's sync. The log names each
// step before it begins.
var storing = []string{"write", "sync", "rename", "sync_dir"}

// killer kills a process when its log says that a step begins, and remembers the last step in the log.
type killer struct {
	kill    func()
	partial []byte // the beginning of a line of the log

	mu    sync.Mutex
	step  string // to kill at; "": none
	of    string // file to kill at; "": any
	nth   int    // how many such steps to let pass before
	delay time.Duration
	last  string // step, and file; "stored" when no file is being written
	file  string
	spx   chan struct{} // closed when this process has published a chain
}

// Write implements [io.Writer]. It reads the log.
func (r *killer) Write(b []byte) (int, error) {
	r.partial = append(r.partial, b...)
	for {
		line, rest, whole := bytes.Cut(r.partial, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		r.partial = rest
		r.watch(string(line))
	}
}

// watch reads a line of the log.
func (r *killer) watch(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(line, "msg=refreshed job=spx") && !r.refreshed() {
		close(r.spx)
	}
	_, rest, ok := strings.Cut(line, "msg=storing step=")
	if !ok {
		if strings.Contains(line, "msg=stored file=") {
			r.last = "stored"
		}
		return
	}
	r.last, rest, _ = strings.Cut(rest, " ")
	_, r.file, _ = strings.Cut(rest, "file=")
	if r.last != r.step || r.of != "" && r.of != filepath.Base(r.file) {
		return
	}
	if r.nth--; r.nth < 0 {
		r.step = ""
		time.Sleep(r.delay)
		r.kill()
	}
}

// arm decides at which step to kill.
func (r *killer) arm(choices *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := []string{"create", "write", "sync", "rename", "sync_dir"} // most kills come one step later
	r.step, r.nth = steps[choices.IntN(len(steps))], choices.IntN(8)
	if choices.IntN(2) == 0 { // else at any file
		files := []string{"gex-spx", "gex-spx-intraday", "gex-spx-matrix", "volatility-spx", "spx-max-pain", "options-flow-unusual", "sectors-rotation"}
		r.of, r.nth = files[choices.IntN(len(files))], choices.IntN(2)
	}
	if choices.IntN(4) == 0 {
		r.delay = time.Duration(choices.Int64N(int64(time.Millisecond)))
	}
}

func (r *killer) refreshed() bool {
	select {
	case <-r.spx:
		return true
	default:
		return false
	}
}

// killing is the state of a run of kills over one data directory.
type killing struct {
	t       *testing.T
	rand    *rand.Rand
	dir     string
	start   time.Time // of the simulated market; zero: where it left off
	disk    map[string]storedAnswer
	newest  time.Time // when the newest stored answer was computed
	answers *answers

	kills   map[string]int // by the last step
	temps   int            // temporary files that the kills left
	removed int            // objects that kills left without a name
	idle    int            // kills in a row of processes that did not reach the step
}

// storedAnswer is what a file or an answer holds.
type storedAnswer struct {
	edition
	sum     string // of the whole file
	session string
	rows    []json.RawMessage // of a track
}

// TestFaultKills kills the real binary during refreshes and load, mostly while it writes a file, and starts it again on
// the same files. No stored or served answer is lost, no stored file is corrupt, no answer mixes two instants, and the
// newest date and the current answers can be computed again from their documents, and no object without a name stays.
func TestFaultKills(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*killSeed, rand.Uint64())
	t.Logf("repeat the choices with -args -kill-seed %d", seed)
	k := &killing{t: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), kills: map[string]int{}, answers: newAnswers()}
	p := serveReady(t, "--data-dir", k.dir, "--underlyings", "SPX,XLF") // the kills come in the middle of its back-fill
	p.kill()
	k.look()
	dates := datesOf(k.disk, "gex-spx")
	if len(dates) == 0 {
		t.Fatal("nothing is stored")
	}
	total := 3
	if full() {
		total = 200
	}
	for n := range total {
		k.cycle(n)
		if t.Failed() {
			t.Fatalf("at kill %d of %d", n+1, total)
		}
	}
	inside, steps := 0, ""
	for _, step := range slices.Sorted(maps.Keys(k.kills)) {
		steps += fmt.Sprintf(" %s %d", step, k.kills[step])
		if slices.Contains(storing, step) {
			inside += k.kills[step]
		}
	}
	ended := len(datesOf(k.disk, "gex-spx")) - 1 - slices.Index(datesOf(k.disk, "gex-spx"), dates[len(dates)-1])
	// Most kills come after the step that they wait for has ended.
	if full() && (inside*10 < total*3 || ended == 0) {
		t.Errorf("%d of %d kills fell between the creation of a temporary file and the directory's sync:%s; %d dates ended", inside, total, steps, ended)
	}
	figure(t, "%d kills survived, %d of them between creating a temporary file and the end of the directory's sync; by the last step begun:%s",
		total, inside, steps)
	figure(t, "%d temporary files and %d unnamed objects were left by the kills and removed, %d dates ended meanwhile, %d files on the disk, none bad, none lost",
		k.temps, k.removed, ended, len(k.disk))
	figure(t, "after each of the %d kills, the newest date was recomputed identically from its documents", total)
	figure(t, "%d answers checked; %d times the answers of the SPX feed were compared: none mixed, %d restored from files of two refreshes",
		k.answers.checked.Load(), k.answers.beside.Load(), k.answers.apart.Load())
}

// cycle starts the binary, loads it, kills it, and looks at what it left.
func (k *killing) cycle(n int) {
	args := []string{"serve", "--data-dir", k.dir, "--log-level", "debug", "--underlyings", "SPX,XLF",
		"--sim-speed", []string{"1000", "3000", "10000"}[k.rand.IntN(3)]}
	if !k.start.IsZero() {
		args = append(args, "--sim-start", k.start.Format(time.RFC3339))
	}
	var killed atomic.Bool
	cmd := command(k.t, args...)
	r := &killer{spx: make(chan struct{}), kill: func() {
		killed.Store(true)
		killGroup(cmd)
	}}
	unnamed := k.unnamed()
	cmd.Stderr = r
	p := launch(k.t, cmd)
	k.t.Cleanup(p.kill)
	k.answeredAtOnce(p.listens())
	for path, left := range unnamed { // the first refresh may bring the same document again
		if now, err := os.Stat(path); err == nil && now.ModTime().Equal(left.ModTime()) || err != nil && !os.IsNotExist(err) {
			k.t.Errorf("%s is named by no file, and the start did not remove it: %v", path, err)
		}
	}
	k.removed += len(unnamed)

	failed := make(chan error, 2)
	clients := load(k.t.Context(), 2, k.rand.Uint64(), func(client *http.Client, choices *rand.Rand) error {
		ask := func(target string) (envelope, error) {
			return k.answers.ask(client, "", p.url, target, pick(choices, codings))
		}
		_, err := ask(pick(choices, targets))
		if err == nil {
			err = k.answers.besides(ask, r)
		}
		if err != nil && (!killed.Load() || !errors.Is(err, errLost)) {
			k.t.Errorf("under load: %v\n%s", err, p.logged())
			failed <- err
		}
		return err
	})
	const patience = 4 * time.Second // wait for the step after a chain is published; at night there may be no chain
	armed, published, limit := n%5 < 4, r.spx, 5*patience
	if armed {
		r.arm(k.rand)
	} else { // kill at any time
		published, limit = nil, time.Duration(k.rand.Int64N(int64(2*time.Second)))
	}
	over := time.NewTimer(limit)
	for waiting := true; waiting; {
		select {
		case <-published:
			published = nil
			over.Reset(patience)
			continue
		case <-p.end:
			if !killed.Load() {
				k.t.Errorf("the process ended by itself: %v", p.err)
			}
		case <-failed:
		case <-over.C:
		}
		waiting = false
	}
	idle := armed && !killed.Load()
	r.kill()
	p.kill() // waits for its end
	clients.Wait()
	if log := p.logged(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "panic") {
		k.t.Errorf("the log has an error: %s", log)
	}
	k.look()
	for _, what := range []string{slices.Max(datesOf(k.disk, "gex-spx")), "current"} {
		if out, errs, code := run(k.t, command(k.t, "recompute", "--data-dir", k.dir, "--date", what)); code != 0 {
			k.t.Errorf("recompute %s: exit %d, %s%s", what, code, out, errs)
		}
	}
	k.account(r)
	k.resume(n, idle)
}

// resume decides where the market goes on: where it left off, or in the next session, as if the machine had been down.
// At night the server writes few files, and on a holiday none.
func (k *killing) resume(n int, idle bool) {
	k.start = time.Time{}
	if k.idle++; !idle {
		k.idle = 0
	}
	newest := k.newest.UTC()
	if hour := newest.Hour(); !idle && n%5 > 0 && (hour >= 15 && hour < 20 || k.rand.IntN(4) == 0) {
		return
	}
	k.start = newest.Truncate(24 * time.Hour).Add(15 * time.Hour) // 10:00 or 11:00 in New York
	for days := k.idle; days > 0 || !k.start.After(newest) || k.start.Weekday() == time.Saturday || k.start.Weekday() == time.Sunday; days-- {
		k.start = k.start.Add(24 * time.Hour)
	}
}

// account counts the step at which the process died. A file that was being written must be there, under its temporary name or its own.
func (k *killing) account(r *killer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := cmp.Or(r.last, "nothing stored")
	k.kills[last]++
	left := snapshots.Unfinished(filepath.Dir(r.file), filepath.Base(r.file)) // not those of gex-spx-matrix beside gex-spx
	k.temps += len(left)
	_, missing := os.Stat(r.file) // a server does not wait for its log: the file may have its name since the last line
	if (last == "write" || last == "sync") && len(left) == 0 && missing != nil || len(left) > 1 {
		k.t.Errorf("died at step %s of %s, with the temporary files %q", last, r.file, left)
	}
}

// answeredAtOnce asks for everything as soon as the process listens. The process must answer from its files, with nothing
// older than the stored answers.
func (k *killing) answeredAtOnce(p *process) {
	client := newClient()
	defer client.CloseIdleConnections()
	for _, target := range targets {
		if _, err := k.answers.ask(client, "", p.url, target, "zstd"); err != nil {
			k.t.Errorf("right after the start: %v", err)
		}
	}
	dates := datesOf(k.disk, "gex-spx")
	for range 3 {
		date := dates[k.rand.IntN(len(dates))]
		a, err := k.answers.ask(client, "", p.url, datePath+date, "zstd")
		if stored := k.disk[date+"/gex-spx"].edition; err != nil || a.Meta.before(stored) {
			k.t.Errorf("date %s after the start: %v, %v; stored was %v", date, err, a.Meta.edition, stored)
		}
	}
}

// expires matches the files that are kept for 30 days.
var expires = regexp.MustCompile(`-(levels|matrix|series)$|^underlyings$`)

// look reads the stored files, and compares them with the files before and with the answers of the process.
func (k *killing) look() {
	verified(k.t, k.dir)
	before := k.disk
	k.read()
	for name, was := range before {
		is, ok := k.disk[name]
		switch file := filepath.Base(name); {
		case !ok && expires.MatchString(file):
		case !ok:
			k.t.Errorf("%s is lost", name)
		case is.before(was.edition), is.sum != was.sum && !was.before(is.edition):
			k.t.Errorf("%s was %v and is %v", name, was, is)
		case filepath.Dir(name) == "current" && is.session != was.session: // a new track
		case !contains(is.rows, was.rows):
			k.t.Errorf("%s has lost rows: it had %s and has %s", name, was.rows, is.rows)
		}
	}
	if err := k.answers.stored(k.disk); err != nil {
		k.t.Error(err)
	}
}

// datesOf returns the dates that have a file, rising.
func datesOf(disk map[string]storedAnswer, name string) (dates []string) {
	for path := range disk {
		if dir, file := filepath.Split(path); file == name && dir != "current/" {
			dates = append(dates, filepath.Clean(dir))
		}
	}
	slices.Sort(dates)
	return dates
}

// read reads every stored answer, by date or "current", and file.
func (k *killing) read() {
	k.disk = map[string]storedAnswer{}
	for _, path := range k.files() {
		whole := text(k.t, path)
		_, rest, _ := strings.Cut(whole, "\n")
		second, _, _ := strings.Cut(rest, "\n")
		a, err := parseAnswer([]byte(second))
		if err != nil {
			k.t.Fatalf("%s: %v", path, err)
		}
		rows, err := rowsOf(a)
		if err != nil {
			k.t.Errorf("%s: %v", path, err)
		}
		dir, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		k.disk[dir+"/"+name] = storedAnswer{a.Meta.edition, sum([]byte(whole)), a.Meta.Session, rows}
		if a.Meta.Computed.After(k.newest) {
			k.newest = a.Meta.Computed
		}
	}
}

// files returns the paths of the stored answers.
func (k *killing) files() []string {
	files, err := filepath.Glob(filepath.Join(k.dir, "simulated", "[c2]*", "[^.]*")) // current/ and the dates
	must(k.t, err)
	return files
}

// unnamed returns the objects that no stored answer names, by their paths.
func (k *killing) unnamed() map[string]os.FileInfo {
	objects, err := filepath.Glob(filepath.Join(k.dir, "simulated", "objects", "*.gz"))
	must(k.t, err)
	var headers strings.Builder
	for _, path := range k.files() {
		header, _, _ := strings.Cut(text(k.t, path), "\n")
		headers.WriteString(header)
	}
	unnamed := map[string]os.FileInfo{}
	for _, path := range objects {
		if strings.Contains(headers.String(), strings.TrimSuffix(filepath.Base(path), ".gz")) {
			continue
		}
		if unnamed[path], err = os.Stat(path); err != nil {
			k.t.Fatal(err)
		}
	}
	return unnamed
}
