package plain

import (
	"math"
	"testing"
	"time"

	"strikecache/compute"
)

// Tuesday 2026-08-11, 14:00 New York (daylight saving: UTC-4).
var (
	today = compute.NewDate(2026, 8, 11)
	asOf  = time.Date(2026, 8, 11, 18, 0, 0, 0, time.UTC)
)

func unknown() compute.Quote {
	nan := math.NaN()
	return compute.Quote{Bid: nan, Ask: nan, Last: nan, Volume: nan, IV: nan, Gamma: nan, Delta: nan}
}

func option(root string, d compute.Date, right compute.Right, strike float64, q compute.Quote) compute.Contract {
	s := compute.PM
	if root == "SPX" {
		s = compute.AM
	}
	return compute.Contract{Root: root, Expiration: d, Strike: strike, Right: right, Settlement: s, Quote: q}
}

func published(iv, openInterest, volume, gamma float64) compute.Quote {
	q := unknown()
	q.IV, q.OpenInterest, q.Volume, q.Gamma = iv, openInterest, volume, gamma
	return q
}

func quoted(price float64) compute.Quote {
	q := unknown()
	q.Bid, q.Ask, q.OpenInterest = price-0.01, price+0.01, 1
	return q
}

func chainOf(spot float64, contracts ...compute.Contract) *compute.Chain {
	return &compute.Chain{
		Underlying: compute.Underlying{Symbol: "SPX", Spot: spot, AsOf: asOf, CapturedAt: asOf.Add(20 * time.Minute)},
		Contracts:  contracts, Listed: len(contracts),
	}
}

func near(t *testing.T, name string, got *float64, want, tolerance float64) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s is null, want %v", name, want)
	}
	if !(math.Abs(*got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v", name, *got, want)
	}
}

// One put at 6900 and one call at 7100 of the same iv and open interest, without carry or rate.
func TestTwoContracts(t *testing.T) {
	d := compute.NewDate(2026, 8, 21)
	r := Gamma(Input{Chain: chainOf(7000,
		option("SPXW", d, compute.Put, 6900, published(0.2, 50, 10, 0.0012)),
		option("SPXW", d, compute.Call, 7100, published(0.2, 50, 30, 0.0015)),
	)})
	years := (10*24 + 2) * 3600.0 / (365 * 24 * 3600) // 14:00 on the 11th to 16:00 on the 21st
	v := 0.2 * math.Sqrt(years)
	dollars := func(strike, v float64) float64 { // gamma * OI * 100 * S^2 / 100
		d1 := math.Log(7000/strike)/v + v/2
		return math.Exp(-d1*d1/2) / math.Sqrt(2*math.Pi) / (7000 * v) * 50 * 7000 * 7000
	}
	call, put := dollars(7100, v), -dollars(6900, v)
	near(t, "call", r.Call, call, 1e-3)
	near(t, "put", r.Put, put, 1e-3)
	near(t, "net", r.Net, call+put, 1e-3)
	near(t, "gross", r.Gross, call-put, 1e-3)
	near(t, "tilt", r.Tilt, call/-put, 1e-12)

	// G is 0 where the two |d1| are equal: ln(S'^2/(7100*6900)) = -v^2.
	flip := math.Sqrt(7100*6900) * math.Exp(-v*v/2)
	near(t, "flip", r.Flip, flip, 1e-6)
	near(t, "distance", r.FlipDistancePct, (7000-flip)/7000*100, 1e-9)
	if r.FlipStatus != "found" || len(r.Flips) != 1 || r.Flips[0].Direction != "negative_to_positive" {
		t.Errorf("flips: %s %+v", r.FlipStatus, r.Flips)
	}
	near(t, "band low", &r.FlipBand.Low, math.Sqrt(7100*6900)*math.Exp(-1.21*v*v/2), 1e-6)
	near(t, "band high", &r.FlipBand.High, math.Sqrt(7100*6900)*math.Exp(-0.81*v*v/2), 1e-6)

	near(t, "call wall", r.CallWall, 7100, 0)
	near(t, "put wall", r.PutWall, 6900, 0)
	if s := r.Scenarios[3]; s.Name != "ex_nearest_expiration" || s.Net != nil || s.Flip != nil {
		t.Errorf("the only expiration left out: %+v", s)
	}
	near(t, "published", r.Conventions.PublishedGamma.Net, (0.0015-0.0012)*50*7000*7000, 1e-3)
	near(t, "volume weighted", r.Conventions.VolumeWeighted.Net, call*30/50+put*10/50, 1e-3)
	w := 0.2 * math.Sqrt(8.0/262) // 11 12 13 14, 17 18 19 20
	near(t, "perfiliev", r.Conventions.Perfiliev.Net, dollars(7100, w)-dollars(6900, w), 1e-3)

	// Sessions: 2 of 6.5 hours are left of the 11th, and 8 follow. Both strikes are 100 away: the lower.
	near(t, "move", r.ExpectedMove1D, 7000*v/math.Sqrt(8+2/6.5), 1e-9)
	if row := r.ByExpiration[0]; row.ForwardSource != sourceNone || row.Forward != 7000 || row.Used != 2 {
		t.Errorf("by expiration: %+v", row)
	}
	if len(r.Profile) != 121 || len(r.ByStrike) != 2 || r.Quality.QuoteAgeSeconds != 1200 || r.OIState != "settled" {
		t.Errorf("profile %d, strikes %d, %+v", len(r.Profile), len(r.ByStrike), r.Quality)
	}
}

// A group priced exactly by Black at F = 7010 and v = 0.03 must give both back.
func TestParityAndImplied(t *testing.T) {
	const forward, v, rate = 7010.0, 0.03, 0.04
	d, beyond := compute.NewDate(2026, 8, 21), compute.NewDate(2026, 9, 18)
	years := (10*24 + 2) * 3600.0 / (365 * 24 * 3600)
	var contracts []compute.Contract
	contracts = append(contracts, option("SPX", d, compute.Call, 7000, published(0.1, 1, 0, 0)))
	for _, k := range []float64{6950, 7000, 7050} {
		d1 := math.Log(forward/k)/v + v/2
		n := func(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
		call := math.Exp(-rate*years) * (forward*n(d1) - k*n(d1-v))
		put := call - math.Exp(-rate*years)*(forward-k)
		contracts = append(contracts, option("SPXW", d, compute.Call, k, quoted(call)),
			option("SPXW", d, compute.Put, k, quoted(put)))
	}
	contracts = append(contracts, option("SPXW", beyond, compute.Call, 7000, published(0.1, 1, 0, 0)))
	r := Gamma(Input{Chain: chainOf(7000, contracts...), Rate: rate})
	rows := r.ByExpiration
	if rows[0].ForwardSource != sourceOther || rows[1].ForwardSource != sourceParity ||
		rows[2].ForwardSource != sourceExtrapolated {
		t.Fatalf("sources: %+v", rows)
	}
	near(t, "forward", &rows[1].Forward, forward, 1e-8)
	near(t, "other settlement", &rows[0].Forward, forward, 1e-8)
	later := (38*24 + 2) * 3600.0 / (365 * 24 * 3600)
	near(t, "extrapolated", &rows[2].Forward, 7000*math.Exp(math.Log(forward/7000)*later/years), 1e-8)
	if got := r.Quality.ShareOpenInterest[stepImplied]; math.Abs(got-75) > 1e-12 { // 6 of 8
		t.Errorf("implied share %v", got)
	}
	for _, k := range []float64{6000, 6950, 7009, 7010, 7011, 7050, 7700} {
		got, ok := implied(black(forward, k, v, k >= forward), forward, k, k >= forward)
		if !ok || math.Abs(got-v) > 1e-11 {
			t.Errorf("implied at %v = %v, %v", k, got, ok)
		}
	}
	if _, ok := implied(forward, forward, 7050, true); ok {
		t.Error("a call worth its forward has no volatility")
	}
}

// Between (0, 0) and a parity forward at T = 4 the carry at T = 1 is a quarter; beyond, b is flat.
func TestOtherForward(t *testing.T) {
	p := &group{root: "SPXW", expiration: 100, settlement: compute.PM, years: 4, logCarry: 0.08}
	q := &group{root: "SPX", expiration: 200, settlement: compute.AM, years: 6, logCarry: 0.10}
	for _, c := range []struct {
		years, want float64
		source      string
	}{{1, 0.02, sourceInterpolated}, {5, 0.09, sourceInterpolated}, {12, 0.20, sourceExtrapolated}} {
		g := &group{root: "SPXW", expiration: 300, settlement: compute.PM, years: c.years}
		got, source := otherForward(g, []*group{p, q}, nil)
		if math.Abs(got-c.want) > 1e-15 || source != c.source {
			t.Errorf("T = %v: %v %s", c.years, got, source)
		}
	}
	previous := map[compute.Series]float64{{Root: "SPXW", Expiration: 100}: 0.03}
	if got, source := otherForward(p, nil, previous); math.Abs(got-0.12) > 1e-15 || source != sourcePrevious {
		t.Errorf("previous: %v %s", got, source)
	}
}

func TestSkippedAndZeroDTE(t *testing.T) {
	r := Gamma(Input{Chain: chainOf(7000,
		option("SPX", today, compute.Call, 7000, published(0.2, 5, 0, 0)),  // settled at 09:30
		option("SPXW", today, compute.Call, 7000, published(0.2, 5, 0, 0)), // two hours left
		option("SPXW", today, compute.Put, 7000, published(0.2, 0, 0, 0)),  // no open interest
		option("SPXW", today+1, compute.Put, 7000, published(0, 5, 0, 0)),  // no volatility
	)})
	if r.Skipped.Settled != 1 || r.Skipped.NoOpenInterest != 1 || r.Skipped.NoVolatility != 1 || r.Used != 1 {
		t.Errorf("skipped %+v, used %d", r.Skipped, r.Used)
	}
	if r.ZeroDTE.Contracts != 1 || *r.ZeroDTE.SharePct != 100 || r.ZeroDTE.Net != *r.Net || r.ZeroDTE.Flip != nil {
		t.Errorf("zero dte %+v", r.ZeroDTE)
	}
	if r.FlipStatus != "none_all_positive" || *r.Regime != "positive" || r.Tilt != nil || r.PutWall != nil {
		t.Errorf("%s %s", r.FlipStatus, *r.Regime)
	}
	if got := r.Quality.ShareOpenInterest[stepNone]; got != 50 {
		t.Errorf("share of open interest without volatility: %v", got)
	}
	empty := Gamma(Input{Chain: chainOf(7000)})
	if empty.FlipStatus != "insufficient_data" || empty.Net != nil || empty.Regime != nil || empty.FlipBand != nil {
		t.Errorf("empty: %+v", empty)
	}
}

// Within 15 minutes of settlement the published iv is taken at 15 minutes, T itself is not.
func TestFloor(t *testing.T) {
	c := option("SPXW", today, compute.Call, 7000, published(0.2, 1, 0, 0))
	g := &group{contracts: []*compute.Contract{&c}, seconds: 60, years: 60 / (365 * 86400.0), forward: 7000}
	s := volatilities(g, 0.04)[0]
	near(t, "v", &s.v, 0.2*math.Sqrt(0.25/24/365), 1e-15)
	if !s.floored || s.step != stepPublished {
		t.Errorf("%+v", s)
	}
	g.seconds = 900
	if s := volatilities(g, 0.04)[0]; s.floored {
		t.Error("15 minutes are not below the floor")
	}
}

func TestInterpolate(t *testing.T) { // halfway in the logarithm, halfway in the variance
	quoted := []smile{{strike: 6400, v: 0.1}, {strike: 10000, v: 0.2}}
	for strike, want := range map[float64]float64{8000: math.Sqrt(0.025), 6000: 0.1, 11000: 0.2} {
		if got := interpolate(quoted, strike, 7000); math.Abs(got-want) > 1e-15 {
			t.Errorf("v(%v) = %v, want %v", strike, got, want)
		}
	}
}

func TestClock(t *testing.T) {
	labor := compute.NewDate(2026, 9, 7)
	friday := compute.NewDate(2026, 11, 27) // early close
	c := clock{closed: map[compute.Date]bool{labor: true}, early: map[compute.Date]bool{friday: true}}
	for _, x := range []struct{ at, date, state string }{
		{"2026-09-08T11:15:00Z", "2026-09-04", "settled"},  // Tuesday 07:15, over the holiday
		{"2026-09-08T11:14:59Z", "2026-09-03", "updating"}, // one second before
		{"2026-09-08T04:00:00Z", "2026-09-03", "updating"}, // midnight
		{"2026-09-08T03:59:59Z", "2026-09-03", "settled"},  // still the holiday: what Friday had
		{"2026-09-05T20:00:00Z", "2026-09-03", "settled"},  // Saturday
		{"2026-12-01T12:14:59Z", "2026-11-27", "updating"}, // winter: 07:14:59
	} {
		at, err := time.Parse(time.RFC3339, x.at)
		if err != nil {
			t.Fatal(err)
		}
		if d, state := c.openInterestDate(at); d.String() != x.date || state != x.state {
			t.Errorf("%s: %s %s, want %s %s", x.at, d, state, x.date, x.state)
		}
	}
	if d := c.lastSession(labor); d.String() != "2026-09-04" {
		t.Errorf("last session %s", d)
	}
	if got := c.settlement(friday, compute.PM).UTC().Format(time.RFC3339); got != "2026-11-27T18:00:00Z" {
		t.Errorf("early close %s", got)
	}
	if got := c.settlement(labor+1, compute.AM).UTC().Format(time.RFC3339); got != "2026-09-08T13:30:00Z" {
		t.Errorf("open %s", got)
	}
	if got := c.unexpired(friday, c.close(friday).Add(-105*time.Minute)); got != 0.5 {
		t.Errorf("half of a short session: %v", got)
	}
	if got := weekdaysBetween(labor-3, labor+1); got != 2 { // Friday and the holiday
		t.Errorf("weekdays %d", got)
	}
}

func TestGrid(t *testing.T) { // 3 % of 7000 is 210, so 420 steps of one point
	points := grid(7000)
	if math.Abs(points[0]-5950) > 1e-9 || math.Abs(points[len(points)-1]-8050) > 1e-9 {
		t.Errorf("ends %v %v", points[0], points[len(points)-1])
	}
	ones := 0
	for i := 1; i < len(points); i++ {
		step := points[i] - points[i-1]
		if !(step > 0) || step > 5+1e-9 {
			t.Errorf("step %v at %v", step, points[i])
		}
		if step == 1 {
			ones++
		}
	}
	if ones != 420 {
		t.Errorf("%d steps of one point", ones)
	}
}

func TestSmallRules(t *testing.T) {
	if got := percentile([]float64{3, 1, 2, 4}, 0.5); got != 2.5 {
		t.Errorf("median %v", got)
	}
	if got := percentile([]float64{0, 10, 20}, 0.95); math.Abs(got-19) > 1e-12 {
		t.Errorf("p95 %v", got)
	}
	rows := []StrikeRow{{Strike: 90, Net: 5}, {Strike: 110, Net: 5}, {Strike: 120, Net: 5}}
	net := func(x StrikeRow) float64 { return x.Net }
	near(t, "tie: lower", best(rows, 100, net), 90, 0)
	near(t, "tie: nearest", best(rows, 111, net), 110, 0)
}
