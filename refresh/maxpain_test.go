package refresh_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
)

// checkPains fails the test unless max pain is sealed with the bytes that an encoder gives for it.
func checkPains(t *testing.T, name string, texts func([]*compute.MaxPain) (map[string]string, error), pains []*compute.MaxPain) {
	t.Helper()
	got, err := texts(pains)
	if err != nil || len(got) != len(pains) {
		t.Fatalf("%s: %d texts of %d dates, error %v", name, len(got), len(pains), err)
	}
	for _, p := range pains {
		want, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got[p.Expiration.String()] != string(want) {
			t.Fatalf("%s, %v:\n%s\nwant\n%s", name, p.Expiration, got[p.Expiration.String()], want)
		}
	}
}

// Chains follow each other as in a day: spots move at every chain, open interest and dates sometimes.
func TestPiecesOfMaxPain(t *testing.T) {
	random, at := rand.New(rand.NewPCG(21, 22)), time.Date(2026, 8, 11, 18, 0, 0, 0, time.UTC)
	type contract struct {
		expiration compute.Date
		settlement compute.Settlement
		strike, oi float64
		right      compute.Right
	}
	for day := range 20 {
		texts, cal := refresh.PainTexts(), compute.NewCalendar(nil, nil)
		var contracts []contract
		for d := range compute.Date(1 + random.IntN(5)) {
			for s := range compute.Settlement(2) {
				for k := range random.IntN(40) {
					contracts = append(contracts, contract{20_678 + 7*d, s, 6000 + 5*float64(k), float64(random.IntN(9) * random.IntN(2)), compute.Right(random.IntN(2))})
				}
			}
		}
		for i := range 12 {
			chain := &compute.Chain{Underlying: compute.Underlying{Symbol: "SPX", Spot: 6000 + random.Float64()*200, AsOf: at, CapturedAt: at}}
			for _, c := range contracts {
				root := map[compute.Settlement]string{compute.AM: "SPX", compute.PM: "SPXW"}[c.settlement]
				chain.Contracts = append(chain.Contracts, compute.Contract{Root: root, Expiration: c.expiration, Settlement: c.settlement, Strike: c.strike, Right: c.right, Quote: compute.Quote{OpenInterest: c.oi}})
			}
			checkPains(t, fmt.Sprintf("day %d, chain %d", day, i), texts, compute.MaxPains(chain, cal))
			if len(contracts) > 0 && random.IntN(3) == 0 {
				contracts[random.IntN(len(contracts))].oi = float64(random.IntN(1000))
			}
			if len(contracts) > 0 && random.IntN(4) == 0 {
				contracts = contracts[1:]
			}
		}
	}
}

func TestPiecesOfRecordedMaxPain(t *testing.T) {
	chain, texts, cal := recordedChain(t), refresh.PainTexts(), compute.NewCalendar(nil, nil)
	for i := range 3 {
		checkPains(t, fmt.Sprint("chain ", i), texts, compute.MaxPains(chain, cal))
		chain.Spot += 0.01
	}
}
