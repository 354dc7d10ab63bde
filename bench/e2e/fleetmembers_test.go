package e2e

import (
	"context"
	"errors"
	"fmt"
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
	args    []string
	address string
}

// natsProgram builds the NATS server, unless STRIKECACHE_NATS_SERVER names one, such as that of a distribution.
var natsProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("STRIKECACHE_NATS_SERVER"); path != "" {
		return path, nil
	}
	return build("nats-server", "github.com/nats-io/nats-server/v2")
})

// startNATS starts a NATS server. Further arguments make it one of a cluster.
func startNATS(t testing.TB, args ...string) *natsServer {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	n := &natsServer{address: address, args: append([]string{"-js", "-sd", t.TempDir(), "-a", "127.0.0.1", "-p", port}, args...)}
	n.start(t)
	return n
}

func (n *natsServer) start(t testing.TB) {
	t.Helper()
	program, err := natsProgram()
	must(t, err)
	n.process = launch(t, exec.Command(program, n.args...))
	t.Cleanup(n.kill)
	n.until("the NATS server is ready", func() bool { return strings.Contains(n.logged(), "Server is ready") })
}

// fleet is a NATS server, or a cluster of them, and members that run as processes. A member reaches a single NATS server
// through a proxy of its own.
type fleet struct {
	t       testing.TB
	source  string
	args    []string // of every member that may refresh
	nats    []*natsServer
	proxies *toxiproxy.ApiServer
	members []*member
	answers *answers
}

func newFleet(t testing.TB, nats []*natsServer, source string, args ...string) *fleet {
	t.Helper()
	return &fleet{t: t, source: source, args: args, nats: nats, answers: newAnswers(),
		proxies: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// member is a member of a fleet: a process that is started again after it has ended.
type member struct {
	f       *fleet
	name    string
	edge    bool
	dir     string
	args    []string
	proxy   *toxiproxy.Proxy
	network string // name of the network namespace of the process; "": that of the test

	mu       sync.Mutex
	lives    []*process // the processes so far, the last of which may run
	calm     bool       // the process must answer every request
	changes  int        // of calm
	complete bool       // the process has answered everything since its directory was empty
	emptied  int        // how often the directory was emptied
}

// add makes a member that is not started yet. An edge needs only the name of the source.
func (f *fleet) add(edge bool, dir string, args ...string) *member {
	f.t.Helper()
	m := &member{f: f, edge: edge, dir: dir, name: fmt.Sprintf("candidate %d", len(f.members))}
	var urls []string
	for _, n := range f.nats {
		urls = append(urls, "nats://"+n.address)
	}
	if len(urls) == 1 {
		m.proxy = toxiproxy.NewProxy(f.proxies, m.name, "127.0.0.1:0", f.nats[0].address)
		must(f.t, m.proxy.Start())
		f.t.Cleanup(m.proxy.Stop)
		urls = []string{"nats://" + m.proxy.Listen}
	}
	m.args = append([]string{"serve", "--data-dir", dir, "--source", f.source, "--nats", strings.Join(urls, ",")}, args...)
	if edge {
		m.name, m.args = fmt.Sprintf("edge %d", len(f.members)), append(m.args, "--edge")
	} else {
		m.args = append(m.args, f.args...)
	}
	f.members = append(f.members, m)
	return m
}

// addEmpty adds a member with an empty directory and starts it.
func (f *fleet) addEmpty(edge bool, args ...string) *member {
	f.t.Helper()
	m := f.add(edge, filepath.Join(f.t.TempDir(), "data"), args...)
	m.start()
	return m
}

// start starts the process of a member and waits until it listens.
func (m *member) start() {
	m.f.t.Helper()
	cmd := command(m.f.t, m.args...)
	if m.network != "" {
		inside := exec.Command("ip", append([]string{"netns", "exec", m.network}, cmd.Args...)...) //nolint:gosec // G204: of this test
		inside.Env, cmd = cmd.Env, inside
	}
	p := launch(m.f.t, cmd)
	m.f.t.Cleanup(p.kill)
	p.listens()
	m.mu.Lock()
	m.lives = append(m.lives, p)
	m.mu.Unlock()
	m.setCalm(true)
}

// p returns the process that was started last.
func (m *member) p() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lives[len(m.lives)-1]
}

// log returns the lines of a member's processes so far.
func (m *member) log() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	for _, p := range m.lives {
		b.WriteString(p.logged())
	}
	return b.String()
}

// lease is a lease that a member took.
type lease struct {
	number int
	at     time.Time
}

var leaseTaken = regexp.MustCompile(`(?m)^time=(\S+) .*this member holds the lease .*lease=(\d+)`)

// leases returns the leases that a member took, by its log, oldest first.
func (m *member) leases() (all []lease) {
	for _, found := range leaseTaken.FindAllStringSubmatch(m.log(), -1) {
		at, err := time.Parse(time.RFC3339Nano, found[1])
		number, err2 := strconv.Atoi(found[2])
		if err := errors.Join(err, err2); err != nil {
			m.f.t.Error(err)
		}
		all = append(all, lease{number, at})
	}
	return all
}

// lastLease returns the number of the last lease that the member took, 0 without one.
func (m *member) lastLease() int {
	if all := m.leases(); len(all) > 0 {
		return all[len(all)-1].number
	}
	return 0
}

// leads says whether the log of the process that runs says that it holds the lease.
func (m *member) leads() bool {
	text := m.p().logged()
	return strings.LastIndex(text, "this member holds the lease") > strings.LastIndex(text, "this member no longer holds the lease")
}

// setCalm says whether the process must answer every request from now on.
func (m *member) setCalm(calm bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calm = calm
	m.changes++
}

// kill ends the process as a power cut would.
func (m *member) kill() {
	m.setCalm(false)
	m.p().kill()
}

// stop ends the process as a service manager does.
func (m *member) stop() {
	m.f.t.Helper()
	m.setCalm(false)
	m.p().stop()
}

// empty removes the directory of a member that is not running.
func (m *member) empty() {
	m.f.t.Helper()
	must(m.f.t, os.RemoveAll(m.dir))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = false
	m.emptied++
}

// suspend stops the process, as a machine that hangs.
func (m *member) suspend() {
	m.f.t.Helper()
	m.setCalm(false)
	m.p().signal(syscall.SIGSTOP)
}

func (m *member) resume() {
	m.f.t.Helper()
	m.p().signal(syscall.SIGCONT)
	m.setCalm(true)
}

// The toxics of cut: a black hole swallows the bytes, a reset breaks every connection.
const (
	blackHole = "timeout"
	reset     = "reset_peer"
)

// cut cuts the member off from NATS, until join.
func (m *member) cut(toxic string) {
	m.f.t.Helper()
	for _, stream := range []string{"upstream", "downstream"} {
		body := fmt.Sprintf(`{"name":"cut-%[1]s","type":%[2]q,"stream":%[1]q,"attributes":{"timeout":0}}`, stream, toxic)
		if _, err := m.proxy.Toxics.AddToxicJson(strings.NewReader(body)); err != nil {
			m.f.t.Fatal(err)
		}
	}
}

func (m *member) join() { m.proxy.Toxics.ResetToxics(context.Background()) }

// refreshes waits until the member that took the newest lease holds it, and returns this member.
func (f *fleet) refreshes() (refresher *member) {
	f.t.Helper()
	f.until("a member refreshes", func() bool {
		refresher = slices.MaxFunc(f.members, func(a, b *member) int { return a.lastLease() - b.lastLease() })
		return refresher.leads()
	})
	return refresher
}

// others returns the members except one.
func (f *fleet) others(m *member) []*member {
	return slices.DeleteFunc(slices.Clone(f.members), func(o *member) bool { return o == m })
}

// until polls a condition. If it does not hold in time, the ends of the logs of all members are told.
func (f *fleet) until(what string, holds func() bool, more ...func() string) {
	f.t.Helper()
	until(f.t, what, holds, append(more, f.logs)...)
}

func (f *fleet) logs() string {
	var b strings.Builder
	for _, m := range f.members {
		lines := strings.Split(m.log(), "\n")
		fmt.Fprintf(&b, "--- %s:\n%s\n", m.name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return b.String()
}

// agree waits until all members have equal answers of all resources.
func (f *fleet) agree() {
	f.t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	differs := ""
	f.until("all members agree", func() bool {
		for _, target := range targets {
			var tags []string
			for _, m := range f.members {
				tag := ""
				if resp, _, err := send(client, http.MethodHead, m.p().url+target); err == nil && resp.StatusCode == http.StatusOK {
					tag = resp.Header.Get("ETag")
				}
				tags = append(tags, tag)
			}
			if slices.Min(tags) == "" || slices.Min(tags) != slices.Max(tags) {
				differs = fmt.Sprint(target, tags)
				return false
			}
		}
		return true
	}, func() string { return differs })
}

// identical waits until all members serve equal bytes of each target in every coding.
func (f *fleet) identical(all []string) {
	f.t.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	for _, target := range all {
		for _, coding := range codings {
			served := map[string][]string{} // names of members by ETag and digest
			f.until("equal bytes of "+target+" in "+coding, func() bool {
				clear(served)
				for _, m := range f.members {
					resp, body, err := send(client, http.MethodGet, m.p().url+target, "Accept-Encoding", coding)
					if err == nil {
						_, err = checkAnswer(resp, body, nil)
					}
					if err != nil {
						f.t.Fatalf("%s: %s, %s: %v\n%s", m.name, target, coding, err, f.logs())
					}
					answer := resp.Header.Get("ETag") + " " + sum(body)
					served[answer] = append(served[answer], m.name)
				}
				return len(served) == 1
			}, func() string { return fmt.Sprint(served) })
		}
	}
}

// ask fetches an answer and checks it. An error says that it is wrong, or that a member that nothing disturbs has failed.
func (m *member) ask(client *http.Client, target, coding string) error {
	m.mu.Lock()
	p, changes, idle, server := m.lives[len(m.lives)-1], m.changes, !m.calm || !m.complete, fmt.Sprint(m.name, m.emptied)
	m.mu.Unlock()
	if idle {
		return nil
	}
	_, err := m.f.answers.ask(client, server, p.url, target, coding)
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(err, errLost) && changes != m.changes {
		return nil
	}
	return err
}

// completes waits until a member is ready, and lets the clients ask it.
func (m *member) completes() {
	m.f.t.Helper()
	for _, path := range []string{"/readyz", "/api/v1/gex/spx/historical"} { // a late chain gives an answer and no date of the history
		m.f.until(m.name+" answers "+path, func() bool { return m.p().answers(path, http.StatusOK) })
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = true
}

// faultless checks that no log has a line of a fault, except those with an allowed text.
func (f *fleet) faultless(allowed ...string) {
	f.t.Helper()
	for _, m := range f.members {
		for line := range strings.Lines(m.log()) {
			has := func(text string) bool { return strings.Contains(line, text) }
			if slices.ContainsFunc([]string{"panic", "clock_backwards", "level=ERROR", "object refused"}, has) && !slices.ContainsFunc(allowed, has) {
				f.t.Errorf("%s: %s", m.name, line)
			}
		}
	}
}
