package refresh_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"strikecache/refresh"
)

func TestVolatilitiesAreThoseOfStrconv(t *testing.T) {
	random := rand.New(rand.NewPCG(51, 52))
	numbers := []float64{1e-6, 4.9e-5, 5e-5, 1e-4, 0.00015, 0.1, 0.12345, 1, 10, 99.9999, 100, 1000, 1e4, 1e6, math.Nextafter(0.1234, 1), math.MaxFloat64}
	for i := range 20_000 {
		numbers = append(numbers, float64(i+1)/1e4, random.Float64()*math.Pow(10, float64(random.IntN(8)-4)))
	}
	for _, x := range numbers {
		if got, want := string(refresh.AppendVolatility([]byte("0 "), x)), "0 "+strconv.FormatFloat(x, 'g', -1, 64); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
