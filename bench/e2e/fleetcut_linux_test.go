package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// ip runs the command ip of iproute2.
func ip(line string) error { return exec.Command("ip", strings.Fields(line)...).Run() } //nolint:gosec // G204: of this test

// namespace makes a network namespace. It returns its name, its address, and two addresses at which it reaches this machine.
func namespace(t *testing.T, n int) (name, own, first, second string) {
	t.Helper()
	name = fmt.Sprintf("sc%d-%d", os.Getpid(), n)
	address := func(host int) string { return fmt.Sprintf("10.%d.%d.%d", 213+n, os.Getpid()%256, host) }
	own, first, second = address(1), address(2), address(3)
	t.Cleanup(func() { _ = ip("netns del " + name) })
	for _, line := range []string{"netns add NAME", "link add NAME type veth peer name eth0 netns NAME", "link set NAME up",
		"addr add " + first + "/24 dev NAME", "addr add " + second + "/24 dev NAME",
		"-n NAME link set lo up", "-n NAME link set eth0 up", "-n NAME addr add " + own + "/24 dev eth0"} {
		if err := ip(strings.ReplaceAll(line, "NAME", name)); err != nil {
			t.Skipf("needs network namespaces: ip %s: %v", line, err)
		}
	}
	return name, own, first, second
}

// For a minute, the packets of the refresher do not reach NATS, or those of NATS do not reach the refresher, or the refresher stands still.
// Another member takes over. One member alone asks the upstream. The first one follows afterwards.
func TestFaultFleetOneSided(t *testing.T) {
	t.Parallel()
	x := newTrial(t, "cboe", "--cboe-requests-per-minute", "6000", "--gex-every", "5s")
	x.nats = []*natsServer{startNATS(t)}
	u := startAskedUpstream(t)
	at := func(address, to string) string {
		p := toxiproxy.NewProxy(x.proxies, address, address+":0", to)
		must(t, p.Start())
		t.Cleanup(p.Stop)
		return p.Listen
	}
	nats := map[*member]string{} // where each reaches it
	for i := range 2 {
		dir := t.TempDir()
		if i == 0 {
			storeDate(t, dir, "cboe")
		}
		name, own, upstream, server := namespace(t, i)
		m := x.add(false, dir, "--listen", own+":0", "--nats", "nats://"+at(server, x.nats[0].address),
			"--cboe-base-url", fmt.Sprintf("http://%s/%d", at(upstream, strings.TrimPrefix(u.url, "http://")), i)+quotesBase)
		m.network, nats[m] = name, server
		m.start()
		x.refreshes()
	}
	x.addEmpty(true)
	for _, m := range x.members {
		m.completes()
	}
	u.mu.Lock()
	u.quotes = 0
	u.mu.Unlock()
	turn := 0
	x.run(2, 3, fault{"a fault of one side", func(x *trial, refresher, _ *member) {
		turn++
		begin, end := refresher.suspend, refresher.resume
		if turn < 3 {
			rule := []string{"-n " + refresher.network + " rule %s to %s blackhole", "rule %s from %s blackhole"}[turn-1]
			rules := func(what string) {
				if err := ip(fmt.Sprintf(rule, what, nats[refresher])); err != nil {
					t.Error(err)
				}
			}
			begin, end = func() { rules("add") }, sync.OnceFunc(func() { rules("del") })
			defer end() // if the test fails
		}
		x.takeover(refresher, begin)
		if turn < 3 {
			x.until("the refresher has ended its refreshes", func() bool { return !refresher.leads() })
		}
		x.seconds(50, 60)
		end()
	}})
	requests, turns := u.oneAsker(t, x.members[:2])
	figure(t, "%d requests to the upstream in %d turns of two members, one at a time", requests, turns)
}
