package compute_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/compute"
	"strikecache/refresh/cboe"
)

// recordedChain decodes a recorded option chain.
func recordedChain(t *testing.T, name string) *compute.Chain {
	t.Helper()
	chain, err := cboe.DecodeChain(testkit.Document(t, "recorded/"+name))
	must(t, err)
	return chain
}

const spxChain = "replay/options/_SPX.json.gz" // 2026-08-11, after the close

// The numbers of METHODS.md §7 agree with those of numpy programs on the recorded chain.
func TestRecordedConventions(t *testing.T) {
	chain := recordedChain(t, spxChain)
	equal(t, "rows", chain.Listed, 30_692)
	equal(t, "skipped", chain.Skipped.Total(), 0)
	r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: 0.04})
	var oracle struct {
		Unsettled struct {
			Net float64 `json:"net_gex"`
		} `json:"vendor_gamma_excl_settled"`
	}
	must(t, json.Unmarshal(testkit.Document(t, "oracle/gex-2026-08-11.json"), &oracle))
	moved := float64(r.Data.EffectiveSpot / r.Data.Spot) // the programs used the published level
	near(t, "published gamma", r.Data.Conventions[1].Net, oracle.Unsettled.Net*moved*moved, 1e-9*oracle.Unsettled.Net)
	near(t, "perfiliev flip", r.Data.Conventions[2].Flip, 7632.5, 0.05)
	equal(t, "settled", r.Quality.Contracts.Skipped.Settled, 562)
	equal(t, "session", r.Data.SessionDate, day("2026-08-11"))
	equal(t, "settle date", r.Data.OISettleDate, day("2026-08-10"))
	near(t, "gap", r.Quality.SpotGap, 0, 0.02) // the forwards imply the index within 2 bp
	equal(t, "source", r.Data.SpotSource, compute.SpotImplied)

	// Of every row, the market has moved by more than the spread since the trade: no side is known.
	f := compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: cal})
	equal(t, "items", len(f.Items), compute.MaxFlowItems)
	for _, it := range f.Items {
		equal(t, fmt.Sprint(it.Contract, ", last traded ", it.ObservedAt), it.Direction, "unknown")
	}
}

// Max pain of every date, and of every root and date, with the whole curve, is that of an independent program.
func TestRecordedMaxPain(t *testing.T) {
	type pain struct {
		MaxPain float64 `json:"max_pain"`
		Call    float64 `json:"call_oi"`
		Put     float64 `json:"put_oi"`
		Payout  float64 `json:"min_payout"`
		Curve   [][2]float64
	}
	var oracle struct {
		ByDate     map[string]pain `json:"by_date"`
		ByRootDate map[string]pain `json:"by_root_date"`
	}
	must(t, json.Unmarshal(testkit.Document(t, "oracle/maxpain-2026-08-11.json"), &oracle))
	all := compute.MaxPains(recordedChain(t, spxChain), cal)
	compare := func(name string, side *compute.PainSide, want pain) {
		nearly(t, name+" calls", *side.CallOpenInterest, want.Call, 0)
		nearly(t, name+" puts", *side.PutOpenInterest, want.Put, 0)
		if want.Call+want.Put == 0 {
			isNull(t, name, side.MaxPain)
			return
		}
		near(t, name, side.MaxPain, want.MaxPain, 0)
		near(t, name+" payout", side.Payout, want.Payout, 0)
		equal(t, name+" points", len(side.Curve), len(want.Curve))
		for i, p := range want.Curve {
			if got := side.Curve[i]; float64(got.Price) != p[0] || float64(got.Payout) != p[1] {
				t.Fatalf("%s: %+v, want %v", name, got, p)
			}
		}
	}
	equal(t, "dates", len(all), len(oracle.ByDate)-1) // without the session date, which has settled
	equal(t, "default", all[compute.DefaultMaxPain(all)].Expiration, day("2026-08-12"))
	sides := 0
	for _, p := range all {
		name := p.Expiration.String()
		want := oracle.ByDate[name]
		compare(name, &p.PainSide, want)
		row := all[0].Expirations[slices.IndexFunc(all[0].Expirations, func(e compute.PainExpiration) bool { return e.Expiration == p.Expiration })]
		nearly(t, name+" of all", *row.CallOpenInterest+*row.PutOpenInterest, want.Call+want.Put, 0)
		if row.MaxPain != nil {
			near(t, name+" of all", row.MaxPain, want.MaxPain, 0)
		}
		for root, side := range map[string]*compute.PainSide{"SPX ": p.BySettlement.AM, "SPXW ": p.BySettlement.PM} {
			if want, ok := oracle.ByRootDate[root+name]; ok != (side != nil) {
				t.Errorf("%s%s: listed is %v", root, name, !ok)
			} else if ok {
				compare(root+name, side, want)
				sides++
			}
		}
		if name == "2026-09-17" { // listed, without open interest
			isNull(t, name, p.MaxPain)
		}
	}
	equal(t, "roots and dates", sides, len(oracle.ByRootDate)-1)
}
