package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/snapshots"
)

var fleetSeed = flag.Uint64("fleet-seed", 0, "seed of the choices of the fault tests of a fleet, as an earlier run logged it; 0: a new one")

// trial is a run of faults in a fleet.
type trial struct {
	*fleet
	rand      *rand.Rand
	rounds    map[string]int // by fault
	takeovers []time.Duration
}

func newTrial(t testing.TB, f *fleet) *trial {
	t.Helper()
	seed := cmp.Or(*fleetSeed, rand.Uint64())
	t.Logf("repeat the choices with -args -fleet-seed %d", seed)
	return &trial{fleet: f, rand: rand.New(rand.NewPCG(seed, 0)), rounds: map[string]int{}}
}

// The faults.
const (
	killRefresher    = "kill the refresher"
	stopRefresher    = "stop the refresher"
	suspendRefresher = "suspend the refresher"
	cutRefresher     = "cut off the refresher"
	killFollower     = "kill a follower"
	emptyEdge        = "kill an edge and empty its directory"
	cutFollower      = "cut off a follower"
	resetFollower    = "break the connections of a follower"
	killServer       = "kill the NATS server"
	suspendServer    = "suspend the NATS server"
)

// faults returns n faults: each fault about equally often, in random order.
func (x *trial) faults(n int, of ...string) (faults []string) {
	for len(faults) < n {
		faults = append(faults, of...)
	}
	x.rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	return faults[:n]
}

// seconds waits for a random time, in seconds. A fault lasts so long.
func (x *trial) seconds(least, most int) {
	time.Sleep(time.Duration(1000*least+x.rand.IntN(1000*(most-least)+1)) * time.Millisecond)
}

// round injects a fault, repairs it, and waits until all members agree.
func (x *trial) round(fault string) {
	x.t.Helper()
	x.t.Logf("%s: %s", time.Now().UTC().Format(time.TimeOnly), fault)
	x.rounds[fault]++
	refresher := x.refreshes()
	followers := x.others(refresher)
	follower := followers[x.rand.IntN(len(followers))]
	edges := slices.DeleteFunc(slices.Clone(followers), func(m *member) bool { return !m.edge })
	switch fault {
	case killRefresher:
		x.takeover(refresher, refresher.kill)
		refresher.start()
	case stopRefresher:
		x.takeover(refresher, refresher.stop)
		refresher.start()
	case suspendRefresher:
		x.takeover(refresher, refresher.suspend)
		x.seconds(1, 6)
		refresher.resume()
	case cutRefresher:
		x.takeover(refresher, func() { refresher.cut(blackHole) })
		refresher.join()
	case killFollower:
		follower.kill()
		x.seconds(0, 5)
		follower.start()
	case emptyEdge:
		edge := edges[x.rand.IntN(len(edges))]
		edge.kill()
		edge.empty()
		edge.start()
		edge.completes()
	case cutFollower:
		follower.cut(blackHole)
		x.seconds(5, 15)
		follower.join()
	case resetFollower:
		follower.cut(reset)
		x.seconds(1, 6)
		follower.join()
	case killServer:
		x.nats.kill()
		x.seconds(1, 15) // the lease may end meanwhile
		x.nats.start(x.t)
	case suspendServer:
		x.nats.signal(syscall.SIGSTOP)
		x.seconds(1, 15)
		x.nats.signal(syscall.SIGCONT)
	}
	x.refreshes()
	x.agree()
}

// takeover lets the refresher fail, and waits until another member gives an answer that the next refresher computed.
func (x *trial) takeover(refresher *member, fail func()) {
	x.t.Helper()
	followers := x.others(refresher)
	witness := followers[x.rand.IntN(len(followers))]
	old, _ := refresher.lastLease()
	began := time.Now()
	fail()
	var before time.Time // the newest answer when the lease was taken
	x.until("another member takes over", func() bool {
		taken := slices.ContainsFunc(followers, func(m *member) bool { last, _ := m.lastLease(); return last.number > old.number })
		computed := witness.p.envelope(gammaPath).Meta.Computed
		if !taken {
			before = computed
		}
		return taken && computed.After(before)
	})
	took := time.Since(began)
	x.t.Logf("taken over after %v", took.Round(time.Millisecond))
	if x.takeovers = append(x.takeovers, took); took > 30*time.Second {
		x.t.Errorf("a take-over took %v", took)
	}
}

// finish ends a trial: nothing that a member gave is lost, all members have equal answers, and all files are good.
func (x *trial) finish(dates map[string]bool) {
	x.t.Helper()
	figure(x.t, "%d members, rounds: %v", len(x.members), x.rounds)
	if len(x.takeovers) > 0 {
		figure(x.t, "%d take-overs: from the fault to the first answer of the next refresher, longest %v", len(x.takeovers), slices.Max(x.takeovers))
	}
	x.agree()
	if err := x.troubles(allowed...); err != nil {
		x.t.Error(err)
	}
	kept := 0
	for _, m := range x.members {
		n, err := x.ledger.lostRows(m)
		if kept = n; err != nil {
			x.t.Error(err)
		}
	}
	var past []string
	for date := range dates {
		past = append(past, datePath+date)
	}
	slices.Sort(past)
	past = past[:max(0, len(past)-1)] // the answer of the newest date changes
	for _, m := range x.members {
		for _, target := range past { // an edge that was emptied in the last round gets them after the current answers
			x.until(m.name+" has "+target, func() bool { return m.p.answers(target, http.StatusOK) })
		}
	}
	x.identical(past)
	if err := x.ledger.judge(); err != nil {
		x.t.Error(err)
	}
	figure(x.t, "%d answers checked, %d different ones, every one sealed by a refresher; %d track rows and %d dates kept",
		x.ledger.given, len(x.ledger.tags), kept, len(dates))
	x.equalFiles()
	for _, m := range x.members {
		verified(x.t, m.dir)
	}
}

// allowed has texts of lines in the log that a fault explains: a refresher that fails may have stored answers that it did not
// put, and an object of a suspended refresher may arrive after another member has taken the lease.
var allowed = []string{"reason=older", "reason=lease"}

// equalFiles ends the refresher, and waits until every edge has its files.
func (x *trial) equalFiles() {
	x.t.Helper()
	refresher := x.refreshes()
	for _, m := range x.others(refresher) {
		if !m.edge {
			m.stop()
		}
	}
	refresher.stop()
	want := filesOf(x.t, filepath.Join(refresher.dir, x.source))
	for _, m := range x.members {
		if !m.edge {
			continue
		}
		differs := ""
		until(x.t, m.name+" has the files of the refresher", func() bool {
			got := filesOf(x.t, filepath.Join(m.dir, x.source))
			differs = ""
			for name, digest := range want {
				if got[name] != digest {
					differs += name + " "
				}
			}
			return differs == ""
		}, func() string { return differs }, x.logs)
		m.stop()
	}
}

// filesOf returns the digests of the dated files of a directory.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	dates, err := filepath.Glob(filepath.Join(dir, "????-??-??"))
	for _, date := range dates {
		err = cmp.Or(err, filepath.WalkDir(date, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
				return nil // gone meanwhile, or not stored yet
			}
			if b, err := os.ReadFile(path); err == nil {
				files[strings.TrimPrefix(path, dir)] = sum(b)
			}
			return nil
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The faults of a fleet of a simulated market, under load. A market of 12 seconds a second has new answers every 5 seconds.
func TestFaultFleet(t *testing.T) {
	if !full() {
		t.Skip("depends on leases that run in real time: runs in make faults alone")
	}
	t.Parallel()
	f := newFleet(t, "simulated", "--sim-speed", "12", "--gex-every", "60s", "--flow-symbols", "XLF")
	x := newTrial(t, f)
	const candidates, edges = 3, 8
	faults := x.faults(50, killRefresher, stopRefresher, suspendRefresher, cutRefresher, killFollower, emptyEdge, cutFollower, resetFollower, killServer, suspendServer)
	f.add(false, storedDay(t)).start()
	f.refreshes()
	for range candidates - 1 {
		f.add(false, filepath.Join(t.TempDir(), "data")).start()
	}
	for range edges {
		f.add(true, filepath.Join(t.TempDir(), "data")).start()
	}
	for _, m := range f.members {
		m.completes()
	}
	dates := map[string]bool{}
	for _, date := range f.members[0].dates() {
		dates[date] = true
	}
	stop := f.load(3, x.rand.Uint64())
	defer stop()
	for _, fault := range faults {
		x.round(fault)
		if t.Failed() {
			t.Fatalf("after %v\n%s", x.rounds, f.logs())
		}
	}
	stop()
	x.finish(dates)
}

// upstreamRequest is a request for a document.
type upstreamRequest struct {
	member int
	at     time.Time
}

// askedUpstream is an upstream on loopback that knows which member of a fleet asks: each has a path of its own. Its market is
// in an earlier session, and a minute later after each request for the SPX chain. It gives quotes
// to the first member alone, so that the others ask again and again, also outside of a session, and at last to nobody: a member
// that is cut off keeps an answer that is newer than those of the others, and they could not make one.
type askedUpstream struct {
	documents *fakeUpstream
	url       string

	mu     sync.Mutex
	now    time.Time
	asked  []upstreamRequest
	quotes int // how many members get quotes
}

func startAskedUpstream(t *testing.T) *askedUpstream {
	t.Helper()
	calendar := compute.NewCalendar(nil, nil)
	u := &askedUpstream{documents: startUpstream(t), quotes: 1}
	u.now = calendar.Previous(calendar.SessionDate(time.Now())).At(11, 0, 0, compute.NewYork)
	u.documents.market = simulated.New(simulated.Config{Seed: 7, Calendar: calendar, Now: func() time.Time {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.now
	}})
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.url = server.URL
	return u
}

// ServeHTTP implements [http.Handler].
func (u *askedUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var member int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d/", &member); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.URL.Path = strings.TrimPrefix(r.URL.Path, fmt.Sprintf("/%d", member))
	u.mu.Lock()
	u.asked = append(u.asked, upstreamRequest{member, time.Now()})
	if strings.HasSuffix(r.URL.Path, "/options/_SPX.json") {
		u.now = u.now.Add(time.Minute)
	}
	refuse := strings.HasPrefix(r.URL.Path, quotesBase+"/quotes/") && member >= u.quotes
	u.mu.Unlock()
	if refuse {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	u.documents.ServeHTTP(w, r)
}

// giveQuotesTo gives quotes to the first n members alone.
func (u *askedUpstream) giveQuotesTo(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.quotes = n
}

// argsFor returns the arguments of a member that asks this upstream.
func (u *askedUpstream) argsFor(member int) []string {
	return []string{"--cboe-base-url", fmt.Sprintf("%s/%d", u.url, member) + quotesBase}
}

// oneAsker checks that at any time one member alone asked: after another member has asked, a member must have taken the lease
// again before it asks. It returns the number of requests, and of the turns in which members asked.
func (u *askedUpstream) oneAsker(t testing.TB, members []*member) (requests, turns int) {
	t.Helper()
	u.mu.Lock()
	all := slices.Clone(u.asked)
	u.mu.Unlock()
	last := map[int]time.Time{} // when a member asked last
	for i, a := range all {
		if i == 0 || all[i-1].member != a.member {
			turns++
			m := members[a.member]
			m.mu.Lock()
			if !slices.ContainsFunc(m.leases, func(l lease) bool { return l.at.After(last[a.member]) && !l.at.After(a.at) }) {
				t.Errorf("%s asked at %v without a lease, its leases: %v", m.name, a.at, m.leases)
			}
			m.mu.Unlock()
		}
		last[a.member] = a.at
	}
	return len(all), turns
}

// One member alone asks the upstream, whatever happens to it, to NATS or to the connection. The next refresher goes on from
// the same files.
func TestFaultFleetAsksOnce(t *testing.T) {
	if !full() {
		t.Skip("depends on leases that run in real time: runs in make faults alone")
	}
	t.Parallel()
	u := startAskedUpstream(t)
	f := newFleet(t, "cboe", "--cboe-requests-per-minute", "6000", "--gex-every", "5s", "--flow-symbols", "XLF")
	x := newTrial(t, f)
	faults := x.faults(30, killRefresher, stopRefresher, suspendRefresher, cutRefresher, killServer, suspendServer)
	dir := filepath.Join(t.TempDir(), "data")
	storeDates(t, dir, "cboe", 20)
	for i := range 3 {
		f.add(false, dir, u.argsFor(i)...).start()
		f.refreshes()
		dir = filepath.Join(t.TempDir(), "data")
	}
	for range 2 {
		f.add(true, filepath.Join(t.TempDir(), "data")).start()
	}
	for _, m := range f.members {
		m.completes()
	}
	u.giveQuotesTo(0)
	dates := map[string]bool{}
	for _, date := range f.members[0].dates() {
		dates[date] = true
	}
	stop := f.load(2, x.rand.Uint64())
	defer stop()
	defer func() {
		requests, turns := u.oneAsker(t, f.members[:3])
		figure(t, "%d requests to the upstream in %d turns of three members, one at a time", requests, turns)
	}()
	for _, fault := range faults {
		x.round(fault)
		if t.Failed() {
			t.Fatalf("after %v\n%s", x.rounds, f.logs())
		}
	}
	stop()
	x.finish(dates)
}

// storeDates stores a gamma answer under each of n dates of January 2015.
func storeDates(t *testing.T, dir, source string, n int) {
	t.Helper()
	store, err := snapshots.Open(snapshots.Options{Dir: dir, Source: source, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at := time.Date(2015, 1, 1+i, 21, 0, 0, 0, time.UTC)
		s, err := snapshots.Seal([]byte(`{"spot":2000}`), snapshots.Meta{
			Endpoint: "gex/spx", Source: source, AsOf: at, ComputedAt: at, SessionDate: at.Format(time.DateOnly), Quality: []byte("{}"),
			Freshness: snapshots.Freshness{State: "closed", Since: at}, Receipt: snapshots.Receipt{Method: "gex/1", Inputs: []snapshots.Input{}},
		})
		if err == nil {
			err = store.Save([]snapshots.File{{Product: "gex/spx", Edition: &snapshots.Edition{Default: s}, Dated: true}}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// leader returns the server of a cluster that leads the stream of the files.
func (f *fleet) leader(js nats.JetStreamContext) (leader *natsServer) {
	f.t.Helper()
	f.until("the stream of the files has a leader", func() bool {
		info, err := js.StreamInfo("strikecache-" + f.source)
		if err != nil || info.Cluster == nil {
			return false
		}
		i := slices.IndexFunc(f.cluster, func(n *natsServer) bool { return slices.Contains(n.args, info.Cluster.Leader) })
		if i >= 0 {
			leader = f.cluster[i]
		}
		return i >= 0
	})
	return leader
}

// A cluster of three NATS servers loses one, which leads the stream of the files. The members go on.
func TestFaultFleetCluster(t *testing.T) {
	if !full() {
		t.Skip("depends on leases that run in real time: runs in make faults alone")
	}
	t.Parallel()
	var routes []string
	for range 3 {
		routes = append(routes, "nats://"+freeAddress(t))
	}
	f := &fleet{t: t, source: "simulated", ledger: newLedger(), args: []string{
		"--source", "simulated", "--log-level", "debug",
		"--sim-speed", "12", "--gex-every", "60s", "--flow-symbols", "XLF",
	}}
	for i := range routes {
		f.cluster = append(f.cluster, startNATS(t, "-n", fmt.Sprintf("n%d", i), "-cluster_name", "test", "-cluster", routes[i], "-routes", strings.Join(routes, ",")))
	}
	js, err := f.ledger.tap(t, f.source, f.cluster[0].url, f.cluster[1].url, f.cluster[2].url).JetStream()
	if err != nil {
		t.Fatal(err)
	}
	x := newTrial(t, f)
	f.add(false, storedDay(t)).start()
	f.refreshes()
	f.add(false, filepath.Join(t.TempDir(), "data")).start()
	for range 2 {
		f.add(true, filepath.Join(t.TempDir(), "data")).start()
	}
	for _, m := range f.members {
		m.completes()
	}
	stop := f.load(2, x.rand.Uint64())
	defer stop()
	gap := time.Duration(0)
	for range count(10) {
		n := f.leader(js)
		before := f.members[3].p.envelope(gammaPath).Meta.Computed
		began := time.Now()
		n.kill()
		f.until("new answers reach an edge with two of three servers", func() bool { return f.members[3].p.envelope(gammaPath).Meta.Computed.After(before) })
		gap = max(gap, time.Since(began))
		f.agree()
		n.start(t)
		f.leader(js)
		f.agree()
		x.rounds["kill the leading server"]++
	}
	stop()
	figure(t, "three clustered NATS servers, the leading one killed %d times: at most %v without a new answer at an edge", count(10), gap.Round(time.Millisecond))
	x.finish(nil)
}
