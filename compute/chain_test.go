package compute_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"strikecache/compute"
)

const noon = "2026-08-11T16:00:00Z" // a Tuesday session

// The roots of SPX are those of METHODS.md §1.1. An adjusted series ends in a digit. The root of a fund is its symbol, PM.
func TestRoots(t *testing.T) {
	for _, c := range []struct {
		underlying, root string
		known            bool
		settlement       compute.Settlement
	}{
		{"SPX", "SPX", true, compute.AM}, {"SPX", "SPXW", true, compute.PM},
		{"SPX", "SPX1", false, 0}, {"SPX", "SPXW2", false, 0}, {"SPX", "SPXQ", false, 0}, {"SPX", "NDX", false, 0},
		{"SPX", "SPY", false, 0}, {"SPX", "S", false, 0}, {"SPX", "VIX", false, 0}, {"SPX", "SPX12", false, 0},
		{"NDX", "NDX", true, compute.AM}, {"NDX", "NDXP", true, compute.PM}, {"NDX", "SPX", false, 0},
		{"RUT", "RUT", true, compute.AM}, {"RUT", "RUTW", true, compute.PM},
		{"XSP", "XSP", true, compute.PM}, {"XSP", "XSPW", false, 0}, {"AAPL", "AAPL", true, compute.PM}, {"AAPL", "AAPL7", false, 0},
		{"VIX", "VIX", true, compute.AM}, {"VIX", "VIXW", true, compute.AM},
		{"XLK", "XLK", true, compute.PM}, {"XLK", "XLK1", false, 0}, {"SPY", "SPXW", false, 0}, {"SPXW", "SPXW", false, 0},
	} {
		u := index(100, noon)
		u.Symbol = c.underlying
		chain := build(t, u, row{c.root + "260821C00100000", blank(1)})
		if !c.known {
			equal(t, c.underlying+" "+c.root, chain.Skipped, compute.Skipped{UnknownRoot: 1})
			continue
		}
		if len(chain.Contracts) != 1 || chain.Contracts[0].Settlement != c.settlement {
			t.Errorf("%s %s: %+v %+v", c.underlying, c.root, chain.Contracts, chain.Skipped)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	var empty compute.ChainBuilder
	if _, err := empty.Build(index(7000, noon)); !errors.Is(err, compute.ErrEmptyChain) {
		t.Errorf("no rows: %v", err)
	}
	for _, spot := range []float64{0, -1, 1e17, math.NaN(), math.Inf(1), math.Inf(-1)} {
		var b compute.ChainBuilder
		b.Add([]byte("SPX260821C07400000"), blank(1))
		if _, err := b.Build(index(spot, noon)); !errors.Is(err, compute.ErrNoSpot) {
			t.Errorf("spot %v: %v", spot, err)
		}
	}
	var full compute.ChainBuilder
	full.Grow(compute.MaxRows + 1)
	symbol := []byte("SPX260821C00000000")
	for i := range compute.MaxRows {
		copy(symbol[10:], fmt.Sprintf("%08d", i))
		full.Add(symbol, blank(1))
	}
	fits := full
	if chain, err := fits.Build(index(7000, noon)); err != nil || len(chain.Contracts) != compute.MaxRows {
		t.Errorf("%d rows: %v", compute.MaxRows, err)
	}
	full.Add([]byte("SPX260821P07400000"), blank(1))
	if _, err := full.Build(index(7000, noon)); err == nil || !strings.Contains(err.Error(), "200001") {
		t.Errorf("%d rows: %v", compute.MaxRows+1, err)
	}
}

// Add does not keep the bytes of the symbol.
func TestAddCopiesSymbol(t *testing.T) {
	var b compute.ChainBuilder
	symbol := []byte("SPX260821C07400000")
	b.Add(symbol, blank(1))
	copy(symbol, "XXXXXXXXXXXXXXXXXX")
	chain, err := b.Build(index(7000, noon))
	if err != nil || len(chain.Contracts) != 1 || chain.Contracts[0].Root != "SPX" {
		t.Errorf("%+v, %v", chain, err)
	}
}

// A symbol is accepted only if it is a compact OSI symbol with a day that exists. The contract is then the one of its parts.
func TestSymbols(t *testing.T) {
	for _, c := range []struct {
		symbol, root, date string
		strike             float64
		right              compute.Right
	}{
		{"SPX260821C07400000", "SPX", "2026-08-21", 7400, compute.Call}, {"ZYXW280229P99999999", "ZYXW", "2028-02-29", 99999.999, compute.Put},
		{"SPX000101P00157500", "SPX", "2000-01-01", 157.5, compute.Put}, {"SPX991231C00000001", "SPX", "2099-12-31", 0.001, compute.Call},
		{"XLK1260821C00157500", "XLK1", "2026-08-21", 157.5, compute.Call}, {"A000101P00000000", "A", "2000-01-01", 0, compute.Put},
		{"ABCDEF991231C12345678", "ABCDEF", "2099-12-31", 12345.678, compute.Call}, {"Z0260821P00157500", "Z0", "2026-08-21", 157.5, compute.Put},
	} {
		u := index(7000, noon)
		u.Symbol = c.root
		chain := build(t, u, row{c.symbol, blank(1)})
		if len(chain.Contracts) != 1 {
			t.Errorf("%s: %+v", c.symbol, chain.Skipped)
			continue
		}
		got := chain.Contracts[0]
		equal(t, "symbol", got.Symbol(), c.symbol)
		got.Settlement, got.Quote = 0, compute.Quote{}
		equal(t, c.symbol, got, compute.Contract{Root: c.root, Expiration: day(c.date), Strike: c.strike, Right: c.right})
	}
	for _, symbol := range []string{
		"", "SPX", "260821C07400000", // no root
		"SPXW26082107400000", "SPX260821X07400000", "SPX260821c07400000", // no right
		"SPX261321C07400000", "SPX260021C07400000", "SPX260832C07400000", "SPX260800C07400000",
		"SPX260230C07400000", "SPX270229C07400000", "SPX260431P07400000", // no such day
		"spx260821C07400000", "Spx260821C07400000",
		"SPX260821C7400000", "SPX260821C007400000", "SPX260821C0740000x", "SPX26082xC07400000", "SPX260821C0740000\xff", // lengths, digits
		"SPX260821C07400.00", "SPX260821C-7400000", "SPX260821C+7400000", "SPX 260821C07400000", "SPX260821C07400000 ",
		" SPX260821C07400000", "ABCDEFG260821C07400000", "1SPX260821C07400000", "S1X260821C07400000", "S9X260821C07400000",
		"ＳＰＸ260821C07400000", "SPÉ260821C07400000", "SPX260821C0740000٠", "SP.X260821C07400000", "\x00SPX260821C07400000",
	} {
		equal(t, symbol, build(t, index(7000, noon), row{symbol, blank(1)}).Skipped, compute.Skipped{BadSymbol: 1})
	}
}
