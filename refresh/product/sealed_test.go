package product

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// madeInput is an input of an answer by its name in the receipt: a document, one of the session before, or a state.
type madeInput struct {
	Name string
	Body []byte
}

// sealMade computes an answer of a resource from inputs, and seals it, as the refresher does. The rate is a parameter of the products that
// have one. It also returns what the answer leaves to the series of its resource.
func sealMade(t testing.TB, resource string, rate float64, made ...madeInput) (*snapshots.Edition, []byte) {
	t.Helper()
	p := Named(resource)
	in := &Inputs{at: time.Date(2026, time.December, 1, 12, 0, 0, 0, time.UTC), calendar: calendar, source: "made"}
	for _, m := range made {
		d := feed.Stored(snapshots.StoredInput{Input: snapshots.Input{Name: m.Name, SHA256: snapshots.Digest(m.Body)}}, nil)
		if d.Body = m.Body; m.Name == feed.StateDir+closedDates {
			var c closures
			must(t, json.Unmarshal(m.Body, &c))
			in.calendar = compute.NewCalendar(c.Closed, c.Early)
		}
		in.Documents = append(in.Documents, d)
	}
	switch method, _, _ := strings.Cut(p.Method, "/"); method {
	case "gex", "summary", "track", "strikes", "levels", "volatility":
		in.parameters.RiskFreeRate = &rate
		if compute.UnderlyingOf(p.Underlying).American() {
			in.parameters.Exercise = "american_as_european"
		}
	case "vix":
		in.parameters.StaleSessionsTo = new(compute.NewDate(2026, time.December, 1))
	}
	a, err := p.computed(in)
	if err == nil { // of all variants only the one with most in it, and without the slow codings
		name := cmp.Or(a.storedVariant, a.byDefault)
		a.Product, a.Inputs, a.byDefault, a.cuts, a.variants = p, in, name, nil, map[string]*Variant{name: a.variants[name]}
		a.variants[name].rare = true
		err = a.encode()
	}
	if err == nil {
		err = a.Seal(0, snapshots.Freshness{State: "closed"})
	}
	if err != nil {
		t.Fatalf("%s: %v", resource, err)
	}
	return a.Edition, a.summary
}

// flowStateFrom returns the state of a flow of a chain.
func flowStateFrom(symbol string, flow *snapshots.Snapshot) madeInput {
	d := flowStateOf(symbol, answeredBy(flow))
	return madeInput{d.Name, d.Body}
}

// underlyingsStateOf returns the state of the table of underlyings with the row of one underlying.
func underlyingsStateOf(t testing.TB, symbol string, gamma, volatility *snapshots.Snapshot) madeInput {
	t.Helper()
	row, err := rowOf(symbol, answeredBy(gamma), answeredBy(volatility))
	must(t, err)
	body, err := json.Marshal([]underlyingRow{row})
	must(t, err)
	return madeInput{feed.StateDir + underlyingsState, body}
}
