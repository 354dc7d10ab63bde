package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

// Changes of open interest rest on open interest alone: a contract that has no volatility on one day or on both counts. One whose open
// interest cannot be read on either day is left out and counted, unless it has settled.
func TestOpenInterestChangesRestOnOpenInterestAlone(t *testing.T) {
	const dark, unreadNow, unreadBefore, settled = "SPXW260814C07000000", "SPXW260821C07000000", "SPXW260821P07000000", "SPXW260811C07000000"
	before := build(t, index(7000, "2026-08-11T19:00:00Z"), row{dark, blank(10)}, row{unreadNow, with(60, 62, 0.17)},
		row{unreadBefore, blank(math.NaN())}, row{settled, blank(math.NaN())}, row{"AAPL260821C00100000", blank(math.NaN())})
	reference := compute.GammaExposure(compute.GammaInput{Chain: before, Calendar: cal, RiskFreeRate: 0.04}).State
	now := build(t, index(7000, "2026-08-12T19:00:00Z"), row{dark, blank(35)}, row{unreadNow, blank(-1)}, row{unreadBefore, blank(7)})
	r := compute.GammaExposure(compute.GammaInput{Chain: now, Calendar: cal, RiskFreeRate: 0.04, Reference: reference})
	equal(t, "changes", string(marshal(t, r.Data.OIChanges)),
		`[{"contract":"SPXW260814C07000000","strike":7000,"expiration":"2026-08-14","option_type":"call","from":10,"to":35}]`)
	equal(t, "unread", *r.Quality.InterestUnread, 2)
	alone := compute.GammaExposure(compute.GammaInput{Chain: now, Calendar: cal, RiskFreeRate: 0.04})
	equal(t, "unread without a reference", alone.Quality.InterestUnread == nil, true)
}
