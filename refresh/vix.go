package refresh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// vixJob holds the settlements, the closes of the indices and the stored history.
type vixJob struct {
	mu      sync.Mutex // held for a whole run
	file    settlementFile
	tried   time.Time // of the last request for a file
	closes  map[compute.Date]indexCloses
	asked   time.Time    // of the last request for histories of the indices
	history []vixSummary // of stored dates, rising
	content string
}

// settlementFile is a decoded settlement file.
type settlementFile struct {
	date     compute.Date
	rows     []compute.FuturesSettlement
	bad      int
	input    *archive.Document // with its body, until that is archived
	captured *time.Time
	arrived  time.Time
}

// indexCloses are the closes of VIX and VIX3M on one date; nil where unknown. They are dated state.
type indexCloses struct {
	VIX   *float64 `json:"vix"`
	VIX3M *float64 `json:"vix3m"`
}

func (c indexCloses) complete() bool { return c.VIX != nil && c.VIX3M != nil }

// vixSummary is what later dates need of a stored one; it is the summary of its file.
type vixSummary struct {
	Date        compute.Date       `json:"date"`
	Contango    *compute.Ratio     `json:"contango_m1_m2_pct"`
	SpotBasis   *compute.Ratio     `json:"spot_basis_pct"`
	Settlements map[string]float64 `json:"settlements"`
}

const (
	closesState = "vix-closes"
	vixIndex    = "_VIX"
	vix3mIndex  = "_VIX3M"
	// settlementRetry is how long the job waits before it asks again for a file that is not out yet.
	settlementRetry = 15 * time.Minute
)

// settlementDue returns the date whose settlements should be out: they appear in the evening, 18:30 New York.
func settlementDue(now time.Time, cal *compute.Calendar) compute.Date {
	d := cal.SessionDate(now)
	if now.Before(d.At(18, 30, 0, compute.NewYork)) {
		return cal.Previous(d)
	}
	return d
}

// settlementOverdue says whether a missing file is the upstream's failure: by 11:00 New York of the next session
// it has always been out.
func settlementOverdue(date compute.Date, now time.Time, cal *compute.Calendar) bool {
	return now.After(cal.Next(date).At(11, 0, 0, compute.NewYork))
}

// refreshVIX fetches the settlements that are due, again until the right date arrives, and the closes of the
// indices on that date, and publishes the curve.
func (r *Refresher) refreshVIX(ctx context.Context) error {
	r.vix.mu.Lock()
	defer r.vix.mu.Unlock()
	now := r.cfg.Clock.Now()
	due := settlementDue(now, r.cal)
	if !r.cfg.Source.Offers(upstream.Settlement(due.String())) {
		return nil
	}
	watch := newStopwatch()
	var failure error
	if r.vix.file.date < due && !now.Before(r.vix.tried.Add(settlementRetry)) {
		r.vix.tried = now
		failure = r.fetchSettlement(ctx, due, now)
	}
	if err := r.fetchCloses(ctx, now); err != nil {
		r.log.Warn("index closes not refreshed", "err", err)
	}
	watch.lap("fetch_ms")
	if r.vix.file.rows == nil {
		failure = cmp.Or[error](failure, &refusal{upstream.Empty, errors.New("no settlement file yet")})
	} else if err := r.publishVIX(now, watch); err != nil {
		failure = err
	}
	if failure != nil {
		r.fail(failure, VIXResource)
	}
	return failure
}

// fetchSettlement fetches the file of a date and keeps it when it is newer than the one held. An older day's
// file, or a mere header, is no failure while the date may still not be out.
func (r *Refresher) fetchSettlement(ctx context.Context, due compute.Date, now time.Time) error {
	name := upstream.Settlement(due.String())
	doc, err := r.cfg.Source.Fetch(ctx, name, nil)
	if err != nil {
		return err
	}
	f, err := decodeSettlement(doc, due)
	if errors.Is(err, cboe.ErrNoRows) && !settlementOverdue(due, now, r.cal) {
		return nil
	}
	if err != nil {
		return decodeError(name, err)
	}
	if f.date > r.vix.file.date {
		r.vix.file = f
	}
	if f.date < due && settlementOverdue(due, now, r.cal) {
		return &refusal{upstream.Older, fmt.Errorf("asked for %s, got the file of %s", due, f.date)}
	}
	return nil
}

// decodeSettlement decodes a file. The date it says it is of decides, else the date that was asked for.
func decodeSettlement(doc *upstream.Document, asked compute.Date) (settlementFile, error) {
	rows, bad, err := cboe.DecodeSettlement(doc.Body)
	if err != nil {
		return settlementFile{}, err
	}
	f := settlementFile{date: asked, rows: rows, bad: bad, input: inputOf(doc), arrived: doc.Received}
	if doc.FileDate != "" {
		if f.date, err = compute.ParseDate(doc.FileDate); err != nil {
			return settlementFile{}, fmt.Errorf("%w: %w", cboe.ErrMalformed, err)
		}
	}
	if !doc.Generated.IsZero() {
		f.captured = new(doc.Generated)
	}
	return f, nil
}

// fetchCloses finds the closes of the indices that are still unknown: of the session just closed from quotes,
// and of the settlement date, failing that, from daily histories.
func (r *Refresher) fetchCloses(ctx context.Context, now time.Time) error {
	session := r.cal.SessionDate(now)
	evening := session.At(16, 31, 0, compute.NewYork)
	if !now.Before(evening) && !r.closesOf(session).complete() {
		if err := r.closesFromQuotes(ctx, session); err != nil {
			return err
		}
	}
	date := r.vix.file.date
	if date == 0 || r.closesOf(date).complete() || now.Before(r.vix.asked.Add(historyRetry)) {
		return nil
	}
	r.vix.asked = now
	if err := r.closesFromQuotes(ctx, date); err != nil {
		return err
	}
	if r.closesOf(date).complete() {
		return nil
	}
	return r.closesFromHistory(ctx, date)
}

// closesOf returns the known closes of a date.
func (r *Refresher) closesOf(date compute.Date) indexCloses {
	if c, ok := r.vix.closes[date]; ok {
		return c
	}
	var c indexCloses
	if state, stored := r.store.State(closesState, date.String()); stored == date.String() {
		if err := json.Unmarshal(state, &c); err != nil {
			r.log.Error("state not readable", "state", closesState, "date", stored, "err", err)
			c = indexCloses{}
		}
	}
	return c
}

func (r *Refresher) keepCloses(date compute.Date, c indexCloses) {
	if r.vix.closes == nil {
		r.vix.closes = map[compute.Date]indexCloses{}
	}
	if before := r.closesOf(date); before.VIX != c.VIX || before.VIX3M != c.VIX3M {
		r.saveState(closesState, date, func() ([]byte, error) { return json.Marshal(c) })
	}
	r.vix.closes[date] = c
}

// closesFromQuotes takes a quote as the close of a date when its last trade is of that date at or after 16:14
// New York.
func (r *Refresher) closesFromQuotes(ctx context.Context, date compute.Date) error {
	return r.findCloses(ctx, date, upstream.Quotes, func(body []byte) (*float64, error) {
		q, err := cboe.DecodeQuote(body)
		if err != nil {
			return nil, err
		}
		return closeOn(q, date), nil
	})
}

// closesFromHistory takes the rows of a date in the daily histories.
func (r *Refresher) closesFromHistory(ctx context.Context, date compute.Date) error {
	return r.findCloses(ctx, date, upstream.History, func(body []byte) (*float64, error) {
		rows, err := cboe.DecodeHistory(body)
		if err != nil {
			return nil, err
		}
		i, found := slices.BinarySearchFunc(rows, date, func(c compute.Close, d compute.Date) int { return cmp.Compare(c.Date, d) })
		if !found {
			return nil, nil
		}
		return new(rows[i].Price), nil
	})
}

// findCloses asks for the documents of the indices whose close of a date is unknown, and keeps what read finds.
func (r *Refresher) findCloses(ctx context.Context, date compute.Date, document func(symbol string) upstream.Name,
	read func(body []byte) (*float64, error)) error {
	c := r.closesOf(date)
	for _, index := range []struct {
		symbol string
		close  **float64
	}{{vixIndex, &c.VIX}, {vix3mIndex, &c.VIX3M}} {
		name := document(index.symbol)
		if *index.close != nil || !r.cfg.Source.Offers(name) {
			continue
		}
		doc, err := r.cfg.Source.Fetch(ctx, name, nil)
		if err != nil {
			return err
		}
		if *index.close, err = read(doc.Body); err != nil {
			return decodeError(name, err)
		}
	}
	r.keepCloses(date, c)
	return nil
}

// closeOn returns a quote's price when it is the close of the date, else nil.
func closeOn(q *cboe.Quote, date compute.Date) *float64 {
	if compute.DateOf(q.AsOf.In(compute.NewYork)) != date || q.AsOf.Before(date.At(16, 14, 0, compute.NewYork)) {
		return nil
	}
	return new(q.Spot)
}

// vixQuality is `meta.quality` of vix-term-structure.
type vixQuality struct {
	compute.VIXQuality
	UnreadableRows int `json:"unreadable_rows"`
	// Unknown says why fields are null.
	Unknown map[string]string `json:"unknown"`
}

func (r *Refresher) publishVIX(now time.Time, watch *stopwatch) error {
	a, summary, err := r.vixAnswer(r.vix.file, r.closesOf(r.vix.file.date), now)
	if err != nil {
		return err
	}
	if a.content == r.vix.content {
		r.succeed(VIXResource)
		return nil
	}
	content := a.content
	if err := r.publish(vixFeed, a); err != nil {
		return err
	}
	r.vix.content = content
	r.vix.remember(summary)
	watch.lap("publish_ms")
	r.keepInputs(a)
	watch.lap("archive_ms")
	r.log.Info("refreshed", watch.with("feed", "vix", "settlement_date", r.vix.file.date.String(), "rows", len(r.vix.file.rows))...)
	return nil
}

// remember puts a summary in its place in the history.
func (v *vixJob) remember(s vixSummary) {
	i, found := slices.BinarySearchFunc(v.history, s.Date, func(h vixSummary, d compute.Date) int { return cmp.Compare(h.Date, d) })
	if found {
		v.history[i] = s
	} else {
		v.history = slices.Insert(v.history, i, s)
	}
}

// vixAnswer computes the curve of a settlement file.
func (r *Refresher) vixAnswer(f settlementFile, closes indexCloses, now time.Time) (answer, vixSummary, error) {
	in := compute.VIXInput{
		Date: f.date, Rows: f.rows, Calendar: r.cal, Now: now, VIX: closes.VIX, VIX3M: closes.VIX3M,
	}
	before := 0
	for _, h := range r.vix.history {
		if h.Date < f.date {
			in.History = append(in.History, compute.VIXHistory{Date: h.Date, ContangoM1M2: h.Contango, SpotBasis: h.SpotBasis})
			in.Previous = h.Settlements
			before++
		}
	}
	curve, quality, ok := compute.VIXTermStructure(in)
	r.noted(quality.Calendar)
	if !ok {
		return answer{}, vixSummary{}, &refusal{upstream.Empty, errors.New("settlement file has no monthly VIX future")}
	}
	summary := vixSummary{Date: f.date, Contango: curve.ContangoM1M2, SpotBasis: curve.SpotBasis, Settlements: map[string]float64{}}
	for _, c := range curve.Curve {
		summary.Settlements[c.Symbol] = float64(c.Settlement)
	}
	encoded, err := json.Marshal(summary)
	if err != nil {
		return answer{}, summary, fmt.Errorf("encode summary: %w", err)
	}
	// Later dates compare with the numbers as they are stored, whether or not there was a restart between.
	if err := json.Unmarshal(encoded, &summary); err != nil {
		return answer{}, summary, fmt.Errorf("decode summary: %w", err)
	}
	a := answer{
		resource: VIXResource, asOf: f.date.At(16, 0, 0, compute.NewYork).UTC(), captured: f.captured, arrived: f.arrived,
		computed: now, inputs: []string{f.input.SHA256}, documents: []*archive.Document{f.input}, summary: encoded, data: &curve,
		state:   vixState{closes, r.vix.before(f.date)},
		quality: vixQuality{quality, f.bad, unknownVIX(&curve, f.date)},
	}
	a.content = sha256Hex(fmt.Appendf(nil, "%s %s %s %d %d", f.input.SHA256, level(closes.VIX), level(closes.VIX3M), before, curve.StaleSessions))
	return a, summary, nil
}

func level(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprint(*x)
}

// unknownVIX says why fields of the curve are null.
func unknownVIX(c *compute.VIXCurve, date compute.Date) map[string]string {
	why := map[string]string{}
	if c.VIX == nil {
		why["vix"] = fmt.Sprintf("no close of %s is known; spot_basis_pct and vol_level rest on it", date)
	}
	if c.VIX3M == nil {
		why["vix3m"] = fmt.Sprintf("no close of %s is known; vix_vix3m_ratio and cash_regime rest on it", date)
	}
	if len(c.Curve) > 0 && c.Curve[0].Change == nil {
		why["change"] = "no earlier settlement file is stored"
	}
	if c.Percentiles.ContangoM1M2.Percentile == nil || c.Percentiles.SpotBasis.Percentile == nil {
		why["percentiles"] = "fewer than 20 stored dates"
	}
	if len(c.Curve) < 7 {
		why["slope_per_month"] = "fewer than 7 months"
	}
	return why
}
