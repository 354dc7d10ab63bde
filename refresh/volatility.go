package refresh

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"strikecache/compute"
	"strikecache/snapshots"
)

// volatilityState, followed by a symbol, names the dated state of a chain: the published volatility of each contract in the
// last accepted chain of the date.
const volatilityState = "iv-"

// volatilityStates reads the published volatilities of earlier sessions, and keeps in memory the state of each symbol that
// it read last.
type volatilityStates struct {
	store  *snapshots.Store
	cal    *compute.Calendar
	log    *slog.Logger
	loaded map[string]*document // by symbol
}

// before returns the volatilities of the session before the given one, nil when they are not stored.
func (s *volatilityStates) before(symbol string, session compute.Date) *document {
	before := s.cal.Previous(session).String()
	if d := s.loaded[symbol]; d != nil && d.FileDate == before {
		return d
	}
	state, date := s.store.State(volatilityState+symbol, before)
	if state == nil || date != before {
		return nil
	}
	text, err := unzip(state)
	d := stateDocument(volatilityState+symbol, date, text)
	d.content = d.SHA256
	if err == nil {
		_, err = d.volatilities()
	}
	if err != nil {
		s.log.Error("state not readable", "state", d.Name, "date", date, "err", err)
		return nil
	}
	if s.loaded == nil {
		s.loaded = map[string]*document{}
	}
	s.loaded[symbol] = d
	return d
}

// volatilities returns the published volatility of each contract in a state, by contract symbol. It decodes the state once.
// The caller must not change the map.
func (d *document) volatilities() (map[string]float64, error) {
	if d.volatility != nil {
		return d.volatility, nil
	}
	err := d.open()
	if err != nil {
		return nil, err
	}
	if d.volatility, err = decodeVolatility(d.Body); err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.Name, err)
	}
	return d.volatility, nil
}

// encodeVolatility returns the volatility state of a chain as it is stored: a gzip file with one line, symbol and
// volatility, for each contract that has a published volatility. The input of an answer is the uncompressed text.
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

func unzip(state []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(state))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, compute.MaxRows*64))
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
