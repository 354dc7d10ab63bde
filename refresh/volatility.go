package refresh

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"strikecache/compute"
)

// volatilityState, followed by a symbol, names the dated state of a chain: the published volatility of each contract in the
// last accepted chain of the date.
const volatilityState = "iv-"

// encodeVolatility returns the volatility state of a chain: one line, symbol and volatility, for each contract that has a
// published volatility.
func encodeVolatility(chain *compute.Chain) []byte {
	text := make([]byte, 0, 32*len(chain.Contracts))
	for i := range chain.Contracts {
		if c := &chain.Contracts[i]; c.IV > 0 {
			text = append(c.AppendSymbol(text), ' ')
			text = append(appendVolatility(text, c.IV), '\n')
		}
	}
	return text
}

// appendVolatility appends x > 0 as strconv.AppendFloat(text, x, 'g', -1, 64) does. Nearly all published volatilities have at
// most 4 decimals, which take a quarter of the time.
func appendVolatility(text []byte, x float64) []byte {
	n := int64(math.Round(x * 1e4))
	if n == 0 || x > 1000 || float64(n)/1e4 != x {
		return strconv.AppendFloat(text, x, 'g', -1, 64)
	}
	text = strconv.AppendInt(text, n/1e4, 10)
	if n %= 1e4; n > 0 {
		text = append(text, '.', byte('0'+n/1000), byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
		text = bytes.TrimRight(text, "0")
	}
	return text
}

func decodeVolatility(text []byte) (map[string]float64, error) {
	iv := make(map[string]float64, bytes.Count(text, []byte{'\n'}))
	for line := range strings.Lines(string(text)) { // the symbols share one text: less work for the garbage collector
		symbol, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		x, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("bad line %.40q", line)
		}
		iv[symbol] = x
	}
	return iv, nil
}
