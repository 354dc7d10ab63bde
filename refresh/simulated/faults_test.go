package simulated_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

func TestFaultsWithoutADocument(t *testing.T) {
	m := newMarket(1)
	for fault, reason := range map[simulated.Fault]upstream.Reason{
		simulated.Refuse: upstream.Unreachable, simulated.Reset: upstream.Truncated, simulated.Forbidden: upstream.Refused,
		simulated.Throttle: upstream.Throttled, simulated.RedirectLoop: upstream.Redirects,
		simulated.TruncatedGzip: upstream.Truncated, simulated.HugeBody: upstream.TooLarge,
	} {
		m.Fail(spxQuote, fault, 1)
		doc, err := m.Fetch(t.Context(), spxQuote, nil)
		var e *upstream.Error
		if doc != nil || !errors.As(err, &e) || e.Reason != reason || e.Name != spxQuote || e.Err == nil {
			t.Errorf("fault %d: %v", fault, err)
		}
		if want := map[bool]time.Duration{true: simulated.RetryAfter}[fault == simulated.Throttle]; err != nil && e.RetryAfter != want {
			t.Errorf("fault %d: retry after %s", fault, e.RetryAfter)
		}
		if _, err := m.Fetch(t.Context(), spxQuote, nil); err != nil {
			t.Errorf("fault %d lasts longer than once: %v", fault, err)
		}
	}
}

func TestFaultsAreCountedAndCleared(t *testing.T) {
	m := newMarket(1)
	failures := func(name upstream.Name, n int) (count int) {
		for range n {
			if _, err := m.Fetch(t.Context(), name, nil); err != nil {
				count++
			}
		}
		return count
	}
	m.Fail(spxQuote, simulated.Refuse, 3)
	if n, other := failures(spxQuote, 5), failures("quotes/XLK.json", 2); n != 3 || other != 0 {
		t.Errorf("%d failures, %d of another document", n, other)
	}
	m.Fail(spxQuote, simulated.Refuse, -1)
	if n := failures(spxQuote, 5); n != 5 {
		t.Errorf("%d failures without a limit", n)
	}
	if _, err := m.At(spxQuote, ny("2026-08-11 12:00:00")); err != nil {
		t.Errorf("At has a fault: %v", err)
	}
	m.Fail(spxQuote, simulated.NoFault, 0)
	if n := failures(spxQuote, 2); n != 0 {
		t.Errorf("%d failures after the fault was taken away", n)
	}
	m.Fail("", simulated.Refuse, -1)
	m.Fail(spxQuote, simulated.Forbidden, 1)
	if _, err := m.Fetch(t.Context(), spxQuote, nil); upstream.ReasonOf(err) != upstream.Refused {
		t.Errorf("the document's own fault comes first: %v", err)
	}
	if n := failures(spxQuote, 2) + failures(spxChain, 2); n != 4 {
		t.Errorf("%d failures of all documents", n)
	}
	m.ClearFaults()
	if n := failures(spxQuote, 2); n != 0 {
		t.Errorf("%d failures after all faults were cleared", n)
	}
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMarket(1)
		m.Fail(spxQuote, simulated.Stall, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		_, err := m.Fetch(ctx, spxQuote, nil)
		if upstream.ReasonOf(err) != upstream.TimedOut || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 20*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		if _, err := m.Fetch(ctx, spxQuote, nil); upstream.ReasonOf(err) != upstream.TimedOut {
			t.Errorf("with a context that has ended: %v", err)
		}
		if _, err := m.Fetch(t.Context(), spxQuote, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// spoiled fetches a document with a fault, and checks that it does not spoil the next one.
func spoiled(t *testing.T, m *simulated.Market, name upstream.Name, fault simulated.Fault) (bad, good *upstream.Document) {
	t.Helper()
	m.Fail(name, fault, 1)
	bad, err := m.Fetch(t.Context(), name, nil)
	if err != nil {
		t.Fatalf("%s with fault %d: %v", name, fault, err)
	}
	good, err = m.Fetch(t.Context(), name, bad)
	if err != nil {
		t.Fatalf("%s after fault %d: %v", name, fault, err)
	}
	if bad.Name != name || bad.ETag == good.ETag {
		t.Errorf("%s with fault %d has name %s and the ETag of the good one: %v", name, fault, bad.Name, bad.ETag == good.ETag)
	}
	return bad, good
}

func TestSpoiledDocuments(t *testing.T) {
	m := newMarket(1)
	bad, good := spoiled(t, m, spxChain, simulated.HTMLPage)
	if _, _, err := cboe.DecodeChain(bad.Body); !errors.Is(err, cboe.ErrHTML) {
		t.Errorf("page: %v", err)
	}
	if bad, _ = spoiled(t, m, spxChain, simulated.EmptyOptions); !bytes.Contains(bad.Body, []byte(`"options":[]`)) || !json.Valid(bad.Body) {
		t.Errorf("empty options: %.200s", bad.Body)
	}
	if _, _, err := cboe.DecodeChain(bad.Body); !errors.Is(err, compute.ErrEmptyChain) {
		t.Errorf("empty options: %v", err)
	}
	full, _, err := cboe.DecodeChain(good.Body)
	if err != nil {
		t.Fatal(err)
	}
	bad, _ = spoiled(t, m, spxChain, simulated.Shrink)
	part, _, err := cboe.DecodeChain(bad.Body)
	if err != nil || part.Listed != (full.Listed+9)/10 || !json.Valid(bad.Body) {
		t.Errorf("shrunk: %d of %d rows, %v", part.Listed, full.Listed, err)
	}
	bad, _ = spoiled(t, m, spxChain, simulated.GarbageNumbers)
	rough, _, err := cboe.DecodeChain(bad.Body)
	if err != nil || !json.Valid(bad.Body) {
		t.Fatalf("garbage: %v", err)
	}
	if n := rough.Skipped.BadNumber; n < full.Listed/20 || n > full.Listed/4 || rough.Spot != full.Spot {
		t.Errorf("garbage: skipped %+v of %d", rough.Skipped, full.Listed)
	}
	bad, _ = spoiled(t, m, spxChain, simulated.GarbagePrice)
	if _, _, err := cboe.DecodeChain(bad.Body); !errors.Is(err, compute.ErrNoSpot) || !json.Valid(bad.Body) {
		t.Errorf("garbage prices: %v", err)
	}
	bad, _ = spoiled(t, m, spxChain, simulated.BackwardClock)
	past, _, err := cboe.DecodeChain(bad.Body)
	if err != nil || full.CapturedAt.Sub(past.CapturedAt) != time.Hour || !past.AsOf.Equal(full.AsOf) {
		t.Errorf("backward clock: %s and %s, %v", full.CapturedAt, past.CapturedAt, err)
	}
}

func TestSpoiledQuotesHistoriesAndSettlements(t *testing.T) {
	m := newMarket(1)
	bad, good := spoiled(t, m, "quotes/XLK.json", simulated.GarbageNumbers)
	if _, err := cboe.DecodeQuote(bad.Body); err != nil || !json.Valid(bad.Body) || bytes.Equal(bad.Body, good.Body) {
		t.Errorf("garbage in a quote: %v: %s", err, bad.Body)
	}
	const history = "charts/historical/XLK.json"
	bad, good = spoiled(t, m, history, simulated.GarbageNumbers)
	few, err := cboe.DecodeHistory(bad.Body)
	all, err2 := cboe.DecodeHistory(good.Body)
	if err != nil || err2 != nil || !json.Valid(bad.Body) || len(few) >= len(all) || len(few) < len(all)/2 {
		t.Errorf("garbage in a history: %d of %d rows, %v, %v", len(few), len(all), err, err2)
	}
	bad, _ = spoiled(t, m, history, simulated.Shrink)
	if few, err = cboe.DecodeHistory(bad.Body); err != nil || len(few) != (len(all)+9)/10 {
		t.Errorf("shrunk history: %d of %d rows, %v", len(few), len(all), err)
	}
	bad, _ = spoiled(t, m, history, simulated.EmptyOptions)
	if _, err := cboe.DecodeHistory(bad.Body); !errors.Is(err, cboe.ErrNoRows) {
		t.Errorf("empty history: %v", err)
	}
	const settlement = "settlement/2026-08-06.csv"
	bad, good = spoiled(t, m, settlement, simulated.StaleSettlement)
	if bad.FileDate != "2026-08-05" || good.FileDate != "2026-08-06" {
		t.Errorf("stale settlement: file of %s, then %s", bad.FileDate, good.FileDate)
	}
	bad, _ = spoiled(t, m, settlement, simulated.EmptyOptions)
	if _, _, err := cboe.DecodeSettlement(bad.Body); !errors.Is(err, cboe.ErrNoRows) {
		t.Errorf("empty settlement: %v", err)
	}
	bad, _ = spoiled(t, m, settlement, simulated.GarbageNumbers)
	if rows, n, err := cboe.DecodeSettlement(bad.Body); err != nil || n == 0 || len(rows) < 40 {
		t.Errorf("garbage in a settlement: %d rows, %d bad, %v", len(rows), n, err)
	}
	m.Fail(spxQuote, simulated.StaleSettlement, 1)
	if doc, err := m.Fetch(t.Context(), spxQuote, nil); err != nil || doc.ETag != documentAt(t, m, spxQuote, ny("2026-08-11 12:00:00")).ETag {
		t.Errorf("a fault of settlements alters a quote: %v", err)
	}
}
