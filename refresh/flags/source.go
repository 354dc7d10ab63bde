package flags

import (
	"errors"
	"fmt"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/replay"
	"strikecache/refresh/simulated"
	"strikecache/snapshots"
)

// Source says where documents come from.
type Source struct {
	Name string `name:"source" help:"Where documents come from: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`

	ReplayDir string `help:"Folder of recorded documents: options/_SPX.json, quotes/XLK.json, charts/historical/XLK.json, settlement/2026-10-05.csv, each also as .gz." type:"path" placeholder:"DIR" group:"Source replay"`

	SimSeed  uint64  `help:"Seed of the simulated market." default:"1" group:"Source simulated"`
	SimStart string  `help:"Simulated time at the start, RFC 3339; by default 11:00 New York of the last session, or where the stored market left off." placeholder:"TIME" group:"Source simulated"`
	SimSpeed float64 `help:"Simulated seconds a second, 0 to 10000." default:"1" group:"Source simulated"`

	CboeBaseURL       string `name:"cboe-base-url" help:"Base of chains, quotes and histories." default:"${cboe_base}" group:"Source cboe"`
	CboeSettlementURL string `name:"cboe-settlement-url" help:"Address of settlement files, which takes ?dt=YYYY-MM-DD." default:"${cboe_settlement}" group:"Source cboe"`

	CboeRequestsPerMinute int           `help:"Requests to one host, evenly spaced, 1 to 6000. The upstream itself refuses some above 45." default:"20" group:"Source cboe"`
	CboeTimeout           time.Duration `help:"Time for one request with its body, 1s to 5m." default:"30s" group:"Source cboe"`
}

// Vars are the defaults that the help of [Source] names.
func Vars() map[string]string {
	return map[string]string{"cboe_base": cboe.DefaultBaseURL, "cboe_settlement": cboe.DefaultSettlementURL}
}

// Check returns an error that names the right values.
func (s *Source) Check() error {
	switch {
	case !(s.SimSpeed >= 0 && s.SimSpeed <= 10_000):
		return fmt.Errorf("--sim-speed must be from 0 to 10000, not %v", s.SimSpeed)
	case s.Name == "replay" && s.ReplayDir == "":
		return errors.New("--source replay needs --replay-dir")
	case s.CboeRequestsPerMinute < 1 || s.CboeRequestsPerMinute > 6000:
		return fmt.Errorf("--cboe-requests-per-minute must be from 1 to 6000, not %d", s.CboeRequestsPerMinute)
	case s.CboeTimeout < time.Second || s.CboeTimeout > 5*time.Minute:
		return fmt.Errorf("--cboe-timeout must be from 1s to 5m0s, not %s", s.CboeTimeout)
	}
	_, err := s.simStart()
	return err
}

func (s *Source) simStart() (time.Time, error) {
	if s.SimStart == "" {
		return time.Time{}, nil
	}
	start, err := time.Parse(time.RFC3339, s.SimStart)
	if err != nil {
		return start, fmt.Errorf("--sim-start: %q is not RFC 3339, such as 2026-11-20T16:00:00Z", s.SimStart)
	}
	return start, nil
}

// Open fills in the source and its clock; cfg has its store and its calendar. A clock that cfg has already is that of a
// simulated market which goes on.
func (s *Source) Open(cfg *refresh.Config) error {
	cfg.SourceName = s.Name
	switch s.Name {
	case "cboe":
		client, err := cboe.NewClient(cboe.ClientConfig{
			BaseURL: s.CboeBaseURL, SettlementURL: s.CboeSettlementURL, PerMinute: s.CboeRequestsPerMinute, Timeout: s.CboeTimeout,
		})
		cfg.Source, cfg.Clock = client, refresh.MachineClock()
		return err
	case "replay":
		recorded, err := replay.New(s.ReplayDir)
		if err != nil {
			return err
		}
		cfg.Source, cfg.Clock = recorded, refresh.NewClock(recorded.Now(), 0)
		return nil
	}
	if err := cfg.Store.Bind(fmt.Sprintf("simulated market, seed %d", s.SimSeed)); err != nil {
		return fmt.Errorf("%w; give another --data-dir, or the seed it was made with", err)
	}
	if (cfg.Clock == refresh.Clock{}) {
		start, err := s.simStart()
		if err != nil {
			return err
		}
		if start.IsZero() {
			start = resumed(cfg.Calendar, cfg.Store, cfg.FlowSymbols, time.Now())
		}
		cfg.Clock = refresh.NewClock(start, s.SimSpeed)
	}
	market := simulated.New(simulated.Config{Seed: s.SimSeed, Now: cfg.Clock.Now, Calendar: cfg.Calendar})
	cfg.Source, cfg.Archive, cfg.BackfillSessions = market, market, 30
	return nil
}

// resumed is where the stored market left off, or 11:00 New York of the last session.
func resumed(cal *compute.Calendar, store *snapshots.Store, symbols []string, now time.Time) time.Time {
	session := cal.SessionDate(now)
	start := session.At(11, 0, 0, compute.NewYork)
	if start.After(now) {
		start = cal.Previous(session).At(11, 0, 0, compute.NewYork)
	}
	if left := refresh.LeftOff(store, symbols); left.After(start) {
		start = left
	}
	return start
}
