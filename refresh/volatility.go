package refresh

import (
	"bytes"
	"fmt"
	"strconv"

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
			text = append(strconv.AppendFloat(text, c.IV, 'g', -1, 64), '\n')
		}
	}
	return text
}

func decodeVolatility(text []byte) (map[string]float64, error) {
	iv := make(map[string]float64, bytes.Count(text, []byte{'\n'}))
	for line := range bytes.Lines(text) {
		symbol, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		x, err := strconv.ParseFloat(string(value), 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("bad line %.40q", line)
		}
		iv[string(symbol)] = x
	}
	return iv, nil
}
