package flags

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
)

// Schedule says how often what is fetched, with which numbers it is computed, and how long it is kept.
type Schedule struct {
	GexEvery    time.Duration `help:"Interval of gamma, max pain and SPX flow in session, 5s to 1h (default 25s, with cboe 60s)." placeholder:"D" group:"Schedule"`
	QuotesEvery time.Duration `help:"Interval of sector quotes in session, 5s to 1h." default:"1m" group:"Schedule"`
	FlowEvery   time.Duration `help:"Interval at which the next chain of the flow universe is fetched, 1s to 1h (default 10s, with cboe 60s)." placeholder:"D" group:"Schedule"`
	FlowSymbols []string      `help:"Flow universe beside SPX, at most 100 symbols; indices with an underscore (default ${default})." default:"SPY,QQQ,XLK,XLF,XLE,AAPL,NVDA,TSLA,MSFT,AMZN,META" placeholder:"SYMBOL" group:"Schedule"`
	ClosedDates string        `help:"File of further exchange closures: a date a line, with the word early for a 13:00 close." type:"existingfile" placeholder:"FILE" group:"Schedule"`

	RiskFreeRate   float64       `help:"Continuously compounded rate a year, -0.05 to 0.25." default:"0.04" group:"Numbers"`
	SnapshotMaxAge time.Duration `help:"How long dated files of max pain and flow are kept; 0 for ever. Gamma, sectors and VIX are always kept." default:"720h" group:"Storage"`

	ArchiveMaxAge   time.Duration `help:"How long inputs are archived, for recompute; 0 without end." default:"2160h" group:"Storage"`
	ArchiveMaxBytes Bytes         `help:"Bytes that archived inputs may take, such as 500MB or 5GiB, oldest dates first out; 0 archives none." default:"5GiB" group:"Storage"`
}

var symbolForm = regexp.MustCompile(`^_?[A-Z]{1,6}$`)

// maxFlowSymbols bounds the universe: each symbol is a chain in memory and a request in turn.
const maxFlowSymbols = 100

// Check returns an error that names the right values.
func (s *Schedule) Check() error {
	within := func(flag string, d, lo, hi time.Duration) error {
		if d != 0 && (d < lo || d > hi) {
			return fmt.Errorf("--%s must be from %s to %s, not %s", flag, lo, hi, d)
		}
		return nil
	}
	err := errors.Join(
		within("gex-every", s.GexEvery, 5*time.Second, time.Hour),
		within("quotes-every", s.QuotesEvery, 5*time.Second, time.Hour),
		within("flow-every", s.FlowEvery, time.Second, time.Hour))
	switch {
	case err != nil:
		return err
	case s.QuotesEvery == 0:
		return errors.New("--quotes-every must be from 5s to 1h0m0s, not 0s")
	case !(s.RiskFreeRate >= -0.05 && s.RiskFreeRate <= 0.25):
		return fmt.Errorf("--risk-free-rate must be from -0.05 to 0.25, not %v", s.RiskFreeRate)
	case s.SnapshotMaxAge < 0:
		return errors.New("--snapshot-max-age must not be negative")
	case s.ArchiveMaxAge < 0:
		return errors.New("--archive-max-age must not be negative")
	case s.ArchiveMaxBytes != 0 && s.ArchiveMaxBytes < minArchive:
		return fmt.Errorf("--archive-max-bytes must be 0, or at least %d, which hold a day", minArchive)
	case len(s.FlowSymbols) > maxFlowSymbols:
		return fmt.Errorf("--flow-symbols has %d symbols, at most %d are allowed", len(s.FlowSymbols), maxFlowSymbols)
	}
	for _, symbol := range s.FlowSymbols {
		if !symbolForm.MatchString(symbol) {
			return fmt.Errorf("--flow-symbols: %q is not a symbol such as SPY or _NDX", symbol)
		}
	}
	return nil
}

// Open fills in the calendar, the schedule and the numbers. Intervals not given depend on the source.
func (s *Schedule) Open(cfg *refresh.Config, source string) (err error) {
	cfg.ChainEvery, cfg.QuotesEvery, cfg.FlowEvery, cfg.FlowSymbols = s.GexEvery, s.QuotesEvery, s.FlowEvery, s.FlowSymbols
	if cfg.ChainEvery == 0 {
		cfg.ChainEvery = bySource(source, 25*time.Second, time.Minute)
	}
	if cfg.FlowEvery == 0 {
		cfg.FlowEvery = bySource(source, 10*time.Second, time.Minute)
	}
	cfg.RiskFreeRate, cfg.SnapshotMaxAge = s.RiskFreeRate, s.SnapshotMaxAge
	cfg.ArchiveMaxAge = s.ArchiveMaxAge
	cfg.Calendar, err = s.calendar()
	return err
}

func bySource(source string, otherwise, cboe time.Duration) time.Duration {
	if source == "cboe" {
		return cboe
	}
	return otherwise
}

func (s *Schedule) calendar() (*compute.Calendar, error) {
	if s.ClosedDates == "" {
		return compute.NewCalendar(nil, nil), nil
	}
	text, err := os.ReadFile(s.ClosedDates)
	if err != nil {
		return nil, fmt.Errorf("--closed-dates: %w", err)
	}
	closed, early, err := compute.ParseClosures(text)
	if err != nil {
		return nil, fmt.Errorf("--closed-dates %s: %w", s.ClosedDates, err)
	}
	return compute.NewCalendar(closed, early), nil
}
