package refresh

import (
	"context"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/snapshots"
)

// sessionsPerYear is how many dates a year stores.
const sessionsPerYear = 252

// typicalSize is the bytes of one file in all its codings, measured on a chain of 30,000 contracts (2026-11); it
// stands in until the store has files of its own. state is the state of one chain of the flow universe.
var typicalSize = map[string]int64{
	GammaResource: 150_000, PainResource: 1_750_000, FlowResource: 110_000, SectorsResource: 17_000, VIXResource: 6_500,
}

const typicalState = 20_000

// ExpectedBytesPerYear returns how many bytes a year of sessions adds to the store, without what expires in it.
func (r *Refresher) ExpectedBytesPerYear() int64 {
	var total int64
	for product, typical := range typicalSize {
		kept := time.Duration(0)
		if !forGood(product) {
			kept = r.cfg.SnapshotMaxAge
		}
		total += r.sizeOf(product, typical) * sessionsIn(kept)
	}
	for _, symbol := range append([]string{"SPX"}, r.flow.symbols...) {
		for _, state := range []string{chainState, volatilityState} {
			total += r.sizeOf(stateDir+state+symbol, typicalState) * sessionsIn(stateMaxAge)
		}
	}
	return total + r.expectedArchive()
}

// The bytes of what one date is computed from, compressed (2026-11): the SPX chain; the quotes and histories of the
// sector funds and the settlements; and a chain of the flow universe with its volatilities.
const (
	typicalSPXInput   = 2_000_000
	typicalFundsInput = 350_000
	typicalFlowInput  = 250_000
)

// expectedArchive returns how many bytes the inputs take that are kept at a time.
func (r *Refresher) expectedArchive() int64 {
	if r.cfg.Inputs == nil {
		return 0
	}
	size := r.cfg.Inputs.DateBytes()
	if size == 0 {
		size = typicalSPXInput + typicalFundsInput + typicalFlowInput*int64(len(r.flow.symbols))
	}
	return min(size*sessionsIn(r.cfg.ArchiveMaxAge), r.cfg.Inputs.MaxBytes())
}

func (r *Refresher) sizeOf(product string, typical int64) int64 {
	if size := r.store.FileSize(product); size > 0 {
		return size
	}
	return typical
}

// sessionsIn returns the sessions of a time, of a year at most; 0 stands for ever.
func sessionsIn(age time.Duration) int64 {
	const year = 365 * 24 * time.Hour
	if age <= 0 || age > year {
		return sessionsPerYear
	}
	return int64(age) * sessionsPerYear / int64(year)
}

// forGood says whether a product's files are kept for good.
func forGood(product string) bool { return product != PainResource && product != FlowResource }

const stateDir = "state/"

// stateMaxAge is how long the state of a chain is kept: longer than any pause between two sessions.
const stateMaxAge = 14 * 24 * time.Hour

// expire removes dated files that are no longer kept.
func (r *Refresher) expire(context.Context) error {
	now := r.cfg.Clock.Now()
	if r.cfg.Inputs != nil && r.cfg.ArchiveMaxAge > 0 {
		r.cfg.Inputs.Expire(compute.DateOf(now.Add(-r.cfg.ArchiveMaxAge)).String())
	}
	removed := 0
	for _, rule := range []struct {
		age     time.Duration
		expired func(file string) bool
	}{
		{r.cfg.SnapshotMaxAge, func(file string) bool {
			return file == snapshots.FileName(PainResource) || file == snapshots.FileName(FlowResource)
		}},
		{stateMaxAge, func(file string) bool {
			return strings.HasPrefix(file, snapshots.FileName(stateDir+chainState)) ||
				strings.HasPrefix(file, snapshots.FileName(stateDir+volatilityState))
		}},
	} {
		if rule.age <= 0 {
			continue
		}
		n, err := r.store.Expire(compute.DateOf(now.Add(-rule.age)).String(), rule.expired)
		removed += n
		if err != nil {
			return err
		}
	}
	if removed > 0 {
		r.log.Info("old files removed", "files", removed)
	}
	return nil
}
