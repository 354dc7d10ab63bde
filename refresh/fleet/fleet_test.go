package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"strikecache/snapshots"

	"strikecache/bench/testkit"
)

var must, until = testkit.Must, testkit.Until

// The tests wait for leases and timeouts most of the time, so more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for something that must happen.
const patience = 2 * time.Minute

// steadyPort returns a free port that no system gives to a socket without a port, so that a server can start on it again while
// other tests run.
func steadyPort() int {
	for {
		port := 10_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
}

// startNATS starts a NATS server on a port, 0 for any, with its files in a directory.
func startNATS(t *testing.T, dir string, port int, change ...func(*server.Options)) *server.Server {
	t.Helper()
	if port == 0 {
		port = steadyPort()
	}
	options := &server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true}
	for _, c := range change {
		c(options)
	}
	s, err := server.NewServer(options)
	must(t, err)
	s.Start()
	t.Cleanup(func() { stopNATS(s) })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not start")
	}
	return s
}

// ownNATS starts a NATS server for a test that runs beside others.
func ownNATS(t *testing.T) (url string) {
	t.Helper()
	t.Parallel()
	return urlOf(startNATS(t, t.TempDir(), 0))
}

func stopNATS(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// log keeps the lines of a log.
type log struct{ testkit.Text }

func (l *log) has(text string) bool { return l.Count(text) > 0 }

const (
	gamma = "gex/spx"
	pain  = "spx-max-pain"
)

var friday = time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)

// node is a member with a store and a refresher that saves what the test tells it.
type node struct {
	t *testing.T
	*Member
	store *snapshots.Store
	dir   string
	log   *log
	stop  func()

	mu       sync.Mutex
	serving  map[string]Served
	followed map[string]Served // by the last Apply
	silent   time.Time         // of the last UpdateFreshness
	hang     chan struct{}     // unless nil: Accept waits until it is closed
	dies     bool              // after it has published, before it stores
	last     func()            // unless nil: the refresh that has begun when Refresh is to end
	running  bool              // Refresh runs
	doubt    error             // in the clock
	failing  error             // of the refreshes
	behind   time.Duration     // how old its newest answer is
}

// join starts a member of the source simulated.
func join(t *testing.T, url, dir string, edge bool) *node {
	t.Helper()
	return start(t, Flags{NATS: url, Edge: edge}, dir, nil)
}

// refresher starts a member and waits until it refreshes.
func refresher(t *testing.T, url string) *node {
	t.Helper()
	n := join(t, url, t.TempDir(), false)
	until(t, "the member refreshes", n.refreshes)
	return n
}

// pair starts a refresher and an edge that shows its first answer.
func pair(t *testing.T, url string) (refreshing, edge *node) {
	t.Helper()
	refreshing, edge = refresher(t, url), join(t, url, t.TempDir(), true)
	refreshing.save(gamma, `"1"`, friday)
	until(t, "the edge follows", func() bool { return edge.shows(gamma, `"1"`) })
	return refreshing, edge
}

// start starts a member. prepare, unless nil, is called with it before it runs.
func start(t *testing.T, flags Flags, dir string, prepare func(*Member)) *node {
	t.Helper()
	n := &node{t: t, dir: dir, log: &log{}, serving: map[string]Served{}}
	logger := slog.New(slog.NewTextHandler(n.log, nil))
	store, err := snapshots.Open(snapshots.Options{
		Dir: dir, Source: "simulated", DatedProducts: []string{gamma}, HistoryBytes: 1 << 20, Log: logger,
		Publish: func(files []snapshots.Packed) (func(), error) {
			if !n.refreshes() {
				return func() {}, nil
			}
			stored, err := n.Publish(files)
			if n.dies && err == nil {
				err = errKilled
			}
			return stored, err
		},
		Loses: func(stored, next *snapshots.Snapshot) bool {
			return strings.HasPrefix(string(stored.Data()), `"a track`) && len(next.Data()) < len(stored.Data())
		},
	})
	must(t, err)
	n.store = store
	n.Member = New(Config{Flags: flags, Source: "simulated", Store: store, Process: n, Log: logger})
	if prepare != nil {
		prepare(n.Member)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.name, n.log.String())
		}
	})
	n.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

func (n *node) Origin() Origin    { return Origin{Identity: "simulated market, seed 1"} }
func (n *node) Join(Origin) error { return nil }

func (n *node) ClockError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.doubt
}

func (n *node) Failing() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failing
}

func (n *node) Behind() time.Duration { return n.behind }

// unfit sets why the member should not refresh.
func (n *node) unfit(doubt, failing error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doubt, n.failing = doubt, failing
}

var (
	errBack        = errors.New("the clock was set back")
	errUnreachable = errors.New("the upstream is unreachable")
	errKilled      = errors.New("killed")
)

func (n *node) Accept(path, digest string, file []byte) error {
	n.mu.Lock()
	hang := n.hang
	n.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return n.store.Accept(path, digest, file, []string{gamma, pain}, friday.AddDate(0, 0, 2))
}

func (n *node) Refresh(ctx context.Context) {
	n.mu.Lock()
	n.running = true
	for product, s := range n.followed { // as a start restores the answers: from the files
		if _, own := n.serving[product]; !own {
			n.serving[product] = s
		}
	}
	for product, s := range n.serving {
		s.SHA256 = n.store.Digest(snapshots.CurrentPath(product))
		n.serving[product] = s
	}
	n.mu.Unlock()
	<-ctx.Done()
	if n.last != nil {
		n.last()
	}
	n.mu.Lock()
	n.running = false
	n.mu.Unlock()
}

func (n *node) Serving() map[string]Served {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.serving)
}

func (n *node) Apply(served map[string]Served) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.followed = served
	return nil
}

func (n *node) UpdateFreshness(since time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent = since
	return nil
}

// toldSilent says whether the member was told that no refresher is heard of.
func (n *node) toldSilent() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.silent.IsZero()
}

func (n *node) refreshes() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.running
}

// sealed returns a file of a source whose answer has an as_of.
func sealed(t *testing.T, source, product, data string, asOf time.Time) snapshots.File {
	t.Helper()
	s, err := snapshots.Seal([]byte(data), snapshots.Meta{
		Endpoint: product, Source: source, AsOf: asOf, ComputedAt: asOf, Freshness: snapshots.Freshness{State: "fresh", Since: asOf},
		Receipt: snapshots.Receipt{Method: "test/1", Inputs: []snapshots.Input{}}, Quality: []byte("{}"),
	})
	must(t, err)
	return snapshots.File{Product: product, Edition: &snapshots.Edition{Default: s}, Dated: true}
}

// save saves an answer and makes it current.
func (n *node) save(product, data string, asOf time.Time) {
	n.t.Helper()
	f := sealed(n.t, "simulated", product, data, asOf)
	f.Current = true
	until(n.t, "the answer is published and saved", func() bool { return n.store.Save([]snapshots.File{f}, nil) == nil })
	n.mu.Lock()
	n.serving[product] = Served{n.store.Digest(snapshots.CurrentPath(product)), snapshots.Freshness{State: "fresh", Since: asOf}}
	n.mu.Unlock()
}

// shows says whether this member was told to serve an answer whose file it has. It reads the digest from the file: for a moment
// the store has a new file and the digest of the file before.
func (n *node) shows(product, data string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.followed[product]
	f, err := n.store.LoadCurrent(product)
	if err != nil || string(f.Edition.Default.Data()) != data {
		return false
	}
	_, digest, err := n.store.Bytes(snapshots.CurrentPath(product))
	return err == nil && digest == s.SHA256
}

// files returns the files of a node, by path, without those that are being written.
func (n *node) files() map[string]string {
	n.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".lock" || snapshots.Temporary(d.Name()) {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the member has removed it meanwhile
		}
		rel, _ := filepath.Rel(filepath.Join(n.dir, "simulated"), path)
		found[rel] = string(b)
		return err
	})
	must(n.t, err)
	return found
}

// operator is a client that is no member: it looks at the bucket and breaks things.
type operator struct {
	t    *testing.T
	conn *nats.Conn
	*bucket
}

func newOperator(t *testing.T, url string) operator {
	t.Helper()
	m := New(Config{Flags: Flags{NATS: url, Edge: true}, Source: "simulated", Log: slog.New(slog.DiscardHandler)})
	var err error
	m.conn, err = m.connect()
	must(t, err)
	t.Cleanup(m.conn.Close)
	o := operator{t: t, conn: m.conn}
	until(t, "the fleet has a bucket", func() bool {
		o.bucket, err = m.open(t.Context())
		return err == nil
	})
	return o
}

// now returns the pointer.
func (o operator) now() pointer {
	o.t.Helper()
	p, err := o.pointer(o.t.Context())
	must(o.t, err)
	return p
}

// current returns the manifest.
func (o operator) current() (m manifest) {
	o.t.Helper()
	body, err := o.get(o.t.Context(), o.now().Manifest, maxJSON)
	must(o.t, errors.Join(err, json.Unmarshal(body, &m)))
	return m
}

// put stores a blob under a name, its digest if that is "".
func (o operator) put(name string, body []byte) string {
	o.t.Helper()
	if name == "" {
		name = snapshots.Digest(body)
	}
	must(o.t, o.bucket.put(name, body, func() error { return nil }))
	return name
}

// write replaces the pointer, whoever wrote it.
func (o operator) write(p pointer) {
	o.t.Helper()
	until(o.t, "the pointer is replaced", func() bool {
		p.sequence = o.now().sequence
		_, err := o.swap(o.t.Context(), p)
		return err == nil
	})
}

// publish publishes a manifest that it has changed, as a holder that is none.
func (o operator) publish(change func(*manifest)) {
	o.t.Helper()
	m := o.current()
	change(&m)
	body, err := json.Marshal(m)
	must(o.t, err)
	o.write(pointer{Holder: "operator", Term: o.now().Term + 1, Manifest: o.put("", body)})
}

func urlOf(s *server.Server) string {
	return fmt.Sprintf("nats://127.0.0.1:%d", portOf(s))
}

func portOf(s *server.Server) int { return s.Addr().(*net.TCPAddr).Port }

// A new edge gets every file, and the answers of the refresher at the same time.
func TestAnEdgeGetsEverything(t *testing.T) {
	at := ownNATS(t)
	a := start(t, Flags{NATS: at}, t.TempDir(), func(m *Member) { m.surveyEvery = time.Second })
	until(t, "the member refreshes", a.refreshes)
	for i := range 40 {
		a.save(gamma, fmt.Sprintf(`"of day %d"`, i), friday.AddDate(0, 0, i-40))
	}
	a.save(gamma, `"1"`, friday)
	a.save(pain, `"1"`, friday)
	document := []byte("a document")
	sum := snapshots.Digest(document)
	f := sealed(t, "simulated", gamma, `"with a document"`, friday.AddDate(0, 0, -1))
	f.Inputs = []snapshots.StoredInput{{Input: snapshots.Input{Name: "options/_SPX.json", SHA256: sum}}}
	must(t, a.store.Save([]snapshots.File{f}, []snapshots.Object{{SHA256: sum, Body: document}}))
	follower := join(t, at, t.TempDir(), false)
	e := join(t, at, t.TempDir(), true)
	until(t, "the follower has all files", func() bool { return maps.Equal(follower.files(), a.files()) })
	until(t, "the edge has all files but the documents", func() bool {
		files := a.files()
		maps.DeleteFunc(files, func(path, _ string) bool { return strings.HasPrefix(path, "objects/") })
		return maps.Equal(e.files(), files)
	})
	until(t, "the edge shows the answers", func() bool { return e.shows(gamma, `"1"`) && e.shows(pain, `"1"`) })
	for i, size := range []int{1_000_000, 10, chunkBytes} {
		a.save(pain, noise(size), friday.Add(time.Duration(i+1)*time.Minute))
		until(t, "the edge shows the next answer", func() bool { return e.shows(pain, noise(size)) })
	}
	until(t, "the status of the edge says so", func() bool {
		s := e.Status()
		return s.Role == RoleEdge && s.Connected && s.Lease > 0 && s.SilentSince.IsZero() && s.Applied >= 43 && s.Lag > 0 && s.Err == nil && e.Complete()
	})
	until(t, "the status of the refresher says so", func() bool {
		s := a.Status()
		return s.Role == RoleRefresher && s.Put >= 44 && s.Err == nil
	})
	if _, err := a.store.Expire(snapshots.Ages{FilesBefore: "2026-10-20", Products: []string{gamma, pain}}); err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, at)
	until(t, "the dates of the removed files are gone", func() bool {
		dates := slices.Sorted(maps.Keys(o.current().Dates))
		return len(dates) == 32 && dates[0] == "2026-10-20"
	})
	until(t, "the blobs that nothing names are gone", func() bool {
		blobs, err := o.list()
		return err == nil && len(blobs) == 1+len(o.current().Dates)+len(a.store.Paths())-2 // the last files of both products are those of their date
	})
}

// A member that may refresh waits. When the refresher stops, it goes on from the same files.
func TestTakeOver(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	b := join(t, at, t.TempDir(), false)
	a.save(gamma, `"1"`, friday)
	until(t, "the second follows", func() bool { return b.shows(gamma, `"1"`) })
	if b.Holds() && a.Holds() {
		t.Fatal("two members refresh")
	}
	a.last = func() { // a refresh that takes longer than the lease lasts without a renewal
		time.Sleep(leaseTTL + 2*time.Second)
		a.save(pain, `"last words"`, friday)
	}
	a.stop()
	until(t, "the second refreshes", b.refreshes)
	if !b.shows(pain, `"last words"`) || !maps.Equal(a.files(), b.files()) {
		t.Error("the second member went on without the last files")
	}
	b.save(gamma, `"2"`, friday.Add(time.Minute))
	b.stop()
	c := join(t, at, a.dir, false)
	until(t, "the first refreshes again", c.refreshes)
	if f, err := c.store.LoadCurrent(gamma); err != nil || string(f.Edition.Default.Data()) != `"2"` {
		t.Errorf("it refreshes without the file of the lease that it has missed: %v", err)
	}
}

// A refresher that is killed after it has published, and before it has stored, gets what the others have.
func TestKilledBeforeItStores(t *testing.T) {
	url := ownNATS(t)
	a, e := pair(t, url)
	a.dies = true
	answer := sealed(t, "simulated", gamma, `"2"`, friday.Add(time.Minute))
	answer.Current = true
	until(t, "the answer is published", func() bool { return errors.Is(a.store.Save([]snapshots.File{answer}, nil), errKilled) })
	until(t, "the edge shows it", func() bool { return e.shows(gamma, `"2"`) })
	path := snapshots.CurrentPath(gamma)
	if d := a.store.Digest(path); d == e.store.Digest(path) {
		t.Fatalf("it is stored as %s", d)
	}
	a.stop()
	if _, err := a.Publish(nil); !errors.Is(err, errLost) {
		t.Errorf("a member that has ended publishes: %v", err)
	}
	b := join(t, url, a.dir, false)
	until(t, "it refreshes with the files of the fleet", func() bool { return b.refreshes() && b.store.Digest(path) == e.store.Digest(path) })
	if !b.shows(gamma, `"2"`) {
		t.Error("it does not show what the edge shows")
	}
}

// A member whose clock is 20 minutes behind gives the lease up when it doubts its clock, and takes none while it doubts. A doubt counts
// for nothing if the NATS server's clock shows the same: the answer that raised it was made by a clock that was ahead.
func TestAClockError(t *testing.T) {
	url := ownNATS(t)
	shows := func(ahead time.Duration) func(*Member) {
		return func(m *Member) {
			m.keepFor, m.now = 2*time.Second, func() time.Time { return time.Now().Add(ahead) }
		}
	}
	first := start(t, Flags{NATS: url}, t.TempDir(), shows(-20*time.Minute))
	until(t, "the member refreshes", first.refreshes)
	first.unfit(errBack, nil)
	until(t, "the lease is given up", func() bool { return !first.refreshes() && !first.Holds() })
	second := start(t, Flags{NATS: url}, t.TempDir(), shows(-20*time.Minute))
	until(t, "the second member refreshes", second.refreshes)
	first.unfit(nil, nil)
	second.unfit(errBack, nil)
	until(t, "the member whose clock is right again refreshes alone", func() bool { return first.refreshes() && !second.refreshes() })
	if !second.log.has(errBack.Error()) {
		t.Error("the log does not say why the member does not refresh")
	}
	first.stop()
	second.stop()
	right := refresher(t, url)
	right.unfit(errBack, nil) // as the clock of the next member made it doubt
	ahead := start(t, Flags{NATS: url}, t.TempDir(), shows(6*time.Hour))
	right.stop()
	until(t, "the member whose clock is ahead refreshes while there is no other", ahead.refreshes)
	right = start(t, Flags{NATS: url}, t.TempDir(), func(m *Member) { m.cfg.Process.(*node).doubt = errBack })
	until(t, "the member whose clock is right refreshes, although it doubts its clock", func() bool { return right.refreshes() && !ahead.refreshes() })
	if !ahead.log.has("6h0m0s ahead of that of the NATS server") {
		t.Error("the log does not say why the member leaves the lease to others")
	}
}

// A member whose refreshes fail gives the lease up, and leaves it to others. If it is alone, it takes the lease again, and keeps
// it.
func TestFailingRefreshes(t *testing.T) {
	url := ownNATS(t)
	impatient := func(m *Member) { m.keepFor = 2 * time.Second }
	first := start(t, Flags{NATS: url}, t.TempDir(), impatient)
	until(t, "the first refreshes", first.refreshes)
	began := first.Status().Lease
	first.unfit(nil, errUnreachable)
	until(t, "the only member takes the lease again", func() bool { return first.Status().Lease > began && first.refreshes() })
	if !first.log.has(errUnreachable.Error()) {
		t.Error("the log does not say why the member does not refresh")
	}

	second := join(t, url, t.TempDir(), false)
	until(t, "the healthy member refreshes", second.refreshes)
	until(t, "the failing member does not", func() bool { return !first.refreshes() && !first.Holds() })
	m, now := New(Config{Process: &node{}}), pointer{at: time.Now().Add(-time.Hour)}
	for _, keeps := range []bool{false, true} { // if it gets the lease again, the clock of the NATS server may be the wrong one
		m.lease, m.turn = &lease{}, time.Time{}
		if err := m.unfit(now); (err == nil) != keeps {
			t.Errorf("the clock is ahead: want to keep the lease %v, got %v", keeps, err)
		}
	}
	m, now = New(Config{Process: &node{failing: errUnreachable}}), pointer{at: time.Now()}
	for left, keeps := range map[time.Duration]bool{keepFor: true, time.Minute: true, 0: false} {
		m.lease, m.turn, m.left = &lease{}, time.Now().Add(left), nil
		if err := m.unfit(now); (err == nil) != keeps {
			t.Errorf("%v before the end of its turn: %v", left, err)
		}
		if m.lease = nil; (m.unfit(now) == nil) != keeps {
			t.Errorf("%v before the end of its turn: the lease is left to others: %v", left, keeps)
		}
	}
}
