package e2e

import (
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An edge needs nothing but the URL, the name of the source and an empty directory. It becomes ready with the current
// answers, gets the whole history, and all members serve equal bytes.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "simulated", "--sim-speed", "0", "--sim-start", marketStart)
	first := f.add(true, filepath.Join(t.TempDir(), "data"))
	first.start() // before the fleet has a refresher
	if !first.p.answers("/readyz", http.StatusServiceUnavailable) {
		t.Error("an edge without answers is ready")
	}
	refresher := f.add(false, storedDay(t))
	refresher.start()
	f.add(false, filepath.Join(t.TempDir(), "data")).start()
	late := f.add(true, filepath.Join(t.TempDir(), "data"))
	late.start()
	for _, m := range f.members {
		m.completes()
	}
	dates := refresher.dates()
	if len(dates) != storedBefore+1 {
		t.Fatalf("the refresher has %d dates", len(dates))
	}
	for _, m := range f.members {
		f.until(m.name+" has the whole history", func() bool {
			return slices.Equal(m.dates(), dates) && m.p.answers(datePath+dates[0], http.StatusOK) && m.p.answers(trackPath+"?date="+marketDay, http.StatusOK)
		})
	}
	f.agree()
	f.identical(refresher.everyTarget())
	var order []string // of the dates, as the edge stored them
	for _, m := range regexp.MustCompile(`msg=stored file=\S+/([\d-]+)/gex-spx\n`).FindAllStringSubmatch(late.p.logged(), -1) {
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
		if !late.p.answers("/readyz", http.StatusOK) {
			t.Error("an edge with a full directory is not ready")
		}
		f.identical([]string{gammaPath, datePath + dates[0], flowPath + "?limit=7"})
		late.join()
	})
	if err := f.troubles(); err != nil {
		t.Error(err)
	}
	for _, m := range f.members {
		m.stop()
		verified(t, m.dir)
	}
}

// Two simulated markets cannot share a fleet, and neither can a simulated and a real one: their buckets have other names.
func TestFleetRefusesAnotherMarket(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "simulated", "--sim-speed", "0", "--sim-start", marketStart)
	f.add(false, storedDay(t)).start()
	f.refreshes()
	other := f.add(false, filepath.Join(t.TempDir(), "data"), "--sim-seed", "2")
	other.start()
	other.p.until("the other market is refused", func() bool {
		return strings.Contains(other.p.logged(), "the fleet serves the simulated market, seed 1")
	})
	if last, _ := other.lastLease(); last.number != 0 {
		t.Errorf("the other market holds lease %d", last.number)
	}
	live := *f
	live.source, live.members = "cboe", nil
	edge := live.add(true, filepath.Join(t.TempDir(), "data"))
	edge.start()
	edge.p.until("the edge of a real market waits", func() bool { return strings.Contains(edge.p.logged(), "waits for a refresher") })
	if !edge.p.answers("/readyz", http.StatusServiceUnavailable) || !edge.p.answers(gammaPath, http.StatusServiceUnavailable) {
		t.Error("the edge of a real market has an answer of a simulated one")
	}
}
