package refresh

import (
	"context"
	"errors"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
)

// spxChain is the document that most resources rest on.
const spxChain = upstream.Name("options/_SPX.json")

// spxJob is what the job of the SPX chain remembers between runs. Only that job uses it.
type spxJob struct {
	last    *upstream.Document // validators
	content string             // of the last published document
	oi      string             // what it said of the state of open interest
	epoch   int64
	carry   map[compute.Series]float64
}

// refreshSPX fetches the SPX chain and publishes all that rests on it.
func (r *Refresher) refreshSPX(ctx context.Context) error {
	if !r.cfg.Source.Offers(spxChain) {
		return nil
	}
	names := []string{GammaResource, SeriesResource, PainResource, FlowResource}
	watch := newStopwatch()
	if r.spx.epoch != r.epoch.Load() {
		r.spx.last = nil // the same document may say more now
	}
	c, err := r.fetchChain(ctx, spxChain, &r.spx.last, watch)
	if errors.Is(err, upstream.ErrNotModified) {
		r.succeed(names...)
		return nil
	}
	if err == nil {
		err = r.acceptSPX(c, watch)
	}
	if err != nil {
		r.spx.last = nil // the next answer must be whole
		r.fail(err, names...)
	}
	return err
}

// acceptSPX publishes what rests on a chain, unless it says what the last one said. Open interest changes its
// date by the clock of the document alone.
func (r *Refresher) acceptSPX(c *chainDocument, watch *stopwatch) error {
	oi := openInterestState(c.CapturedAt, r.cal)
	epoch := r.epoch.Load()
	if c.content == r.spx.content && oi == r.spx.oi && epoch == r.spx.epoch {
		r.succeed(GammaResource, SeriesResource, PainResource, FlowResource)
		return nil
	}
	now := r.cfg.Clock.Now()
	gamma, result := r.gammaAnswer(c, now, r.spx.carry)
	pains := r.painAnswer(c, now)
	part := r.flowPart(c)
	watch.lap("compute_ms")
	r.saveVolatility(c)
	r.saveChain(c, part, result.Carry)
	if !gamma.late() {
		r.series.put(gamma.date().String(), gamma.summary)
	}
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	r.flow.parts[c.Symbol] = part
	merged := r.cfg.Clock.Now() // other chains may have been merged since the one above
	answers := []answer{gamma, r.series.answer(&gamma), pains, r.flowAnswer(merged)}
	if err := r.publish(optionsFeed, answers...); err != nil {
		return err
	}
	watch.lap("publish_ms")
	r.spx.content, r.spx.oi, r.spx.epoch, r.spx.carry = c.content, oi, epoch, result.Carry
	r.keepInputs(answers...)
	watch.lap("archive_ms")
	r.log.Info("refreshed", watch.with("feed", "spx", "as_of", c.AsOf, "bytes", c.bytes, "listed", c.Listed,
		"used", result.Data.ContractsAnalyzed, "expirations", len(pains.variants))...)
	return nil
}

func openInterestState(captured time.Time, cal *compute.Calendar) string {
	settled, state := compute.OpenInterestDate(captured, cal)
	return settled.String() + " " + state
}

// answerOf starts an answer that rests on one chain.
func (c *chainDocument) answerOf(resource string, now time.Time) answer {
	return answer{
		resource: resource, asOf: c.AsOf, captured: new(c.CapturedAt), arrived: c.arrived, computed: now,
		inputs: []string{c.input.SHA256}, documents: []*archive.Document{c.input}, content: c.content,
	}
}

func (r *Refresher) gammaAnswer(c *chainDocument, now time.Time, previous map[compute.Series]float64) (answer, compute.GammaResult) {
	result := compute.GammaExposure(compute.GammaInput{
		Chain: c.Chain, Calendar: r.cal, RiskFreeRate: r.cfg.RiskFreeRate, PreviousCarry: previous,
	})
	a := c.answerOf(GammaResource, now)
	a.data, a.quality, a.state = &result.Data, result.Quality, gammaState{carryRows(previous)}
	r.noted(result.Quality.Calendar)
	a.summary = seriesRow(a.date(), &result.Data, r.cfg.SourceName)
	return a, result
}

// painQuality is `meta.quality` of spx-max-pain.
type painQuality struct {
	Contracts struct {
		Listed  int         `json:"listed"`
		Used    int         `json:"used"`
		Skipped painSkipped `json:"skipped"`
	} `json:"contracts"`
	Calendar *string `json:"calendar"`
}

type painSkipped struct {
	compute.Skipped
	Settled int `json:"settled"`
}

func (r *Refresher) painAnswer(c *chainDocument, now time.Time) answer {
	pains := compute.MaxPains(c.Chain, r.cal)
	a := c.answerOf(PainResource, now)
	a.variants = make(map[string]any, len(pains))
	dates := []compute.Date{c.Session(r.cal)}
	for _, p := range pains {
		a.variants[p.Expiration.String()] = p
		dates = append(dates, p.Expiration)
	}
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		a.byDefault = pains[i].Expiration.String()
	}
	q := painQuality{Calendar: r.noted(compute.CalendarNote(r.cal, dates...))}
	q.Contracts.Listed = c.Listed
	q.Contracts.Used = compute.Unsettled(c.Chain, r.cal)
	q.Contracts.Skipped = painSkipped{c.Skipped, len(c.Contracts) - q.Contracts.Used}
	a.quality = q
	return a
}
