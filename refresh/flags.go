package refresh

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/feed"
	"strikecache/refresh/fleet"
	"strikecache/refresh/folder"
	"strikecache/refresh/product"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Flags holds the flags of `strikecache serve` for the refresher, in the form that the kong parser reads.
type Flags struct {
	SourceFlags   `embed:""`
	ScheduleFlags `embed:""`
	Fleet         fleet.Flags `embed:"" group:"Fleet"`
}

// Validate is called by the parser. Its errors name the flag and the values that are allowed.
func (f *Flags) Validate() error {
	return errors.Join(f.SourceFlags.check(f.Fleet.Edge), f.ScheduleFlags.check(), f.Fleet.Check())
}

// FlagVars returns the variables, such as ${cboe_base}, in the help texts of [Flags] and [RecomputeCommand].
func FlagVars() map[string]string {
	return map[string]string{
		"cboe_base":   cboe.DefaultBaseURL,
		"underlyings": strings.Join(DefaultUnderlyings, ","),
	}
}

// historyBytes is the most memory that the store uses to cache answers of past dates.
const historyBytes = 16 << 20

// Open opens the store of the source below dataDir, and makes the stored answers current. Nothing is fetched before [Refresher.Start].
// The caller must close the refresher, by [Refresher.Close] or the stop function of Start. observe is [Config.Observe] and may be nil.
func (f *Flags) Open(dataDir string, log *slog.Logger, observe func(job, code string, refused []string, took time.Duration)) (*Refresher, error) {
	cfg := Config{SourceName: f.Name(), Log: log, Observe: observe}
	if err := f.ScheduleFlags.apply(&cfg); err != nil {
		return nil, err
	}
	r := &Refresher{}
	options := snapshots.Options{
		Dir: dataDir, Source: f.Name(), DatedProducts: DatedResources(f.Underlyings), Deltas: product.All(f.Underlyings).Deltas(), HistoryBytes: historyBytes,
		Reopen: product.All(f.Underlyings).Reopen(), Log: log,
		Latest: func() time.Time { return cfg.Clock.Now().Add(feed.MaxAhead) }, Loses: product.LosesRows,
	}
	if f.Fleet.NATS != "" {
		options.Publish = func(files []snapshots.Packed) (func(), error) { return r.member.Publish(files) } // nothing is saved before New
	}
	var err error
	if cfg.Store, err = snapshots.Open(options); err != nil {
		return nil, err
	}
	if f.Fleet.Edge {
		source := upstream.Source(noSource{})
		switch f.Source { // the clock and the intervals are those of the members that refresh: see NextChange
		case "cboe":
			cfg.Clock, cfg.TurnEvery = feed.MachineClock(), cboeTurn(f.CboeRequestsPerMinute, len(cfg.Underlyings))
		case "folder":
			cfg.Clock, source = feed.MachineClock(), noFolder{}
		default: // until it has joined the fleet, its market goes on from the last stored answer
			cfg.Clock = feed.NewClock(cmp.Or(leftOff(cfg.Store, Resources(f.Underlyings)), time.Now()), 1)
		}
		cfg.ask(source)
	} else {
		err = f.SourceFlags.apply(&cfg)
	}
	if err == nil {
		if missing := cfg.withoutChain(); f.Source == "simulated" && !f.Fleet.Edge && len(missing) > 0 {
			log.Warn("underlyings that the simulated market does not have", "underlyings", missing)
		}
		if f.Fleet.NATS != "" {
			r.follower = &follower{edge: f.Fleet.Edge}
			r.member = fleet.New(fleet.Config{Flags: f.Fleet, Source: f.Name(), Store: cfg.Store, Process: r.follower, Log: log})
			cfg.Lease = r.member.Holds
		}
		r.jobs = newJobs(&cfg)
		if r.follower != nil {
			r.follower.jobs = r.jobs
		}
		err = r.Restore()
	}
	if err != nil {
		return nil, errors.Join(err, cfg.Store.Close())
	}
	return r, nil
}

// SourceFlags are the flags of the upstream and its clock.
type SourceFlags struct {
	Source string `help:"Source of the documents: ${enum}." enum:"simulated,cboe,replay,folder" default:"simulated"`

	Folder     string `help:"Folder of documents: options/_SPX.json, quotes/XLK.json, charts/historical/XLK.json, settlement/2026-10-05.csv. A file may also be compressed, with .gz after its name. Source replay reads it once; source folder looks each second whether a program of yours has changed a file." type:"path" placeholder:"DIR" group:"Sources folder and replay"`
	SourceName string `help:"With source folder, the name of whoever made the documents, in meta.source of every answer and in the data directory: 1 to 32 of a-z, 0-9 and -. Default: folder." placeholder:"NAME" group:"Sources folder and replay"`

	History string `help:"Folder of past documents, with a folder for each date: 2026-11-20/options/_SPX.json.gz, 2026-11-20/settlement/2026-11-20.csv. Sessions whose date has no file yet are computed from them in the background, oldest first, and their answers say meta.source as all others. Not with source simulated." type:"path" placeholder:"DIR" group:"History"`

	SimSeed  uint64  `help:"Seed of the simulated market." default:"1" group:"Source simulated"`
	SimStart string  `help:"Simulated time at the start, RFC 3339; by default 11:00 New York of the last session, or the time of the last stored answer if that is later. It must not be before the last stored answer." placeholder:"TIME" group:"Source simulated"`
	SimSmall bool    `help:"Chains have only every fifth strike, so that a server needs a third of the time and memory: for tests of your own programs." group:"Source simulated"`
	SimSpeed float64 `help:"Simulated seconds per real second, 0 to 10000. 0: the simulated clock stands still." default:"1" group:"Source simulated"`

	CboeBaseURL           string `name:"cboe-base-url" help:"Base URL of chains, quotes and price histories. Another URL than Cboe's must also have the settlement files, under settlement?dt=YYYY-MM-DD." default:"${cboe_base}" group:"Source cboe"`
	CboeRequestsPerMinute int    `help:"Requests a minute, evenly spaced, 1 to 6000. Cboe refuses some requests above 45." default:"20" group:"Source cboe"`
}

var sourceForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// Name returns meta.source: the source, or the vendor's name for the documents of a folder.
func (s *SourceFlags) Name() string { return cmp.Or(s.SourceName, s.Source) }

// check does not ask an edge for the documents of its source.
func (s *SourceFlags) check(edge bool) error {
	switch {
	case !(s.SimSpeed >= 0 && s.SimSpeed <= 10_000):
		return fmt.Errorf("--sim-speed must be from 0 to 10000, not %v", s.SimSpeed)
	case (s.Source == "folder" || s.Source == "replay") && s.Folder == "" && !edge:
		return fmt.Errorf("--source %s needs --folder", s.Source)
	case s.Source == "simulated" && s.History != "":
		return errors.New("--history needs a --source with documents of a real market, cboe, folder or replay: the simulated market is never mixed with one")
	case edge && s.History != "":
		return errors.New("--history belongs to a member that refreshes: an edge gets the files of its fleet")
	case s.SourceName != "" && s.Source != "folder":
		return errors.New("--source-name belongs to --source folder: another source has its own name")
	case s.SourceName != "" && (!sourceForm.MatchString(s.SourceName) || slices.Contains([]string{"simulated", "cboe", "replay", "folder"}, s.SourceName)):
		return fmt.Errorf("--source-name must be 1 to 32 of a-z, 0-9 and -, and no name of another source, not %.40q", s.SourceName)
	case s.CboeRequestsPerMinute < 1 || s.CboeRequestsPerMinute > 6000:
		return fmt.Errorf("--cboe-requests-per-minute must be from 1 to 6000, not %d", s.CboeRequestsPerMinute)
	}
	_, err := s.simStart()
	return err
}

func (s *SourceFlags) simStart() (time.Time, error) {
	if s.SimStart == "" {
		return time.Time{}, nil
	}
	start, err := time.Parse(time.RFC3339, s.SimStart)
	if err != nil {
		return start, fmt.Errorf("--sim-start: %q is not RFC 3339, such as 2026-11-20T16:00:00Z", s.SimStart)
	}
	return start, nil
}

// apply sets the source, the clock and the past of cfg. The store and the calendar of cfg must be set before.
func (s *SourceFlags) apply(cfg *Config) error {
	if s.History != "" {
		past, err := folder.NewPast(s.History, cfg.Calendar)
		if err != nil {
			return fmt.Errorf("--history: %w", err)
		}
		cfg.Past, cfg.Kept = past, true
	}
	switch s.Source {
	case "cboe":
		client, err := cboe.NewClient(s.CboeBaseURL, s.CboeRequestsPerMinute, cfg.dial)
		cfg.Clock, cfg.TurnEvery = feed.MachineClock(), cboeTurn(s.CboeRequestsPerMinute, len(cfg.Underlyings))
		cfg.ask(client)
		if cfg.roundEvery() > longestRound {
			cfg.Log.Warn("a round of the underlyings takes long: name fewer, or allow more requests a minute", "round", cfg.roundEvery())
		}
		return err
	case "replay":
		var chains []upstream.Name
		for _, u := range cfg.Underlyings {
			chains = append(chains, feed.ChainOf(u))
		}
		recorded, err := folder.NewRecorded(s.Folder, chains...)
		if err != nil {
			return err
		}
		cfg.Clock, cfg.Recorded = feed.NewClock(recorded.Now(), 0), true
		cfg.ask(recorded)
		return nil
	case "folder":
		live, err := folder.NewLive(s.Folder)
		if err != nil {
			return err
		}
		cfg.Clock = feed.MachineClock()
		cfg.ask(live)
		cfg.Log.Info("documents are read from a folder", "folder", s.Folder, "underlyings_without_file", cfg.withoutChain())
		return nil
	}
	cfg.Identity = fmt.Sprintf("simulated market, seed %d", s.SimSeed)
	every := 1
	if s.SimSmall {
		every, cfg.Identity = 5, cfg.Identity+", small"
	}
	if err := cfg.Store.Bind(cfg.Identity); err != nil {
		return fmt.Errorf("%w; give another --data-dir, or the flags that made it", err)
	}
	start, err := s.simStart()
	if err != nil {
		return err
	}
	left := leftOff(cfg.Store, Resources(cfg.Underlyings))
	switch {
	case start.IsZero():
		start = resumed(cfg.Calendar, left, time.Now())
	case start.Before(left):
		return fmt.Errorf("--sim-start: %s is before the last stored answer, of %s; give a later time, or another --data-dir",
			s.SimStart, left.Format(time.RFC3339))
	}
	cfg.Clock = feed.NewClock(start, s.SimSpeed)
	market := simulated.New(simulated.Config{Seed: s.SimSeed, Now: cfg.Clock.Now, Calendar: cfg.Calendar, Gzip: true, Every: every})
	cfg.ask(market)
	cfg.Past = recent{market, cfg}
	return nil
}

// longestRound is how long the underlyings besides the first may take turns before the log warns of it.
const longestRound = 10 * time.Minute

// cboeTurn returns the time from the chain of one underlying besides the first to that of the next. Chains take half of the requests
// that the first chain, the quotes of 12 funds and the settlements leave in a minute. A round takes at least a minute: the upstream
// makes a document a minute.
func cboeTurn(perMinute, underlyings int) time.Duration {
	return max(time.Minute/time.Duration(max((perMinute-14)/2, 1)), time.Minute/time.Duration(max(underlyings-1, 1)))
}

// recent is the past of a simulated market that a server plays: the last sessions, but of the chains besides the first as many as the flow
// compares with.
type recent struct {
	*simulated.Market
	cfg *Config
}

const (
	recentSessions = 65 // a rank needs 60
	recentOthers   = 2
)

// Sessions implements [Past].
func (r recent) Sessions(before time.Time) (sessions []compute.Date) {
	cal := r.cfg.Calendar
	today := cal.SessionDate(before)
	for d := cal.Back(today, recentSessions); d <= today && d < compute.DateOf(before.UTC()); d = cal.Next(d) {
		sessions = append(sessions, d)
	}
	return sessions
}

// At implements [Past].
func (r recent) At(name upstream.Name, at time.Time) (*upstream.Document, error) {
	first := r.cfg.Calendar.Back(r.cfg.Calendar.SessionDate(r.cfg.Clock.Now()), recentOthers)
	if kind, _ := name.Split(); kind == upstream.OptionsKind && name != feed.ChainOf(r.cfg.first()) && at.Before(first.Midnight()) {
		return nil, &upstream.Error{Name: name, Reason: upstream.Missing, Err: errors.New("not played")}
	}
	return r.Market.At(name, at)
}

// leftOff returns the market's time at which the last of the current answers was computed or changed its freshness. It returns
// the zero time for an empty store. A simulated market that starts there gives no answer that is older than a stored one.
func leftOff(store *snapshots.Store, resources []string) (left time.Time) {
	for _, name := range resources {
		if f, err := store.LoadCurrent(name); err == nil {
			left = compute.Later(left, changedAt(f.Edition))
		}
	}
	return left
}

// resumed returns the time at which a simulated market starts: left, the time of the last stored answer, or 11:00 New York
// of the last session if that is later.
func resumed(cal *compute.Calendar, left, now time.Time) time.Time {
	session := cal.SessionDate(now)
	start := session.At(11, 0, 0, compute.NewYork)
	if start.After(now) {
		start = cal.Previous(session).At(11, 0, 0, compute.NewYork)
	}
	return compute.Later(left, start)
}

// ScheduleFlags are the flags of the intervals, the underlyings, the calendar, the interest rate and the storage.
type ScheduleFlags struct {
	GexEvery    time.Duration `help:"Interval of the SPX chain in the refresh window, 5s to 1h. Default: 25s, with cboe 60s." placeholder:"D" group:"Schedule"`
	Underlyings []string      `help:"Underlyings whose chains are fetched: SPX first, at most 100. The others take turns, one every 10s; with cboe one every 20s, or more often if more requests a minute are allowed. Default: ${default}." default:"${underlyings}" placeholder:"SYMBOL" group:"Schedule"`
	CalendarFlags

	RiskFreeRate  float64       `help:"Risk-free rate of funds, stocks and index chains whose quotes give none, continuously compounded, per year: -0.05 to 0.25." default:"0.04" group:"Numbers"`
	ArchiveMaxAge time.Duration `help:"How long the documents of stored answers are kept for recompute. 0: for ever." default:"2160h" group:"Storage"`
}

// CalendarFlags are the flags of the calendar of the exchange.
type CalendarFlags struct {
	ClosedDates string `help:"File of further dates on which the exchange is closed, one a line. The word early after a date means a 13:00 close." type:"existingfile" placeholder:"FILE" group:"Schedule"`
}

// DefaultUnderlyings is the default of --underlyings.
var DefaultUnderlyings = []string{"SPX", "NDX", "RUT", "SPY", "QQQ", "IWM", "XLK", "XLF", "XLE", "AAPL", "AMZN", "META", "MSFT", "NVDA", "TSLA"}

// maxUnderlyings bounds the underlyings, because each costs its answers in memory and a request per round.
const maxUnderlyings = 100

func (s *ScheduleFlags) check() error {
	switch {
	case s.GexEvery != 0 && (s.GexEvery < 5*time.Second || s.GexEvery > time.Hour):
		return fmt.Errorf("--gex-every must be from 5s to 1h0m0s, not %s", s.GexEvery)
	case !(s.RiskFreeRate >= -0.05 && s.RiskFreeRate <= 0.25):
		return fmt.Errorf("--risk-free-rate must be from -0.05 to 0.25, not %v", s.RiskFreeRate)
	case s.ArchiveMaxAge < 0:
		return errors.New("--archive-max-age must not be negative")
	case len(s.Underlyings) > maxUnderlyings:
		return fmt.Errorf("--underlyings has %d symbols, at most %d are allowed", len(s.Underlyings), maxUnderlyings)
	case len(s.Underlyings) == 0 || s.Underlyings[0] != "SPX":
		return errors.New("--underlyings must begin with SPX")
	}
	for i, symbol := range s.Underlyings {
		symbol = strings.ReplaceAll(symbol, "/", ".")
		if s.Underlyings[i] = symbol; !product.Symbol.MatchString(symbol) {
			return fmt.Errorf("--underlyings: %q is not a symbol such as SPY or BRK.B: 1 to 6 capital letters, with a point before the last if it has one", symbol)
		}
		if why := compute.UnderlyingOf(symbol).Unusable; why != "" {
			return fmt.Errorf("--underlyings: %s cannot be one: %s", symbol, why)
		}
		if j := slices.IndexFunc(s.Underlyings[:i], func(other string) bool { return compute.PathOf(other) == compute.PathOf(symbol) }); j >= 0 {
			return fmt.Errorf("--underlyings has %s twice, the first time as %s", symbol, s.Underlyings[j])
		}
	}
	return nil
}

// apply sets the calendar, the intervals, the rate and the ages of cfg. The intervals depend on the source.
func (s *ScheduleFlags) apply(cfg *Config) (err error) {
	cfg.ChainEvery = cmp.Or(s.GexEvery, 25*time.Second)
	if cfg.SourceName == "cboe" && s.GexEvery == 0 {
		cfg.ChainEvery = time.Minute
	}
	cfg.TurnEvery, cfg.ArchiveMaxAge = 10*time.Second, s.ArchiveMaxAge
	cfg.Underlyings, cfg.RiskFreeRate = s.Underlyings, s.RiskFreeRate
	cfg.Calendar, err = s.Calendar()
	return err
}

// Calendar returns the calendar of the exchange with the closures of --closed-dates.
func (s *CalendarFlags) Calendar() (*compute.Calendar, error) {
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
