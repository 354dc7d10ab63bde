package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// natsServer is a real NATS server with JetStream. It keeps its port and its directory when it is started again.
type natsServer struct {
	*process
	args []string
	url  string
}

var natsProgram = sync.OnceValues(func() (string, error) { return build("nats-server", "github.com/nats-io/nats-server/v2") })

// startNATS starts a NATS server. Further arguments make it one of a cluster.
func startNATS(t testing.TB, args ...string) *natsServer {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	n := &natsServer{url: "nats://" + address, args: append([]string{"-js", "-sd", t.TempDir(), "-a", "127.0.0.1", "-p", port}, args...)}
	n.start(t)
	return n
}

// freeAddress returns an address on which nobody listens. Its port is below those that systems give to connections: else one of
// them might take it before a server listens, or while the server is down.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (n *natsServer) start(t testing.TB) {
	t.Helper()
	program, err := natsProgram()
	if err != nil {
		t.Fatal(err)
	}
	n.process = launch(t, exec.Command(program, n.args...), nil)
	t.Cleanup(n.kill)
	n.until("the NATS server is ready", func() bool { return strings.Contains(n.logged(), "Server is ready") })
}

// fleet is a NATS server and members that run as processes. Each member reaches NATS through a proxy of its own.
type fleet struct {
	t       testing.TB
	source  string
	args    []string // of every member
	nats    *natsServer
	cluster []*natsServer // the servers of a cluster, which the members reach without a proxy; nil: nats alone
	proxies *toxiproxy.ApiServer
	members []*member
	ledger  *ledger
}

func newFleet(t testing.TB, source string, args ...string) *fleet {
	t.Helper()
	f := &fleet{
		t: t, source: source, args: append(args, "--source", source, "--log-level", "debug"), nats: startNATS(t),
		proxies: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), ledger: newLedger(),
	}
	f.ledger.tap(t, source, f.nats.url)
	return f
}

// member is a member of a fleet: a process that is started again after it has ended.
type member struct {
	f     *fleet
	name  string
	edge  bool
	dir   string
	args  []string
	proxy *toxiproxy.Proxy

	mu        sync.Mutex
	p         *process
	life      int     // counts the times at which the process could have answered anew or not at all
	disturbed bool    // the process may leave requests without an answer
	complete  bool    // the process has answered everything since its directory was empty
	leases    []lease // that this member took, oldest first
	leads     bool    // holds the lease, by its log
	floors    map[string]edition
	problems  []string
}

// lease is a lease that a member took.
type lease struct {
	number uint64
	at     time.Time // by the log
}

// add makes a member that is not started yet.
func (f *fleet) add(edge bool, dir string, args ...string) *member {
	f.t.Helper()
	m := &member{f: f, edge: edge, dir: dir, args: args, name: fmt.Sprintf("candidate %d", len(f.members)), floors: map[string]edition{}}
	if edge {
		m.name, m.args = fmt.Sprintf("edge %d", len(f.members)), append(m.args, "--edge")
	}
	f.members = append(f.members, m)
	if f.cluster != nil {
		return m
	}
	m.proxy = toxiproxy.NewProxy(f.proxies, m.name, "127.0.0.1:0", strings.TrimPrefix(f.nats.url, "nats://"))
	if err := m.proxy.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(m.proxy.Stop)
	return m
}

// start starts the process of a member and waits until it listens.
func (m *member) start() {
	m.f.t.Helper()
	if !m.edge {
		m.f.ledger.scan(m.f.t, filepath.Join(m.dir, m.f.source))
	}
	args := slices.Concat([]string{"serve", "--data-dir", m.dir, "--nats", m.f.urlOf(m)}, m.f.argsOf(m), m.args)
	p := launch(m.f.t, command(m.f.t, args...), m.watch)
	m.f.t.Cleanup(p.kill)
	p.listens()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p, m.disturbed = p, false
	m.life++
}

// urlOf returns the value of a member's --nats.
func (f *fleet) urlOf(m *member) string {
	if f.cluster == nil {
		return "nats://" + m.proxy.Listen
	}
	var urls []string
	for _, n := range f.cluster {
		urls = append(urls, n.url)
	}
	return strings.Join(urls, ",")
}

// argsOf returns the arguments that all members have. An edge needs only the name of the source.
func (f *fleet) argsOf(m *member) []string {
	if m.edge {
		return []string{"--source", f.source, "--log-level", "debug"}
	}
	return f.args
}

var (
	timeField  = regexp.MustCompile(`^time=(\S+)`)
	leaseField = regexp.MustCompile(` lease=(\d+)`)
)

// watch reads a line of the member's log.
func (m *member) watch(line string) {
	at := time.Now()
	if f := timeField.FindStringSubmatch(line); f != nil {
		if said, err := time.Parse(time.RFC3339Nano, f[1]); err == nil {
			at = said
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.Contains(line, "this member holds the lease"):
		number, _ := strconv.ParseUint(leaseField.FindStringSubmatch(line)[1], 10, 64) // the expression matches only digits
		m.leases, m.leads = append(m.leases, lease{number, at}), true
	case strings.Contains(line, "no longer holds the lease"):
		m.leads = false
	case strings.Contains(line, "panic"), strings.Contains(line, "clock_backwards"), strings.Contains(line, "level=ERROR"), strings.Contains(line, "object refused"):
		m.problems = append(m.problems, line)
	}
}

// disturb says that the process may leave requests without an answer until settle or start is called.
func (m *member) disturb() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disturbed = true
	m.life++
}

func (m *member) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disturbed = false
	m.life++
}

// kill ends the process as a power cut would.
func (m *member) kill() {
	m.disturb()
	m.p.kill()
	m.ended()
}

// stop ends the process as a service manager does.
func (m *member) stop() {
	m.f.t.Helper()
	m.disturb()
	m.p.stop()
	m.ended()
}

func (m *member) ended() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leads = false
}

// empty removes the directory of a member that is not running.
func (m *member) empty() {
	m.f.t.Helper()
	if err := os.RemoveAll(m.dir); err != nil {
		m.f.t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = false
	clear(m.floors)
}

// suspend stops the process, as a machine that hangs.
func (m *member) suspend() {
	m.f.t.Helper()
	m.disturb()
	m.p.signal(syscall.SIGSTOP)
}

func (m *member) resume() {
	m.f.t.Helper()
	m.p.signal(syscall.SIGCONT)
	m.settle()
}

// cut cuts the member off from NATS. A black hole swallows the bytes, a reset breaks every connection.
func (m *member) cut(toxic string) {
	m.f.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		body := fmt.Sprintf(`{"name":"cut-%[1]s","type":%[2]q,"stream":%[1]q,"attributes":{"timeout":0}}`, stream, toxic)
		if _, err := m.proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
			m.f.t.Fatal(err)
		}
	}
}

// The toxics of cut.
const (
	blackHole = "timeout"
	reset     = "reset_peer"
)

func (m *member) join() { m.proxy.Toxics.ResetToxics(context.Background()) }

// lastLease returns the last lease that the member took, and whether it still holds it by its log.
func (m *member) lastLease() (last lease, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.leases); n > 0 {
		last = m.leases[n-1]
	}
	return last, m.leads
}

func (m *member) isDisturbed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disturbed
}

// refresher returns the member that took the newest lease, nil if its log says that it has lost the lease.
func (f *fleet) refresher() *member {
	var newest *member
	var number uint64
	for _, m := range f.members {
		if last, leads := m.lastLease(); last.number > number {
			number, newest = last.number, m
			if !leads || m.isDisturbed() {
				newest = nil
			}
		}
	}
	return newest
}

// refreshes waits until a member holds the lease and returns it.
func (f *fleet) refreshes() (m *member) {
	f.t.Helper()
	f.until("a member refreshes", func() bool { m = f.refresher(); return m != nil })
	return m
}

// others returns the members except one.
func (f *fleet) others(m *member) []*member {
	return slices.DeleteFunc(slices.Clone(f.members), func(o *member) bool { return o == m })
}

// until polls a condition. If it does not hold in time, the logs of all members are told.
func (f *fleet) until(what string, holds func() bool) {
	f.t.Helper()
	until(f.t, what, holds, f.logs)
}

// logs returns the end of each member's log, without the steps of storing.
func (f *fleet) logs() string {
	var b strings.Builder
	for _, m := range f.members {
		if m.p == nil {
			continue
		}
		lines := slices.DeleteFunc(m.p.log.lines(), func(l string) bool { return strings.Contains(l, "msg=stor") })
		fmt.Fprintf(&b, "--- %s:\n%s\n", m.name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return b.String()
}

// tag returns the ETag of a member's answer, "" without one.
func (m *member) tag(client *http.Client, target string) string {
	resp, _, err := send(client, http.MethodHead, m.p.url+target)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return resp.Header.Get("ETag")
}

// newAnswerClient returns a client that waits only seconds for a member that may hang.
func newAnswerClient() *http.Client {
	client := newClient()
	client.Timeout = 3 * time.Second
	return client
}

// agree waits until all members have equal answers of all resources.
func (f *fleet) agree() {
	f.t.Helper()
	client := newAnswerClient()
	defer client.CloseIdleConnections()
	differs := ""
	until(f.t, "all members agree", func() bool {
		for _, target := range targets {
			var tags []string
			for _, m := range f.members {
				tags = append(tags, m.tag(client, target))
			}
			if slices.Min(tags) == "" || slices.Min(tags) != slices.Max(tags) {
				differs = fmt.Sprint(target, tags)
				return false
			}
		}
		return true
	}, func() string { return differs }, f.logs)
}

// identical waits until all members serve equal bytes of each target in every coding.
func (f *fleet) identical(all []string) {
	f.t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	for _, target := range all {
		for _, coding := range codings {
			served := map[string][]string{} // names of members by ETag and digest
			until(f.t, "equal bytes of "+target+" in "+coding, func() bool {
				clear(served)
				for _, m := range f.members {
					resp, body, err := send(client, http.MethodGet, m.p.url+target, "Accept-Encoding", coding)
					if err != nil {
						f.t.Fatalf("%s: %s: %v\n%s", m.name, target, err, f.logs())
					}
					if _, err := checkAnswer(resp, body); err != nil {
						f.t.Fatalf("%s: %s, %s: %v", m.name, target, coding, err)
					}
					answer := resp.Header.Get("ETag") + " " + sum(body)
					served[answer] = append(served[answer], m.name)
				}
				return len(served) == 1
			}, func() string { return fmt.Sprint(served) }, f.logs)
		}
	}
}

// everyTarget returns the targets of all resources with every value of their parameters: each expiration, the limits 1 to
// 100, and each stored date.
func (m *member) everyTarget() []string {
	all := slices.Clone(targets)
	for _, x := range dataOf[painData](m.p, painPath).Expirations {
		all = append(all, painPath+"?expiration="+x.Expiration)
	}
	for limit := 2; limit < 100; limit++ {
		all = append(all, flowPath+"?limit="+strconv.Itoa(limit))
	}
	for _, date := range m.dates() {
		all = append(all, datePath+date)
		if track := trackPath + "?date=" + date; m.p.answers(track, http.StatusOK) { // an older date may have none
			all = append(all, track)
		}
	}
	return all
}

// dates returns the dates of the series.
func (m *member) dates() (dates []string) {
	for _, row := range m.p.rows() {
		dates = append(dates, row[0].(string))
	}
	return dates
}

// load lets clients ask random members for random answers until stop is called. A client ends with its first error.
func (f *fleet) load(clients int, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range clients {
		choices := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			client := newClient()
			defer client.CloseIdleConnections()
			for tick := time.NewTicker(pace); ctx.Err() == nil; <-tick.C {
				m := f.members[choices.IntN(len(f.members))]
				if err := m.ask(client, targets[choices.IntN(len(targets))], codings[choices.IntN(len(codings))]); err != nil {
					f.t.Errorf("%s: %v", m.name, err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// ask fetches an answer and hands it to the ledger. An error says that a member that nothing disturbs has failed.
func (m *member) ask(client *http.Client, target, coding string) error {
	m.mu.Lock()
	p, life, idle, floor, leads := m.p, m.life, m.disturbed || !m.complete, m.floors[target], m.leads
	m.mu.Unlock()
	if idle {
		return nil
	}
	resp, body, err := send(client, http.MethodGet, p.url+target, "Accept-Encoding", coding)
	m.mu.Lock()
	same := life == m.life
	m.mu.Unlock()
	if err != nil {
		if same {
			return fmt.Errorf("%s: %w", target, err)
		}
		return nil
	}
	a, err := m.f.ledger.observe(m, target, leads, resp, body)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.AsOf.Before(floor.AsOf) || a.Computed.Before(floor.Computed) {
		return fmt.Errorf("%s went back from %+v to %+v", target, floor, a)
	}
	if life == m.life && m.floors[target].before(a) { // else the directory may have been emptied meanwhile
		m.floors[target] = a
	}
	return nil
}

// completes waits until a member is ready, and lets the clients ask it.
func (m *member) completes() {
	m.f.t.Helper()
	client := newAnswerClient()
	defer client.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/api/v1/gex/spx/historical"} { // a late chain gives an answer and no date of the history
		m.f.until(m.name+" answers "+path, func() bool {
			resp, _, err := send(client, http.MethodGet, m.p.url+path)
			return err == nil && resp.StatusCode == http.StatusOK
		})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = true
}

// troubles returns the lines of the logs that must not be there.
func (f *fleet) troubles(allowed ...string) error {
	var errs []error
	for _, m := range f.members {
		m.mu.Lock()
		for _, line := range m.problems {
			if !slices.ContainsFunc(allowed, func(text string) bool { return strings.Contains(line, text) }) {
				errs = append(errs, fmt.Errorf("%s: %s", m.name, line))
			}
		}
		m.mu.Unlock()
	}
	return errors.Join(errs...)
}
