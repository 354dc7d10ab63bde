package e2e

import (
	"cmp"
	"context"
	"errors"
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

func newTrial(t testing.TB, source string, args ...string) *trial {
	t.Helper()
	if !full() {
		t.Skip("depends on leases that run in real time: runs in make faults alone")
	}
	seed := cmp.Or(*fleetSeed, rand.Uint64())
	t.Logf("repeat the choices with -args -fleet-seed %d", seed)
	return &trial{fleet: newFleet(t, nil, source, args...), rand: rand.New(rand.NewPCG(seed, 0)), rounds: map[string]int{}}
}

// seconds waits for a random time. A fault lasts so long.
func (x *trial) seconds(least, most int) {
	time.Sleep(time.Duration(1000*least+x.rand.IntN(1000*(most-least)+1)) * time.Millisecond)
}

// fault is injected into the refresher, another member, or the NATS server, and is repaired.
type fault struct {
	name   string
	inject func(x *trial, refresher, follower *member)
}

// refresherFaults are the faults after which another member may take over.
var refresherFaults = []fault{
	{"kill the refresher", func(x *trial, refresher, _ *member) {
		x.takeover(refresher, refresher.kill)
		refresher.start()
	}},
	{"stop the refresher", func(x *trial, refresher, _ *member) {
		x.takeover(refresher, refresher.stop)
		refresher.start()
	}},
	{"suspend the refresher", func(x *trial, refresher, _ *member) {
		x.takeover(refresher, refresher.suspend)
		x.seconds(1, 6)
		refresher.resume()
	}},
	{"cut off the refresher", func(x *trial, refresher, _ *member) {
		x.takeover(refresher, func() { refresher.cut(blackHole) })
		refresher.join()
	}},
	{"kill the NATS server", func(x *trial, _, _ *member) {
		x.nats[0].kill()
		x.seconds(1, 15) // the lease may end meanwhile
		x.nats[0].start(x.t)
	}},
	{"suspend the NATS server", func(x *trial, _, _ *member) {
		x.nats[0].signal(syscall.SIGSTOP)
		x.seconds(1, 15)
		x.nats[0].signal(syscall.SIGCONT)
	}},
}

var followerFaults = []fault{
	{"kill a follower", func(x *trial, _, follower *member) {
		follower.kill()
		x.seconds(0, 5)
		follower.start()
	}},
	{"kill an edge and empty its directory", func(x *trial, _, _ *member) {
		edges := slices.DeleteFunc(slices.Clone(x.members), func(m *member) bool { return !m.edge })
		edge := pick(x.rand, edges)
		edge.kill()
		edge.empty()
		edge.start()
		edge.completes()
	}},
	{"cut off a follower", func(x *trial, _, follower *member) {
		follower.cut(blackHole)
		x.seconds(5, 15)
		follower.join()
	}},
	{"break the connections of a follower", func(x *trial, _, follower *member) {
		follower.cut(reset)
		x.seconds(1, 6)
		follower.join()
	}},
}

// run starts clients, and injects n faults: each about equally often, in random order. After each, all members agree again.
func (x *trial) run(clients, n int, of ...fault) {
	x.t.Helper()
	for _, m := range x.members {
		m.completes()
	}
	dates := x.members[0].p().sessions()
	x.haveDates(dates) // what the first refresher has not published, the next one does not have
	ctx, cancel := context.WithCancel(x.t.Context())
	asking := load(ctx, clients, x.rand.Uint64(), func(client *http.Client, choices *rand.Rand) error {
		m := pick(choices, x.members)
		err := m.ask(client, pick(choices, targets), pick(choices, codings))
		if err != nil {
			x.t.Errorf("%s: %v", m.name, err)
		}
		return err
	})
	stop := func() {
		cancel()
		asking.Wait()
	}
	defer stop()
	faults := slices.Repeat(of, n/len(of)+1)
	x.rand.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
	for _, fault := range faults[:n] {
		x.t.Logf("%s: %s", time.Now().UTC().Format(time.TimeOnly), fault.name)
		x.rounds[fault.name]++
		refresher := x.refreshes()
		fault.inject(x, refresher, pick(x.rand, x.others(refresher)))
		x.refreshes()
		x.agree()
		if x.t.Failed() {
			x.t.Fatalf("after %v\n%s", x.rounds, x.logs())
		}
	}
	stop()
	x.finish(dates)
}

// takeover lets the refresher fail, and waits until another member gives an answer that the next refresher computed.
func (x *trial) takeover(refresher *member, fail func()) {
	x.t.Helper()
	followers := x.others(refresher)
	witness := pick(x.rand, followers)
	old, began := refresher.lastLease(), time.Now()
	fail()
	var before time.Time // the newest answer when the lease was taken
	x.until("another member takes over", func() bool {
		taken := slices.ContainsFunc(followers, func(m *member) bool { return m.lastLease() > old })
		computed := witness.p().envelope(gammaPath).Meta.Computed
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

// finish ends a trial: all members have equal answers, of the stored dates too, and all files are good.
func (x *trial) finish(dates []string) {
	x.t.Helper()
	figure(x.t, "%d members, rounds: %v", len(x.members), x.rounds)
	if len(x.takeovers) > 0 {
		figure(x.t, "%d take-overs: from the fault to the first answer of the next refresher, longest %v", len(x.takeovers), slices.Max(x.takeovers))
	}
	x.agree()
	// A refresher that fails may have stored answers that it did not put, and an object of a suspended refresher may arrive after
	// another member has taken the lease.
	x.faultless("reason=older")
	x.haveDates(dates)
	var past []string
	for _, date := range dates[:max(0, len(dates)-1)] { // the answer of the newest date changes
		past = append(past, datePath+date)
	}
	x.identical(past)
	figure(x.t, "%d answers checked, %d different ones, none older than the one before and no track with a row less; %d dates kept",
		x.answers.checked.Load(), len(x.answers.bodies), len(dates))
	x.equalFiles()
	for _, m := range x.members {
		m.stop()
		verified(x.t, m.dir)
	}
}

// haveDates waits until every member has the answers of these dates. It gets them after the current answers.
func (x *trial) haveDates(dates []string) {
	x.t.Helper()
	for _, m := range x.members {
		for _, date := range dates {
			x.until(m.name+" has "+date, func() bool { return m.p().answers(datePath+date, http.StatusOK) })
		}
	}
}

// equalFiles waits until every edge has the dated files of the refresher.
func (x *trial) equalFiles() {
	x.t.Helper()
	refresher := x.refreshes()
	for _, m := range x.members {
		if !m.edge {
			continue
		}
		differs := ""
		x.until(m.name+" has the files of the refresher", func() bool {
			got := datedFiles(x.t, filepath.Join(m.dir, x.source))
			differs = ""
			for name, digest := range datedFiles(x.t, filepath.Join(refresher.dir, x.source)) {
				if got[name] != digest {
					differs += name + " "
				}
			}
			return differs == ""
		}, func() string { return differs })
	}
}

// datedFiles returns the digests of the dated files of a directory.
func datedFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	paths, err := fs.Glob(os.DirFS(dir), "????-??-??/[^.]*")
	must(t, err)
	files := map[string]string{}
	for _, path := range paths {
		if b, err := os.ReadFile(filepath.Join(dir, path)); err == nil { // else it is gone meanwhile
			files[path] = sum(b)
		}
	}
	return files
}

// runningMarket has the arguments of a simulated market of 12 seconds a second, with new answers every 5 seconds.
var runningMarket = []string{"--sim-speed", "12", "--gex-every", "60s"}

// The faults of a fleet of a simulated market, under load.
func TestFaultFleet(t *testing.T) {
	t.Parallel()
	x := newTrial(t, "simulated", runningMarket...)
	x.nats = []*natsServer{startNATS(t)}
	x.add(false, storedDay(t)).start()
	x.refreshes()
	for i := range 10 {
		x.addEmpty(i >= 2) // two candidates and eight edges
	}
	x.run(3, 50, append(followerFaults, refresherFaults...)...)
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
	u.documents.market = simulated.New(simulated.Config{Seed: 7, Every: 5, Calendar: calendar, Now: func() time.Time {
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
			if leases := m.leases(); !slices.ContainsFunc(leases, func(l lease) bool { return l.at.After(last[a.member]) && !l.at.After(a.at) }) {
				t.Errorf("%s asked at %v without a lease, its leases: %v", m.name, a.at, leases)
			}
		}
		last[a.member] = a.at
	}
	return len(all), turns
}

// One member alone asks the upstream, whatever happens to it, to NATS or to the connection. The next refresher goes on from
// the same files.
func TestFaultFleetAsksOnce(t *testing.T) {
	t.Parallel()
	x := newTrial(t, "cboe", "--cboe-requests-per-minute", "6000", "--gex-every", "5s")
	x.nats = []*natsServer{startNATS(t)}
	u := startAskedUpstream(t)
	for i := range 3 {
		dir := filepath.Join(t.TempDir(), "data")
		if i == 0 {
			storeDate(t, dir, "cboe") // the chain is too late to be one of the history
		}
		x.add(false, dir, "--cboe-base-url", fmt.Sprintf("%s/%d", u.url, i)+quotesBase).start()
		x.refreshes()
	}
	for range 2 {
		x.addEmpty(true)
	}
	for _, m := range x.members {
		m.completes()
	}
	u.mu.Lock()
	u.quotes = 0
	u.mu.Unlock()
	defer func() {
		requests, turns := u.oneAsker(t, x.members[:3])
		figure(t, "%d requests to the upstream in %d turns of three members, one at a time", requests, turns)
	}()
	x.run(2, 30, refresherFaults...)
}

// storeDate stores answers of gamma and of volatility under a past date.
func storeDate(t *testing.T, dir, source string) {
	t.Helper()
	store, err := snapshots.Open(snapshots.Options{Dir: dir, Source: source, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	at := time.Date(2015, 1, 2, 21, 0, 0, 0, time.UTC)
	for product, method := range map[string]string{"gex/spx": "gex/1", "volatility/spx": "volatility/1"} {
		answer, sealed := snapshots.Seal([]byte(`{"spot":2000}`), snapshots.Meta{
			Endpoint: product, Source: source, AsOf: at, ComputedAt: at, SessionDate: at.Format(time.DateOnly), Quality: []byte("{}"),
			Freshness: snapshots.Freshness{State: "closed", Since: at}, Receipt: snapshots.Receipt{Method: method, Inputs: []snapshots.Input{}},
		})
		if sealed != nil {
			t.Fatal(sealed)
		}
		err = errors.Join(err, store.Save([]snapshots.File{{Product: product, Edition: &snapshots.Edition{Default: answer}, Dated: true}}, nil))
	}
	must(t, errors.Join(err, store.Close()))
}

// leader waits until the stream of the files has a leader, and returns this server of the cluster.
func (f *fleet) leader(js nats.JetStreamContext) (leader *natsServer) {
	f.t.Helper()
	f.until("the stream of the files has a leader", func() bool {
		info, err := js.StreamInfo("KV_strikecache-" + f.source)
		if err != nil || info.Cluster == nil {
			return false
		}
		i := slices.IndexFunc(f.nats, func(n *natsServer) bool { return slices.Contains(n.args, info.Cluster.Leader) })
		if i >= 0 {
			leader = f.nats[i]
		}
		return i >= 0
	})
	return leader
}

// A cluster of three NATS servers loses one, which leads the stream of the files. The members go on.
func TestFaultFleetCluster(t *testing.T) {
	t.Parallel()
	x := newTrial(t, "simulated", runningMarket...)
	var routes, urls []string
	for range 3 {
		routes = append(routes, "nats://"+freeAddress(t))
	}
	for i := range routes {
		n := startNATS(t, "-n", fmt.Sprintf("n%d", i), "-cluster_name", "test", "-cluster", routes[i], "-routes", strings.Join(routes, ","))
		x.nats, urls = append(x.nats, n), append(urls, "nats://"+n.address)
	}
	conn, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	must(t, err)
	x.add(false, storedDay(t)).start()
	x.refreshes()
	for i := range 3 {
		x.addEmpty(i > 0) // a candidate and two edges
	}
	edge, gap := x.members[3].p(), time.Duration(0)
	x.run(2, 10, fault{"kill the leading server", func(x *trial, _, _ *member) {
		n := x.leader(js)
		before, began := edge.envelope(gammaPath).Meta.Computed, time.Now()
		n.kill()
		x.until("new answers reach an edge with two of three servers", func() bool { return edge.envelope(gammaPath).Meta.Computed.After(before) })
		gap = max(gap, time.Since(began))
		x.agree()
		n.start(t)
		x.leader(js)
	}})
	figure(t, "three clustered NATS servers, the leading one killed 10 times: at most %v without a new answer at an edge",
		gap.Round(time.Millisecond))
}
