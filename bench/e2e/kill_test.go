package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var killSeed = flag.Uint64("kill-seed", 0, "choices of TestFaultKills, as an earlier run logged them; 0 draws new ones")

// storing are the steps between the creation of a temporary file and the end of the directory's sync, as the log names
// them before each.
var storing = []string{"write", "sync", "rename", "syncdir"}

// killer kills a process when its log says that it is about to take a step, and remembers the last step it said.
type killer struct {
	kill func()

	mu    sync.Mutex
	step  string // to kill at; "": none
	of    string // file to kill at; "": any
	nth   int    // how many such steps to let pass
	delay time.Duration
	last  string // step, and file; "stored" when no file is being written
	file  string
	spx   chan struct{} // closed when this process has published a chain
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
	steps := []string{"create", "write", "sync", "rename", "syncdir"} // most kills come a step later
	r.step, r.nth = steps[choices.IntN(len(steps))], choices.IntN(8)
	if choices.IntN(2) == 0 { // else in the middle of the states of chains, as they are most
		files := []string{"gex-spx", "spx-max-pain", "options-flow-unusual", "sectors-rotation"}
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
	start   time.Time // of the simulated market, zero: where it left off
	disk    map[string]edition
	arrived time.Time // of the newest stored chain
	answers answers

	kills map[string]int // by the last step
	temps int            // temporary files that the kills left
	idle  int            // kills in a row of a process that did not come to the step
}

// TestFaultKills kills the real binary under refresh and load, mostly while it writes a file, and starts it again on
// the same files. Nothing that was ever stored or answered is lost, nothing stored is corrupt, and no answer mixes two
// instants.
func TestFaultKills(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat the choices with -args -kill-seed %d", seed)
	k := &killing{t: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), kills: map[string]int{}}
	k.answers.instants = map[string]string{}
	p := serve(t, "--data-dir", k.dir, "--flow-symbols", "SPY,XLF") // the kills come in the middle of its back-fill
	p.ready()
	p.kill()
	k.look()
	dates := k.dates()
	if len(dates) == 0 {
		t.Fatal("nothing is stored")
	}
	first := dates[len(dates)-1]
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
	inside := 0
	for _, step := range storing {
		inside += k.kills[step]
	}
	steps := ""
	for _, step := range slices.Sorted(maps.Keys(k.kills)) {
		steps += fmt.Sprintf(" %s %d", step, k.kills[step])
	}
	if inside*10 < total*3 && full() { // most kills come after the step that they wait for has ended
		t.Errorf("%d of %d kills fell between the creation of a temporary file and the directory's sync:%s", inside, total, steps)
	}
	ended := func() (n int) {
		for _, date := range k.dates() {
			if date > first {
				n++ // the one before it
			}
		}
		return n
	}
	if ended() == 0 && full() {
		k.another(first)
	}
	figure(t, "%d kills survived, %d of them between creating a temporary file and the end of the directory's sync; by the last step begun:%s",
		total, inside, steps)
	figure(t, "%d temporary files left by the kills and swept, %d dates ended meanwhile, %d files on the disk, none bad, none lost",
		k.temps, ended(), len(k.disk))
	figure(t, "%d answers checked, %d of them beside the others of their feed; none mixed, %d restored from files of two refreshes",
		k.answers.checked.Load(), k.answers.beside.Load(), k.answers.apart.Load())
}

// cycle starts the binary, loads it, kills it, and looks at what it left.
func (k *killing) cycle(n int) {
	args := []string{"serve", "--data-dir", k.dir, "--log-level", "debug", "--snapshot-max-age", "48h", "--flow-symbols", "SPY,XLF",
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
	p := serveWatched(k.t, cmd, r.watch)
	k.answeredAtOnce(p)

	failed := make(chan error, 4)
	var load sync.WaitGroup
	for range 2 {
		choices := rand.New(rand.NewPCG(k.rand.Uint64(), 0))
		load.Go(func() {
			if err := k.answers.poll(p.url, choices, r); !killed.Load() || !errors.Is(err, errLost) {
				failed <- fmt.Errorf("under load: %w", err)
			}
		})
	}
	const patience = 4 * time.Second // for the step to come, once there is a chain; at night there may be none
	armed, published, limit := n%5 < 4, r.spx, 5*patience
	if armed {
		r.arm(k.rand)
	} else { // at any time
		published, limit = nil, time.Duration(k.rand.Int64N(int64(2*time.Second)))
	}
	over := time.NewTimer(limit)
	for waiting := true; waiting; {
		select {
		case <-published:
			published = nil
			over.Reset(patience)
			continue
		case err := <-p.end:
			p.end <- err
			if !killed.Load() {
				k.t.Errorf("it ended by itself: %v", err)
			}
		case err := <-failed:
			failed <- err
		case <-over.C:
		}
		waiting = false
	}
	idle := armed && !killed.Load()
	r.kill()
	p.kill() // waits for its end
	load.Wait()
	close(failed)
	for err := range failed {
		k.t.Error(err)
	}
	if log := p.logged(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "panic") {
		k.t.Errorf("its log has an error: %s", log)
	}
	k.look()
	k.account(r)
	k.resume(n, idle)
}

// another starts the binary in a later session and kills it when a date after another is stored.
func (k *killing) another(date string) {
	k.resume(0, false)
	p := serve(k.t, "--data-dir", k.dir, "--flow-symbols", "SPY,XLF", "--sim-speed", "3000", "--sim-start", k.start.Format(time.RFC3339))
	p.until("a later date is stored", func() bool {
		files, _ := filepath.Glob(filepath.Join(k.dir, "simulated", "????-??-??", "gex-spx"))
		return slices.ContainsFunc(files, func(file string) bool { return filepath.Base(filepath.Dir(file)) > date })
	})
	p.kill()
	k.look()
}

// resume decides where the market goes on: where it left off, or in the next session, as if the machine had been down
// meanwhile, because at night little is written, and nothing on a holiday.
func (k *killing) resume(n int, idle bool) {
	k.start = time.Time{}
	if k.idle++; !idle {
		k.idle = 0
	}
	newest := k.newest()
	if hour := newest.UTC().Hour(); !idle && n%5 > 0 && (hour >= 15 && hour < 20 || k.rand.IntN(4) == 0) {
		return
	}
	k.start = newest.UTC().Truncate(24 * time.Hour).Add(15 * time.Hour) // 10:00 or 11:00 in New York
	for days := k.idle; days > 0 || !k.start.After(newest) || k.start.Weekday() == time.Saturday || k.start.Weekday() == time.Sunday; days-- {
		k.start = k.start.Add(24 * time.Hour)
	}
}

// account notes where the process died. While a temporary file was being filled it must still lie there.
func (k *killing) account(r *killer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := cmp.Or(r.last, "nothing stored")
	k.kills[last]++
	pattern := filepath.Join(filepath.Dir(r.file), ".tmp-"+filepath.Base(r.file)+"-*")
	left, err := filepath.Glob(pattern)
	k.temps += len(left)
	if (last == "write" || last == "sync") && len(left) == 0 || len(left) > 1 || err != nil {
		k.t.Errorf("died at step %s of %s, and %q lie there, %v", last, r.file, left, err)
	}
}

// answeredAtOnce asks for everything as soon as the process listens: it answers, from its files, and nothing older than
// what was stored.
func (k *killing) answeredAtOnce(p *process) {
	c := newAsker(p.url)
	defer c.close()
	for _, target := range targets {
		if _, err := k.answers.ask(c, target); err != nil {
			k.t.Errorf("right after the start: %v", err)
		}
	}
	dates := k.dates()
	for range 3 {
		date := dates[k.rand.IntN(len(dates))]
		a, err := k.answers.ask(c, datePath+date)
		if stored := k.disk[date+"/gex-spx"]; err != nil || a.before(stored) {
			k.t.Errorf("date %s after the start: %v, %v; stored was %v", date, err, a.edition, stored)
		}
	}
}

// look reads what lies on the disk, and compares it with what lay there before and with what was answered.
func (k *killing) look() {
	verified(k.t, k.dir)
	now, arrived, err := editions(filepath.Join(k.dir, "simulated"))
	if err != nil {
		k.t.Fatal(err)
	}
	for name, before := range k.disk {
		after, ok := now[name]
		switch _, file := filepath.Split(name); {
		case !ok && (file == "spx-max-pain" || file == "options-flow-unusual"): // these expire
		case !ok:
			k.t.Errorf("%s is lost", name)
		case after.before(before), after.sum != before.sum && !before.before(after):
			k.t.Errorf("%s was %v and is %v", name, before, after)
		}
	}
	k.disk, k.arrived = now, arrived
	if err := k.answers.stored(now); err != nil {
		k.t.Error(err)
	}
}

// dates returns those that have a gamma answer.
func (k *killing) dates() (dates []string) {
	for name := range k.disk {
		if date, file := filepath.Split(name); file == "gex-spx" {
			dates = append(dates, filepath.Clean(date))
		}
	}
	slices.Sort(dates)
	return dates
}

// newest returns when the newest stored answer was computed or its chain arrived.
func (k *killing) newest() (at time.Time) {
	for _, e := range k.disk {
		if e.Computed.After(at) {
			at = e.Computed
		}
	}
	if k.arrived.After(at) {
		at = k.arrived
	}
	return at
}

// editions reads every stored answer, by date and file, and when the newest stored chain arrived.
func editions(dir string) (out map[string]edition, arrived time.Time, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "????-??-??", "[^.]*"))
	if err != nil {
		return nil, arrived, err
	}
	out = map[string]edition{}
	for _, path := range files {
		base := filepath.Base(path)
		if strings.HasPrefix(base, "state-") && !strings.HasPrefix(base, "state-chain-") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, arrived, err
		}
		lines := strings.SplitN(string(b), "\n", 3)
		if len(lines) < 2 {
			return nil, arrived, errors.New(path + " has no second line")
		}
		if strings.HasPrefix(base, "state-") {
			var chain struct{ Source struct{ Arrived time.Time } }
			if err := json.Unmarshal([]byte(lines[1]), &chain); err != nil {
				return nil, arrived, fmt.Errorf("%s: %w", path, err)
			}
			if chain.Source.Arrived.After(arrived) {
				arrived = chain.Source.Arrived
			}
			continue
		}
		a, err := parseAnswer([]byte(lines[1]))
		if err != nil {
			return nil, arrived, fmt.Errorf("%s: %w", path, err)
		}
		a.sum = sum(b)
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return nil, arrived, err
		}
		out[filepath.ToSlash(name)] = a.edition
	}
	return out, arrived, nil
}
