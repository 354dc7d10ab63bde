package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An edge needs nothing but the URL, the name of the source and an empty directory. It becomes ready with the current
// answers, gets the whole history, and all members serve equal bytes.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, []*natsServer{startNATS(t)}, "simulated", "--sim-speed", "0", "--sim-start", marketStart)
	if first := f.addEmpty(true); !first.p().answers("/readyz", http.StatusServiceUnavailable) { // before the fleet has a refresher
		t.Error("an edge without answers is ready")
	}
	refresher := f.add(false, storedDay(t))
	refresher.start()
	f.addEmpty(false)
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
	t.Run("an edge restarts without NATS", func(t *testing.T) {
		late.stop()
		late.cut(reset)
		late.start()
		if !late.p().answers("/readyz", http.StatusOK) {
			t.Error("an edge with a full directory is not ready")
		}
		f.identical([]string{gammaPath, datePath + dates[0], flowPath + "?limit=7"})
		late.join()
	})
	f.faultless()
	for _, m := range f.members {
		m.stop()
		verified(t, m.dir)
	}
}

// Two simulated markets cannot share a fleet, and neither can a simulated and a real one: their buckets have other names.
func TestFleetRefusesAnotherMarket(t *testing.T) {
	t.Parallel()
	f := newFleet(t, []*natsServer{startNATS(t)}, "simulated", "--sim-speed", "0", "--sim-start", marketStart)
	f.add(false, storedDay(t)).start()
	f.refreshes()
	other := f.addEmpty(false, "--sim-seed", "2")
	other.p().until("the other market is refused", func() bool {
		return strings.Contains(other.log(), "the fleet serves the simulated market, seed 1")
	})
	if n := other.lastLease(); n != 0 {
		t.Errorf("the other market holds lease %d", n)
	}
	edge := newFleet(t, f.nats, "cboe").addEmpty(true)
	edge.p().until("the edge of a real market waits", func() bool { return strings.Contains(edge.log(), "waits for a refresher") })
	if !edge.p().answers("/readyz", http.StatusServiceUnavailable) || !edge.p().answers(gammaPath, http.StatusServiceUnavailable) {
		t.Error("the edge of a real market has an answer of a simulated one")
	}
}
