package product

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

const (
	maxTrackRows = 1200             // a session has 972 documents at 25 seconds
	trackTail    = 15 * time.Minute // after the close of the session: an as_of still gets a row
)

// track says how the rows of a product that accumulates are made.
type track struct {
	method  string
	columns []string      // of a row: the first is as_of, the last method
	every   time.Duration // the first snapshot of each such part of an hour has a row; 0: each snapshot has one
	values  func(*compute.Gamma) []any
	data    func(*trackData) any // the same data, as the API describes it
}

var levelsTrack = &track{
	method: "track/5",
	columns: []string{"as_of", "spot", "effective_spot", "net_gex_dollars", "zero_gamma_flip", "call_wall", "put_wall",
		"gamma_regime", "expected_move_1d", "zero_dte_net_gex_dollars", "zero_dte_gross_share_pct", "flip_low", "flip_high", "charm_ex_zero_dte_dollars_per_day",
		"method"},
	values: func(g *compute.Gamma) []any {
		var low, high *compute.Level
		if g.FlipBand != nil {
			low, high = &g.FlipBand.Low, &g.FlipBand.High
		}
		return []any{g.Spot, g.EffectiveSpot, g.Net, g.Flip, g.CallWall, g.PutWall,
			g.Regime, g.ExpectedMove, g.ZeroDTE.Net, g.ZeroDTE.Share, low, high, g.Exposures.LaterCharm}
	},
	data: func(d *trackData) any { return d },
}

// trackData is the track of a session as a table, the `data` of gex/spx/intraday: one row for each snapshot of gex/spx whose
// `as_of` differs from the row before, oldest first. A server that was down has a gap.
type trackData struct {
	Date        compute.Date `json:"date"`         // UTC date of the track.
	SessionDate compute.Date `json:"session_date"` // Exchange session of the track.
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=15,maxItems=15,oneof_ref=#/components/schemas/TrackColumn"`
	// One row per snapshot. `as_of` lies in the session, or at most 15 minutes after its close. When there are more than 1,200
	// rows, every second row is dropped, from the second on, and the last stays.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=1200,oneof_ref=#/components/schemas/TrackRow"`
}

// trackQuality is `meta.quality` of gex/spx/intraday.
type trackQuality struct {
	Rows int `json:"rows" jsonschema:"minimum=0,maximum=1200" unit:"rows"` // Rows served.
}

// gatherTrack adds the inputs of gamma and the rows before the chain. A chain that adds no row gives no answer, unless no track is served.
func gatherTrack(p *Product, b *Batch, in *Inputs) error {
	d := in.Documents[0]
	if err := d.Open(); err != nil {
		return err
	}
	var err error
	rows := b.TrackRows
	if rows == nil {
		rows, err = b.Memory.trackBefore(p, d.Chain.AsOf, b.At)
	}
	if err == nil {
		rows, err = p.before(rows, d.Chain.AsOf)
	}
	if err != nil {
		b.Memory.log.Error("track not continued", "err", err) // gamma does not need it
		rows = nil
	}
	if rows == nil {
		in.Documents = nil
		return nil
	}
	return errors.Join(gatherExposure(p, b, in), in.addState(trackRowsState, rows))
}

// trackBefore returns the rows of a track to which a chain with this as_of may add a row at the instant now: those of the served
// track, or, if the chain belongs to another session, those of the stored track of that session, or none. It returns nil if the as_of lies
// outside the track's hours, or is not of the date of now.
func (m *Memory) trackBefore(p *Product, asOf, now time.Time) ([]json.RawMessage, error) {
	date := compute.DateOf(asOf.UTC())
	served := m.store.Current(p.Name)
	switch {
	case served == nil:
		return []json.RawMessage{}, nil
	case !InTrack(asOf, m.calendar), date != compute.DateOf(now.UTC()):
		return nil, nil
	case compute.DateOf(served.Default.Meta.AsOf.UTC()) != date:
		f, err := m.store.Load(p.Name, date.String())
		switch {
		case errors.Is(err, snapshots.ErrNoSnapshot), errors.Is(err, snapshots.ErrTorn), errors.Is(err, snapshots.ErrNewerFormat):
			return []json.RawMessage{}, nil
		case err != nil:
			return nil, err // a new track would replace the rows that cannot be read now
		}
		served = f.Edition
	}
	return p.TrackRows(served.Default.Data())
}

// Between returns the time after an answer in which newer documents change nothing: of a track with rows for more than one snapshot, else 0.
func (p *Product) Between() time.Duration {
	if p.track == nil {
		return 0
	}
	return p.track.every
}

// Apart says whether a track has a row for an as_of if the row before is of another.
func (p *Product) Apart(before, asOf time.Time) bool {
	return asOf.Truncate(p.Between()).After(before)
}

// before returns the rows before that of an as_of, nil if it gets none: a row of today's method has the as_of or a later one, or is not apart.
func (p *Product) before(rows []json.RawMessage, asOf time.Time) ([]json.RawMessage, error) {
	if len(rows) == 0 {
		return rows, nil
	}
	newest := rows[len(rows)-1]
	last, err := RowInstant(newest)
	switch {
	case err != nil:
		return nil, err
	case p.Apart(last, asOf):
		return rows, nil
	case asOf.Equal(last) && !bytes.HasSuffix(newest, []byte(`"`+p.Method+`"]`)):
		return rows[:len(rows)-1], nil
	}
	return nil, nil
}

// InTrack says whether an as_of lies in the hours of a session, or at most [trackTail] after them.
func InTrack(asOf time.Time, cal *compute.Calendar) bool {
	d := compute.DateOf(asOf.In(compute.NewYork))
	return cal.IsSession(d) && !asOf.Before(cal.Open(d)) && !asOf.After(cal.Close(d).Add(trackTail))
}

// Rows returns the rows of a track with that of the chain in a batch, if it is newer than the last of the rows and in the track's hours. Tracks
// of one underlying share the gamma exposure of the batch.
func (p *Product) Rows(b *Batch, rows []json.RawMessage) ([]json.RawMessage, error) {
	b.TrackRows = rows
	a, err := p.Next(b)
	if err != nil || a == nil {
		return rows, err
	}
	b.Answers[gammaOfUnderlying(p.Underlying)] = a
	return p.TrackRows(a.variants[""].JSON)
}

// TrackRows returns the rows of the JSON of a track. Rows of an earlier method have null in the columns that it did not have.
func (p *Product) TrackRows(body []byte) ([]json.RawMessage, error) {
	data := trackData{Rows: []json.RawMessage{}}
	if err := json.Unmarshal(body, &data); err != nil {
		return nil, fmt.Errorf("decode track: %w", err)
	}
	for i, row := range data.Rows {
		data.Rows[i] = padded(row, p.track.columns)
	}
	return data.Rows, nil
}

// RowInstant returns the as_of of a row.
func RowInstant(row json.RawMessage) (asOf time.Time, err error) {
	if err = json.Unmarshal(row, &[]any{&asOf}); err != nil {
		err = fmt.Errorf("decode row %.40q of track: %w", row, err)
	}
	return asOf, err
}

// LosesRows says whether a track lacks a row of the stored track of the same date. Of a track that may be thinned, up to three rows in a row may be
// missing: it was thinned at most twice since.
func LosesRows(stored, next *snapshots.Snapshot) bool {
	p := Named(next.Meta.Endpoint)
	if p == nil || !p.Accumulates || stored.Date() != next.Date() {
		return false
	}
	had, err := p.TrackRows(stored.Data())
	has, failed := p.TrackRows(next.Data())
	if err != nil || failed != nil {
		return err == nil
	}
	instants := map[time.Time]bool{}
	for _, row := range has {
		at, _ := RowInstant(row)
		instants[at.UTC()] = true
	}
	missing := 0 // in a row
	for _, row := range had {
		if at, _ := RowInstant(row); instants[at.UTC()] {
			missing = 0
		} else if missing++; len(has) <= maxTrackRows/2 || missing > 3 {
			return true
		}
	}
	return false
}

// compute returns the rows before and the row of the chain. Outside the track's hours the chain has no row.
func (t *track) compute(a *Answer, in *Inputs, d *feed.Document) error {
	session := d.Chain.Session(in.calendar)
	rows, err := stateOf[[]json.RawMessage](in, trackRowsState)
	if err != nil {
		return err
	}
	if InTrack(a.AsOf, in.calendar) {
		gamma, err := gammaOf(in, d)
		if err != nil {
			return err
		}
		row, err := json.Marshal(slices.Concat([]any{a.AsOf.UTC()}, t.values(&gamma.Data), []any{t.method}))
		if err != nil {
			return fmt.Errorf("encode row: %w", err)
		}
		rows, a.unusable = append(rows, row), unusedContracts(gamma)
	}
	rows = thinned(rows)
	a.variants = only(t.data(&trackData{Date: a.Date(), SessionDate: session, Columns: t.columns, Rows: rows}))
	a.quality = trackQuality{len(rows)}
	return nil
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

// maxTrackStrikes is the largest number of strikes of a row: of SPX, ±2.3 % of the spot. A session of SPX takes 95 KB, compressed 14 to 16 KB.
const maxTrackStrikes = 70

var strikesTrack = &track{
	method:  "strikes/3",
	columns: []string{"as_of", "effective_spot", "strikes", "net_gex_dollars", "method"},
	every:   5 * time.Minute,
	values: func(g *compute.Gamma) []any {
		var strikes []compute.Level
		var net []*compute.Dollars
		for _, row := range nearest(g.ByStrike, g.EffectiveSpot, maxTrackStrikes) {
			strikes, net = append(strikes, row.Strike), append(net, threeDigits(row.Net))
		}
		return []any{g.EffectiveSpot, strikes, net}
	},
	data: func(d *trackData) any { return (*strikesData)(d) },
}

// strikesData is net gamma by strike through a session as a table, the `data` of gex/{u}/strikes: one row for the first snapshot of gex/{u} of
// each 5 minutes, oldest first. A server that was down has a gap.
type strikesData struct {
	Date        compute.Date `json:"date"`         // UTC date of the track.
	SessionDate compute.Date `json:"session_date"` // Exchange session of the track.
	// Names of the columns, in the order of the values of a row.
	Columns []string `json:"columns" jsonschema:"minItems=5,maxItems=5,oneof_ref=#/components/schemas/StrikesColumn"`
	// One row for each 5 minutes. `as_of` lies in the session, or at most 15 minutes after its close.
	Rows []json.RawMessage `json:"rows" jsonschema:"maxItems=82,oneof_ref=#/components/schemas/StrikesRow"`
}

// nearest returns the n rows, which rise, whose strikes are nearest to the spot.
func nearest(rows []compute.StrikeGamma, spot compute.Level, n int) []compute.StrikeGamma {
	for len(rows) > n {
		if last := len(rows) - 1; spot-rows[0].Strike > rows[last].Strike-spot {
			rows = rows[1:]
		} else {
			rows = rows[:last]
		}
	}
	return rows
}

func threeDigits(x *compute.Dollars) *compute.Dollars {
	if x == nil {
		return nil
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*x), 'e', 2, 64), 64) // it is a number
	return new(compute.Dollars(rounded))
}
