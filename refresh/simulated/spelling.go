package simulated

import (
	"math"
	"strconv"
)

// The upstream writes a float as Python does: the shortest digits, and always a point. The functions here append
// a value in its spelling.

var powersOfTen = [...]float64{1, 10, 100, 1e3, 1e4}

// appendFixed appends x rounded to places decimals, 1 to 4, without trailing zeros but the first: 2960.0, 0.05.
// |x| must be below 1e14.
func appendFixed(b []byte, x float64, places int) []byte {
	n := int64(math.Round(x * powersOfTen[places]))
	if n < 0 {
		b = append(b, '-')
		n = -n
	}
	for places > 1 && n%10 == 0 {
		n /= 10
		places--
	}
	scale := int64(powersOfTen[places])
	b = strconv.AppendInt(b, n/scale, 10)
	b = append(b, '.')
	for n %= scale; places > 0; places-- {
		scale /= 10
		b = append(b, byte('0'+n/scale))
		n %= scale
	}
	return b
}

// appendSignificant appends x with at most digits significant digits, small numbers as 1.5e-06. A price of 32 bits
// shows its noise in 15 digits: 0.025000000372529.
func appendSignificant(b []byte, x float64, digits int) []byte {
	start := len(b)
	b = strconv.AppendFloat(b, x, 'g', digits, 64)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

// The forms of clocks, in quotes.
const (
	timestampForm = `"2006-01-02 15:04:05"` // UTC
	tradeForm     = `"2006-01-02T15:04:05"` // New York
)
