package refresh

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/snapshots"
)

const (
	// trackMethod names the method of gex/spx/intraday in receipts. Its number rises when a figure of a row is computed in
	// another way.
	trackMethod = "track/1"
	// trackRowsState names the state with the rows of the track before the newest.
	trackRowsState = "track-rows"
	// maxTrackRows is how many rows a track may have. A session has 972 documents at 25 seconds.
	maxTrackRows = 1200
	// trackTail is the time after the close of the session in which an as_of still gets a row.
	trackTail = 15 * time.Minute
)

// trackColumns are the columns of a row, in order.
var trackColumns = []string{"as_of", "spot", "effective_spot", "net_gex_dollars", "zero_gamma_flip", "call_wall", "put_wall",
	"gamma_regime", "expected_move_1d", "zero_dte_net_gex_dollars", "zero_dte_gross_share_pct", "flip_low", "flip_high"}

// trackRow returns a row as a JSON array in the order of [trackColumns].
func trackRow(asOf time.Time, g *compute.Gamma) (json.RawMessage, error) {
	var low, high *compute.Level
	if g.FlipBand != nil {
		low, high = &g.FlipBand.Low, &g.FlipBand.High
	}
	return json.Marshal([]any{asOf.UTC(), g.Spot, g.EffectiveSpot, g.Net, g.Flip, g.CallWall, g.PutWall,
		g.Regime, g.ExpectedMove, g.ZeroDTE.Net, g.ZeroDTE.Share, low, high})
}

// trackData is the `data` of gex/spx/intraday.
type trackData struct {
	Date        compute.Date      `json:"date"`
	SessionDate compute.Date      `json:"session_date"`
	Columns     []string          `json:"columns"`
	Rows        []json.RawMessage `json:"rows"`
}

// trackQuality is `meta.quality` of gex/spx/intraday.
type trackQuality struct {
	Rows int `json:"rows"`
}

// gatherTrack returns the inputs of gamma and the rows before the chain. It returns nil if the chain adds no row, unless no
// track is served yet.
func gatherTrack(b *batch, above map[string]*answer) (*inputs, error) {
	in, err := gatherExposure(b, above)
	if in == nil || err != nil {
		return nil, err
	}
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	rows := b.trackRows
	if rows == nil {
		at := b.at
		if b.r.cfg.Clock.standsStill() {
			at = in.arrived() // the clock of a replay is later than most of its documents
		}
		if rows, err = b.r.trackBefore(chain.AsOf, at); err != nil {
			b.r.log.Error("track not continued", "err", err) // gamma does not need it
			return nil, nil
		}
		if rows == nil {
			return nil, nil
		}
	}
	return in, in.addState(trackRowsState, rows)
}

// trackBefore returns the rows to which a chain with this as_of adds a row at the instant now: those of the served track, or,
// if the chain belongs to another session, those of the stored track of that session, or none. It returns nil if the chain
// adds no row: its as_of has a row, it lies outside the track's hours, or its date has closed. If a crash has kept the inputs
// of a restored track out of the archive, the newest row is computed again.
func (r *Refresher) trackBefore(asOf, now time.Time) ([]json.RawMessage, error) {
	date := compute.DateOf(asOf.UTC())
	r.mu.Lock()
	served, restored := r.current[TrackResource].edition, r.current[TrackResource].restored
	r.mu.Unlock()
	switch {
	case served == nil:
		return []json.RawMessage{}, nil
	case !inTrack(asOf, r.cal), dateClosed(date, now):
		return nil, nil
	case compute.DateOf(served.Default.Meta.AsOf.UTC()) != date:
		f, err := r.store.Load(TrackResource, date.String())
		switch {
		case errors.Is(err, snapshots.ErrNoSnapshot), errors.Is(err, snapshots.ErrTorn), errors.Is(err, snapshots.ErrNewerFormat):
			return []json.RawMessage{}, nil
		case err != nil:
			return nil, err // a new track would replace the rows that cannot be read now
		}
		served = f.Edition
	}
	rows, err := trackRows(served.Default)
	if err != nil {
		return nil, err
	}
	n := len(rows)
	if n == 0 {
		return rows, nil
	}
	last, err := rowInstant(rows[n-1])
	switch {
	case err != nil:
		return nil, err
	case asOf.After(last):
		return rows, nil
	case asOf.Equal(last) && restored && r.cfg.Inputs != nil &&
		!r.cfg.Inputs.Holds(TrackResource, date.String(), served.Default.Meta.Receipt.InputSHA256):
		return rows[:n-1], nil
	}
	return nil, nil
}

// inTrack says whether an as_of lies in the hours of a session, or at most [trackTail] after them.
func inTrack(asOf time.Time, cal *compute.Calendar) bool {
	d := compute.DateOf(asOf.In(compute.NewYork))
	return cal.IsSession(d) && !asOf.Before(cal.Open(d)) && !asOf.After(cal.Close(d).Add(trackTail))
}

// trackRows returns the rows of a sealed track. An earlier version may have stored fewer columns: their figures are unknown.
func trackRows(s *snapshots.Snapshot) ([]json.RawMessage, error) {
	data := trackData{Rows: []json.RawMessage{}}
	if err := json.Unmarshal(s.Data(), &data); err != nil {
		return nil, fmt.Errorf("decode track: %w", err)
	}
	if missing := len(trackColumns) - len(data.Columns); missing > 0 {
		for i, row := range data.Rows {
			data.Rows[i] = slices.Concat(row[:len(row)-1], bytes.Repeat([]byte(",null"), missing), []byte("]"))
		}
	}
	return data.Rows, nil
}

// rowInstant returns the as_of of a row.
func rowInstant(row json.RawMessage) (asOf time.Time, err error) {
	if err = json.Unmarshal(row, &[]any{&asOf}); err != nil {
		err = fmt.Errorf("decode row %.40q of track: %w", row, err)
	}
	return asOf, err
}

// computeTrack returns the rows before and the row of the chain. Outside the track's hours the chain has no row.
func computeTrack(in *inputs) (*answer, error) {
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	var rows []json.RawMessage
	if found, err := in.decodeState(trackRowsState, &rows); err != nil {
		return nil, err
	} else if !found {
		return nil, errors.New("inputs lack the rows")
	}
	if inTrack(chain.AsOf, in.calendar) {
		result, err := gammaOf(in)
		if err != nil {
			return nil, err
		}
		row, err := trackRow(chain.AsOf, &result.Data)
		if err != nil {
			return nil, fmt.Errorf("encode row: %w", err)
		}
		rows = append(rows, row)
	}
	a := answerOf(chain)
	a.setTrack(rows, chain.Session(in.calendar))
	return a, nil
}

// setTrack makes the rows the data of the answer.
func (a *answer) setTrack(rows []json.RawMessage, session compute.Date) {
	rows = thinned(rows)
	a.data = &trackData{Date: a.date(), SessionDate: session, Columns: trackColumns, Rows: rows}
	a.quality = trackQuality{len(rows)}
}

// thinned drops every second row, from the second on, while there are more than [maxTrackRows]. The last row stays.
func thinned(rows []json.RawMessage) []json.RawMessage {
	for len(rows) > maxTrackRows {
		last, kept := len(rows)-1, []json.RawMessage{}
		for i, row := range rows {
			if i%2 == 0 || i == last {
				kept = append(kept, row)
			}
		}
		rows = kept
	}
	return rows
}

func rememberTrack(r *Refresher, a *answer) { r.track = a }

// resumeTrack restores the state that the stored track was computed with.
func resumeTrack(b *batch, in *inputs) error {
	if err := resumeGamma(b, in); err != nil {
		return err
	}
	_, err := in.decodeState(trackRowsState, &b.trackRows)
	return err
}

// withRowsBefore returns the answer of a track with rows put in front of its own. Its newest row and the inputs of this row
// stay.
func (a *answer) withRowsBefore(front []json.RawMessage, now time.Time) (*answer, error) {
	data := a.data.(*trackData)
	newest := len(data.Rows) - 1
	before := slices.Concat(front, data.Rows[:newest])
	in := *a.inputs
	in.at = now
	in.documents = slices.DeleteFunc(slices.Clone(in.documents), func(d *document) bool { return d.Name == stateDir+trackRowsState })
	if err := in.addState(trackRowsState, before); err != nil {
		return nil, err
	}
	next := &answer{product: a.product, inputs: &in, asOf: a.asOf, captured: a.captured, parameters: a.parameters}
	next.setTrack(append(before, data.Rows[newest]), data.SessionDate)
	return next, next.encode()
}

// firstRow returns the as_of of the first row of a track, the zero time if there is none.
func (a *answer) firstRow() (asOf time.Time) {
	if a == nil || len(a.data.(*trackData).Rows) == 0 {
		return time.Time{}
	}
	asOf, _ = rowInstant(a.data.(*trackData).Rows[0]) // the row was made by trackRow
	return asOf
}
