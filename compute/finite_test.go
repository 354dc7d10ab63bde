package compute_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// notFinite returns the path of a number in v that is not finite, "" if all are finite. Empty pointers are null.
func notFinite(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); x-x != 0 {
			return fmt.Sprint(" is ", x)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return notFinite(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if path := notFinite(v.Index(i)); path != "" {
				return fmt.Sprintf("[%d]%s", i, path)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if path := notFinite(v.Field(i)); path != "" && v.Type().Field(i).IsExported() {
				return "." + v.Type().Field(i).Name + path
			}
		}
	}
	return ""
}

// hostile draws documents that a decoder accepts and no market has.
type hostile struct {
	*rand.Rand
	spot float64
	now  time.Time
}

func pick[T any](h *hostile, from ...T) T { return from[h.IntN(len(from))] }

// upTo returns a number whose size is anything from the least to the most.
func (h *hostile) upTo(least, most float64) float64 {
	return least * math.Exp(h.Float64()*math.Log(most/least))
}

// quote returns any numbers that are in the range of their kind, and some that are not.
func (h *hostile) quote() compute.Quote {
	nan := math.NaN()
	q := compute.Quote{
		Bid: pick(h, 0, nan, 1e-6, h.upTo(1e-6, 1e6)), Last: pick(h, 0, nan, 1e-6, 1e6, h.upTo(1e-6, 1e6)),
		OpenInterest: pick(h, 0, 1e-6, 1, 1e8, h.upTo(1e-6, 1e8)), Volume: pick(h, 0, nan, 1e8, h.upTo(1e-6, 1e8)),
		IV: pick(h, 0, nan, 1e-6, 100, h.upTo(1e-6, 100)), Gamma: pick(h, 0, nan, -100, 100), Delta: pick(h, 0, nan, -1, 1, h.Float64()),
		LastTrade: h.now.Unix() - int64(h.IntN(2000)),
	}
	q.Ask = pick(h, q.Bid, q.Bid*3, 1e6, nan, q.Bid*h.upTo(1, 1e6))
	return q
}

// chain draws a chain. A series has quotes of any kind, or mids that differ by the same at every strike, or a smile: the last two give
// parity forwards, at any price.
func (h *hostile) chain(t *testing.T, symbol string, roots ...string) *compute.Chain {
	var rows []row
	for range pick(h, 1, 2, 3, 12) {
		expiration := compute.DateOf(h.now.In(compute.NewYork)) + compute.Date(pick(h, 0, 0, 1, 2, 9, 20, 30, 31, 45, 90, 400, 26_000))
		series, kind, f := pick(h, roots...)+expiration.Midnight().Format("060102"), h.IntN(3), h.spot*pick(h, 1, 1, 1.001, h.upTo(1e-3, 1e3))
		v := h.upTo(1e-4, 5)
		for range 3 + h.IntN(9) {
			k := pick(h, 0, 0.001, 1, 99999.999, h.spot, h.upTo(0.001, 99999))
			if kind > 0 {
				k = f * math.Exp(v*(h.Float64()-0.5))
			}
			k = math.Round(max(0, min(k, 99999.999))*1000) / 1000
			for right, letter := range "CP" {
				q := h.quote()
				switch kind {
				case 1:
					q.Bid = max(1e-6, min(0.01*k+max(0, (f-k)*float64(1-2*right)), 1e6))
					q.Ask = q.Bid
				case 2:
					q.Bid = max(1e-6, min(compute.BlackValue(compute.Right(right), f, max(k, 0.001), v), 1e6))
					q.Ask = q.Bid
				}
				rows = append(rows, row{symbolOf(series+string(letter), k), q})
			}
		}
	}
	u := compute.UnderlyingQuote{
		Symbol: symbol, Spot: h.spot, PriceChangePercent: pick(h, math.NaN(), -100, 1000, 0),
		AsOf: h.now, CapturedAt: h.now.Add(pick(h, 0, 15*time.Minute, 30*time.Minute, 10*time.Hour)),
	}
	return build(t, u, rows...)
}

// sectors draws quotes and histories: without a move, with any move, of few dates and of many.
func (h *hostile) sectors() compute.SectorsInput {
	in := compute.SectorsInput{Funds: map[string]compute.Fund{}, Calendar: cal}
	days, still := pick(h, 1, 2, 64, 135, 300), h.IntN(3) == 0
	for _, symbol := range compute.FundSymbols() {
		f := compute.Fund{Quote: compute.UnderlyingQuote{Symbol: symbol, Spot: h.upTo(1e-6, 1e6), PriceChangePercent: pick(h, math.NaN(), 0, 1000, -100), AsOf: h.now, CapturedAt: h.now}}
		price := h.upTo(1e-6, 1e6)
		for d := range days {
			if !still && h.IntN(3) > 0 {
				price = h.upTo(1e-6, 1e6)
			}
			f.Closes = append(f.Closes, compute.Close{Date: compute.DateOf(h.now) - compute.Date(days-d), Price: price})
		}
		in.Funds[symbol] = f
	}
	return in
}

// curve draws a settlement file: equal prices, any prices, several contracts of one month and of one date.
func (h *hostile) curve() compute.VIXInput {
	in := compute.VIXInput{Date: compute.DateOf(h.now), Calendar: cal, Today: compute.DateOf(h.now), Cash: map[string]compute.UnderlyingQuote{}}
	flat, settled := h.IntN(2) == 0, map[string]float64{}
	expiration := in.Date
	for range 1 + h.IntN(10) {
		expiration += compute.Date(pick(h, 0, 1, 28, 30, 35))
		price := 17.5
		if !flat {
			price = h.upTo(1, 1000)
		}
		symbol := fmt.Sprintf("VX/%c%d", "FGHJKMNQUVXZ"[expiration.Month()-1], expiration.Year()%10)
		in.Rows, settled[symbol] = append(in.Rows, compute.FuturesSettlement{Product: "VX", Symbol: symbol, Expiration: expiration, Price: price}), price
	}
	in.VIX, in.VIX3M = pick(h, nil, new(1.0), new(17.5), new(1000.0)), pick(h, nil, new(1.0), new(17.5))
	for range h.IntN(40) {
		in.History = append(in.History, compute.VIXHistory{ContangoM1M2: pick(h, nil, new(compute.Ratio(0))), SpotBasis: pick(h, nil, new(compute.Ratio(0))), Settlements: settled})
	}
	for _, symbol := range compute.VIXIndices {
		in.Cash[symbol] = compute.UnderlyingQuote{Symbol: symbol, Spot: h.upTo(1, 1000), PriceChangePercent: pick(h, math.NaN(), -100, 1000)}
	}
	return in
}

// history draws earlier sessions: without a move, or with any.
func (h *hostile) history() (days []compute.VolatilityDay) {
	still := h.IntN(2) == 0
	d, x := compute.DateOf(h.now)-400, h.upTo(1e-6, 1e4)
	for range pick(h, 0, 20, 61, 250) {
		if d++; !still {
			x = h.upTo(1e-6, 1e4)
		}
		days = append(days, compute.VolatilityDay{Session: d, Close: pick(h, nil, new(x), new(x)), ATM30: pick(h, nil, new(x))})
	}
	return days
}

// Whatever documents say, every figure of every product is finite or null.
func FuzzEveryFigureIsFinite(f *testing.F) {
	for seed := range uint64(128) {
		f.Add(seed)
	}
	underlyings := [][]string{{"SPX", "SPX", "SPXW"}, {"NDX", "NDXP"}, {"SPY", "SPY"}, {"AAPL", "AAPL"}}
	f.Fuzz(func(t *testing.T, seed uint64) {
		h := &hostile{Rand: rand.New(rand.NewPCG(seed, 40))}
		h.spot = pick(h, 1e-6, 0.5, 100, 5000, 5000, 1e5, h.upTo(1e-6, 1e4)) // the points of a flip grow with it: 1e6 takes seconds
		h.now = at(pick(h, "2026-08-11T19:59:55Z", "2026-08-11T19:59:59Z", "2026-08-21T13:29:59Z", "2026-08-11T15:00:00Z", "2026-08-11T20:14:59Z"))
		u := underlyings[h.IntN(len(underlyings))]
		in := compute.GammaInput{Calendar: cal, RiskFreeRate: pick(h, 0.04, -0.05, 0.25)}
		for range 2 {
			in.Chain = h.chain(t, u[0], u[1:]...)
			gamma := compute.GammaExposure(in)
			pains := compute.MaxPains(in.Chain, cal)
			var pain *compute.MaxPain
			if i := compute.DefaultMaxPain(pains); i >= 0 {
				pain = pains[i]
			}
			flow := compute.UnusualFlow(compute.FlowInput{Chain: in.Chain, Calendar: cal, Before: in.Chain})
			rotation, _ := compute.SectorRotation(h.sectors())
			curve, quality, _ := compute.VIXTermStructure(h.curve())
			for _, v := range []any{
				gamma.Data, gamma.Matrix, gamma.Quality, gamma.Volatility.With(h.history(), cal), compute.NewKeyLevels(&gamma, pain, in.Chain.CapturedAt, cal), pains,
				flow, rotation, curve, quality,
			} {
				if path := notFinite(reflect.ValueOf(v)); path != "" {
					t.Errorf("%s%s", strings.TrimPrefix(fmt.Sprintf("%T", v), "compute."), path)
				}
			}
			in.Reference = gamma.State
			h.now = h.now.Add(pick(h, 0, 24*time.Hour))
		}
	})
}
