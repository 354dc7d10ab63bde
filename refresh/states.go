package refresh

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"strikecache/compute"
	"strikecache/refresh/upstream"
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

// statesOf returns the names of the states that a chain leaves.
func statesOf(name upstream.Name) []string {
	states := []string{volatilityState + symbolOf(name)}
	if name == spxChain {
		states = append(states, referenceState)
	}
	return states
}

// encodeState returns a state of a chain as it is stored: a gzip file. The input of an answer is the uncompressed text. in has
// the chain and what [gammaOf] needs.
func encodeState(state string, chain *compute.Chain, in *inputs) ([]byte, error) {
	if state != referenceState {
		return zip(encodeVolatility(chain))
	}
	gamma, err := gammaOf(in)
	if err != nil {
		return nil, err
	}
	text, err := gamma.State.AppendText(nil)
	if err != nil {
		return nil, fmt.Errorf("encode state %s: %w", state, err)
	}
	return zip(text)
}

// encodeStates adds the states of the batch's chains that later sessions need to those of the batch. A state of a chain that
// is not new is stored already, unless an earlier version or a kill left it out.
func (r *Refresher) encodeStates(b *batch, answers []*answer) error {
	var gamma *inputs
	if i := slices.IndexFunc(answers, func(a *answer) bool { return a.product.name == GammaResource }); i >= 0 {
		gamma = answers[i].inputs
	}
	for name, d := range b.documents {
		if d.chain == nil {
			continue
		}
		session := d.session(r.cal).String()
		old := r.acceptedDocument(name)
		known := d.load != nil || old != nil && old.content == d.content
		for _, state := range statesOf(name) {
			if state == referenceState && gamma == nil || known && slices.Contains(r.store.StateDates(state), session) {
				continue
			}
			body, err := encodeState(state, d.chain, gamma)
			if err != nil {
				return err
			}
			b.states[state] = datedState{session, body}
		}
	}
	return nil
}

func zip(text []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
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
