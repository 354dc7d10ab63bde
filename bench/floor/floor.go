// Package floor is the least work that any program does to serve the gamma exposure of an option chain. The cost of a refresh is given as a
// multiple of it, because a time alone says as much about the machine.
package floor

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-json"
)

// chain is a chain in the upstream's format: the fields that a gamma exposure needs, and the quotes.
type chain struct {
	Timestamp string `json:"timestamp"`
	Data      struct {
		Spot    float64 `json:"current_price"`
		Options []struct {
			Symbol       string  `json:"option"` // root, YYMMDD, C or P, strike in thousandths with 8 digits
			Bid          float64 `json:"bid"`
			Ask          float64 `json:"ask"`
			IV           float64 `json:"iv"` // per year
			OpenInterest float64 `json:"open_interest"`
			Volume       float64 `json:"volume"`
		} `json:"options"`
	} `json:"data"`
}

// Strike is the net gamma exposure at a strike, calls less puts, in USD for a move of 1 %.
type Strike struct {
	Strike float64 `json:"strike"`
	Net    float64 `json:"net_gex_dollars"`
}

// Work decodes a chain, computes the Black-Scholes gamma of each contract once, from its published volatility and without rates, adds up
// the exposure by strike, and returns the JSON in gzip and its SHA-256. It keeps nothing.
func Work(document []byte) (compressed []byte, digest [sha256.Size]byte, err error) {
	var c chain
	if err := json.Unmarshal(document, &c); err != nil {
		return nil, digest, fmt.Errorf("decode chain: %w", err)
	}
	made, err := time.Parse(time.DateTime, c.Timestamp)
	if err != nil {
		return nil, digest, fmt.Errorf("timestamp: %w", err)
	}
	net, spot := map[float64]float64{}, c.Data.Spot
	for i := range c.Data.Options {
		o := &c.Data.Options[i]
		n := len(o.Symbol)
		if n < 16 {
			return nil, digest, fmt.Errorf("option %q is no symbol of a contract", o.Symbol)
		}
		expiration, err := time.Parse("060102", o.Symbol[n-15:n-9])
		if err != nil {
			return nil, digest, fmt.Errorf("option %q: %w", o.Symbol, err)
		}
		thousandths, err := strconv.Atoi(o.Symbol[n-8:])
		if err != nil {
			return nil, digest, fmt.Errorf("option %q: %w", o.Symbol, err)
		}
		strike := float64(thousandths) / 1000
		years := max(expiration.Add(20*time.Hour).Sub(made).Hours(), 1) / (365 * 24)
		sd := max(o.IV, 0.01) * math.Sqrt(years)
		d1 := math.Log(spot/strike)/sd + sd/2
		gamma := math.Exp(-d1*d1/2) / (math.Sqrt(2*math.Pi) * spot * sd)
		exposure := gamma * o.OpenInterest * 100 * spot * spot / 100
		if o.Symbol[n-9] == 'P' {
			exposure = -exposure
		}
		net[strike] += exposure
	}
	var strikes []Strike
	for _, k := range slices.Sorted(maps.Keys(net)) {
		strikes = append(strikes, Strike{k, math.Round(net[k])})
	}
	text, err := json.Marshal(strikes)
	if err != nil {
		return nil, digest, fmt.Errorf("encode: %w", err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(text) // a buffer takes all bytes
	_ = w.Close()
	return out.Bytes(), sha256.Sum256(out.Bytes()), nil
}
