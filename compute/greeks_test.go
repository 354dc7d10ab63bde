package compute_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"strikecache/compute"
)

// greeksVector is one line of testdata/greeks_vectors.json, which testdata/greeks_vectors.py made with mpmath 1.3.0 and 50
// digits, from delta alone: its vanna and charm are numerical derivatives. The inputs are exact float64s.
type greeksVector struct {
	Right, Delta, Vanna, Charm string
	Spot, Strike, Seconds      float64
	Rate, Forward, V           float64
}

// The greeks have 12 digits, also below the floor of 15 minutes, with a negative carry and a negative rate.
func TestGreeksOfManyDigits(t *testing.T) {
	text, err := os.ReadFile("testdata/greeks_vectors.json")
	must(t, err)
	var vectors []greeksVector
	must(t, json.Unmarshal(text, &vectors))
	equal(t, "vectors", len(vectors), 32)
	for _, v := range vectors {
		name := fmt.Sprintf("%s %v at %v, %v s", v.Right, v.Strike, v.Spot, v.Seconds)
		got := compute.BlackGreeks(v.Spot, v.Forward, v.Strike, v.V, v.Seconds/(365*86400), v.Rate)
		right := map[string]compute.Right{"C": compute.Call, "P": compute.Put}[v.Right]
		// The rounding of d1 moves the tail of N(d1) by d1² units, and its density too.
		within(t, name+" delta", got.Delta[right], number(t, v.Delta), 1e-12)
		within(t, name+" vanna", got.Vanna, number(t, v.Vanna), 1e-12)
		within(t, name+" charm", got.Charm[right], number(t, v.Charm), 1e-11) // its two terms may almost cancel
	}
}
