package cboe

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// Numbers are those of strconv, to the last bit, whichever way they take.
func TestFloatAgreesWithStrconv(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	numbers := []string{"0", "-0", "0.0", "-0.0", "1", "-1", "0.1", "100.05", "999999999999999", "9999999999999999", "0.00000000000001", "1.005", "123456.789012345"}
	for range 20_000 {
		x := (random.Float64() - 0.5) * math.Pow(10, float64(random.IntN(20)-6))
		numbers = append(numbers, strconv.FormatFloat(x, 'f', random.IntN(18)-1, 64))
	}
	for _, text := range append(numbers, texts...) {
		s := scanner{buf: []byte(text)}
		x, ok := s.float()
		plain := scanner{buf: []byte(text)}
		if !plain.skip(maxDepth) {
			if ok {
				t.Errorf("%q: %v, but it is not a value", text, x)
			}
			continue
		}
		want, err := strconv.ParseFloat(text, 64)
		if c := plain.buf[0]; err == nil && (c == '-' || isDigit(c)) && (math.Float64bits(x) != math.Float64bits(want) || !ok) || s.pos != plain.pos {
			t.Errorf("%q: %v up to byte %d, want %v up to %d", text, x, s.pos, want, plain.pos)
		}
	}
}
