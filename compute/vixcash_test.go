package compute_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"strikecache/compute"
)

// The ladder has what the quotes say, and null for an index without a quote. It changes nothing else of the curve.
func TestVIXCash(t *testing.T) {
	in := evening("2026-10-05", october5()...)
	in.VIX, in.VIX3M = new(16.5), new(18.75)
	plain, _ := curve(t, in)
	if unknown := plain.Cash.Unknown(); !slices.Equal(unknown, compute.VIXIndices) {
		t.Errorf("without a quote, %v are unknown", unknown)
	}
	in.Cash = map[string]compute.UnderlyingQuote{
		"VIX9D": {Spot: 15.126, PriceChangePercent: -3.45678, AsOf: at("2026-10-06T15:44:52Z")},
		"SKEW":  {Spot: 143.12, PriceChangePercent: math.NaN(), AsOf: at("2026-10-05T20:59:00Z")},
		"SPX":   {Spot: 7000},
	}
	c, _ := curve(t, in)
	text, err := json.Marshal(c.Cash)
	want := `{"vix9d":{"value":15.126,"as_of":"2026-10-06T15:44:52Z","change_pct":-3.4568},"vix":null,"vix3m":null,"vix6m":null,"vix1y":null,` +
		`"vvix":null,"skew":{"value":143.12,"as_of":"2026-10-05T20:59:00Z","change_pct":null}}`
	if err != nil || string(text) != want {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
	if unknown := c.Cash.Unknown(); !slices.Equal(unknown, []string{"VIX", "VIX3M", "VIX6M", "VIX1Y", "VVIX"}) {
		t.Errorf("unknown: %v", unknown)
	}
	c.Cash = plain.Cash
	with, _ := json.Marshal(c) // of the same type as the other
	if without, err := json.Marshal(plain); err != nil || string(with) != string(without) {
		t.Errorf("the ladder changes the curve: %v\n%s\n%s", err, with, without)
	}
}
