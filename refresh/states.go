package refresh

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/klauspost/compress/gzip"

	"strikecache/compute"
	"strikecache/snapshots"
)

// datedState is a state that is stored under the date of a session.
type datedState struct {
	date string
	body []byte
}

// sessionStates reads the states that the last chains of earlier sessions left, and keeps in memory the state of each name
// that it read last.
type sessionStates struct {
	store  *snapshots.Store
	cal    *compute.Calendar
	log    *slog.Logger
	loaded map[string]*document // by name
}

// before returns the state of the session before the given one, nil when it is not stored.
func (s *sessionStates) before(name string, session compute.Date) *document {
	before := s.cal.Previous(session).String()
	if d := s.loaded[name]; d != nil && d.FileDate == before {
		return d
	}
	state, date := s.store.State(name, before)
	if state == nil || date != before {
		return nil
	}
	text, err := unzip(state)
	d := stateDocument(name, date, text)
	d.content = d.SHA256
	if err == nil {
		err = d.openSessionState()
	}
	if err != nil {
		s.log.Error("state not readable", "state", d.Name, "date", date, "err", err)
		return nil
	}
	if s.loaded == nil {
		s.loaded = map[string]*document{}
	}
	s.loaded[name] = d
	return d
}

// openSessionState decodes a state that a chain left, once.
func (d *document) openSessionState() error {
	if d.volatility != nil || d.reference != nil {
		return nil
	}
	err := d.open()
	if err != nil {
		return err
	}
	if d.Name == stateDir+referenceState {
		d.reference, err = compute.ParseGammaState(d.Body)
	} else {
		d.volatility, err = decodeVolatility(d.Body)
	}
	if err != nil {
		return fmt.Errorf("decode %s: %w", d.Name, err)
	}
	return nil
}

// volatilities returns the published volatility of each contract in a state, by contract symbol. The caller must not change
// the map.
func (d *document) volatilities() (map[string]float64, error) {
	err := d.openSessionState()
	return d.volatility, err
}

// zippers are gzip writers, whose tables are large. Measured on the states of a recorded chain (2026-11): HuffmanOnly takes
// 1.5 ms and leaves 571 KB, BestSpeed takes 5.1 ms and leaves 371 KB. Most of their bytes are digits that do not repeat.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.HuffmanOnly) // a known level
	return z
}}

func zip(text []byte) ([]byte, error) {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	var out bytes.Buffer
	out.Grow(len(text) / 3)
	z.Reset(&out)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err := z.Close()
	return out.Bytes(), err
}

func unzip(state []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(state))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, compute.MaxRows*64))
}
