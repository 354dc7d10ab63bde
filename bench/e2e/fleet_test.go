package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An edge needs nothing but the URL, the name of the source and an empty directory. It becomes ready with the current
// answers, gets the whole history, and all members serve equal bytes. Another market cannot share the fleet.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, []*natsServer{startNATS(t)}, "simulated", "--sim-speed", "0", "--sim-start", marketStart)
	if first := f.addEmpty(true); !first.p().answers("/readyz", http.StatusServiceUnavailable) { // before the fleet has a refresher
		t.Error("an edge without answers is ready")
	}
	refresher := f.add(false, storedDay(t))
	refresher.start()
	f.refreshes() // before a member with fewer dates may
	late := f.addEmpty(true, "--log-level", "debug")
	for _, m := range f.members {
		m.completes()
	}
	dates := refresher.p().sessions()
	if len(dates) != storedBefore+1 {
		t.Fatalf("the refresher has %d dates", len(dates))
	}
	for _, m := range f.members {
		f.until(m.name+" has the whole history", func() bool {
			p := m.p()
			return slices.Equal(p.sessions(), dates) && p.answers(datePath+dates[0], http.StatusOK) && p.answers(trackPath+"?date="+marketDay, http.StatusOK)
		})
	}
	f.agree()
	f.identical(append([]string{datePath + dates[0], trackPath + "?date=" + marketDay, flowPath + "?limit=50"}, targets...))
	var order []string // of the dates, as the edge stored them
	for _, m := range regexp.MustCompile(`msg=stored file=\S+/([\d-]+)/gex-spx\n`).FindAllStringSubmatch(late.log(), -1) {
		order = append(order, m[1])
	}
	slices.Reverse(order)
	if !slices.Equal(order, dates) {
		t.Errorf("the edge stored the dates in the order %q, want the newest first", order)
	}
	t.Run("an edge restarts without NATS", func(t *testing.T) { // the others may get new answers meanwhile
		client := newClient()
		defer client.CloseIdleConnections()
		serves := func() { // answers that are no older than those before, and the same bytes as other members have
			for _, target := range []string{gammaPath, datePath + dates[0], flowPath + "?limit=7"} {
				for _, coding := range codings {
					if err := late.ask(client, target, coding); err != nil {
						t.Error(err)
					}
				}
			}
		}
		serves()
		late.stop()
		late.cut(reset)
		late.start()
		if !late.p().answers("/readyz", http.StatusOK) {
			t.Error("an edge with a full directory is not ready")
		}
		serves()
		late.p().until("it says that it has no fleet", func() bool { return late.p().degraded() == "fleet" })
		t.Run("its page says the role", func(t *testing.T) { pageSaysTheRole(t, late.p().url) })
		late.join()
	})
	t.Run("members of other markets", func(t *testing.T) { // a simulated and a real market have buckets of other names
		seed := newFleet(t, f.nats, "simulated").addEmpty(false, "--sim-seed", "2")
		seed.p().until("the other simulated market is refused", func() bool {
			return strings.Contains(seed.log(), "the fleet serves the simulated market, seed 1")
		})
		if n := seed.lastLease(); n != 0 {
			t.Errorf("the other market holds lease %d", n)
		}
		other := newFleet(t, f.nats, "cboe").addEmpty(true)
		other.p().until("the edge of a real market waits", func() bool { return strings.Contains(other.log(), "waits for a refresher") })
		if !other.p().answers("/readyz", http.StatusServiceUnavailable) || !other.p().answers(gammaPath, http.StatusServiceUnavailable) {
			t.Error("the edge of a real market has an answer of a simulated one")
		}
	})
	f.faultless()
	for _, m := range f.members {
		m.stop()
		verified(t, m.dir)
	}
}

// pageSaysTheRole checks that the page of an edge says the role, and asks for it after its first chart.
func pageSaysTheRole(t *testing.T, url string) {
	b := browse(t, url)
	b.until("the page says the role", `document.querySelector("#role strong").innerText === "edge"`)
	asked := eval[[]string](b, `asked.map(a => a.url)`)
	if first := asked[0]; !strings.HasPrefix(first, trackPath) && !strings.HasPrefix(first, gammaPath) || !eval[bool](b, `!!document.querySelector(".plot canvas")`) {
		t.Errorf("the page asks for the role before its first chart: %q", asked)
	}
	b.until("every panel has its answer", allLoaded)
	b.clean()
}
