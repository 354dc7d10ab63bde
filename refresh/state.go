package refresh

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
)

// chainFile is the state of a chain that later sessions and restarts need: what it contributes to the flow and,
// for SPX, the carry of its series.
type chainFile struct {
	Flow   compute.ChainFlow `json:"flow"`
	Source flowSource        `json:"source"`
	Carry  []carryRow        `json:"carry,omitempty"`
}

type carryRow struct {
	Root       string       `json:"root"`
	Expiration compute.Date `json:"expiration"`
	Carry      float64      `json:"carry"`
}

// carryRows returns the rows of a carry in order.
func carryRows(carry map[compute.Series]float64) []carryRow {
	rows := make([]carryRow, 0, len(carry))
	for s, b := range carry {
		rows = append(rows, carryRow{s.Root, s.Expiration, b})
	}
	slices.SortFunc(rows, func(a, b carryRow) int {
		return cmp.Or(cmp.Compare(a.Expiration, b.Expiration), cmp.Compare(a.Root, b.Root))
	})
	return rows
}

func carryOf(rows []carryRow) map[compute.Series]float64 {
	out := make(map[compute.Series]float64, len(rows))
	for _, row := range rows {
		out[compute.Series{Root: row.Root, Expiration: row.Expiration}] = row.Carry
	}
	return out
}

// The names of dated state, each followed by the symbol.
const (
	chainState      = "chain-"
	volatilityState = "iv-"
)

func (r *Refresher) saveChain(c *chainDocument, part flowPart, carry map[compute.Series]float64) {
	f := chainFile{Flow: part.flow, Source: part.source, Carry: carryRows(carry)}
	r.saveState(chainState+c.Symbol, part.flow.Session, func() ([]byte, error) { return json.Marshal(f) })
}

func (r *Refresher) saveState(name string, date compute.Date, encode func() ([]byte, error)) {
	b, err := encode()
	if err == nil {
		err = r.store.SaveState(name, date.String(), b)
	}
	if err != nil {
		r.log.Error("state not stored", "state", name, "err", err)
	}
}

// previousVolatility is the published volatility per contract of the session before a session.
type previousVolatility struct {
	session compute.Date
	iv      map[string]float64
	input   *archive.Document // the state; with its body, until that is archived
}

// previousIV returns the published volatilities of the last stored snapshot of the previous session, nil when
// there is none.
func (r *Refresher) previousIV(c *chainDocument) map[string]float64 {
	session := c.Session(r.cal)
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	if held := r.flow.volatility[c.Symbol]; held.session == session && held.iv != nil {
		return held.iv
	}
	before := r.cal.Previous(session).String()
	state, date := r.store.State(volatilityState+c.Symbol, before)
	if state == nil || date != before {
		return nil
	}
	iv, err := decodeVolatility(state)
	if err != nil {
		r.log.Error("state not readable", "state", volatilityState+c.Symbol, "date", date, "err", err)
		return nil
	}
	r.flow.volatility[c.Symbol] = previousVolatility{session, iv, stateInput(volatilityState+c.Symbol, date, state)}
	return iv
}

func (r *Refresher) saveVolatility(c *chainDocument) {
	r.saveState(volatilityState+c.Symbol, c.Session(r.cal), func() ([]byte, error) { return encodeVolatility(c.Chain) })
}

// encodeVolatility writes the published volatility of each contract that has one, a line each, compressed.
func encodeVolatility(chain *compute.Chain) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	var line []byte
	for i := range chain.Contracts {
		if c := &chain.Contracts[i]; c.IV > 0 {
			line = append(c.AppendSymbol(line[:0]), ' ')
			line = append(strconv.AppendFloat(line, c.IV, 'g', -1, 64), '\n')
			if _, err := z.Write(line); err != nil {
				return nil, err
			}
		}
	}
	err = z.Close()
	return out.Bytes(), err
}

func decodeVolatility(state []byte) (map[string]float64, error) {
	z, err := gzip.NewReader(bytes.NewReader(state))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, compute.MaxRows*64))
	if err != nil {
		return nil, err
	}
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
