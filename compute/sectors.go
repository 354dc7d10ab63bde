package compute

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// SectorsMethod names the method of [SectorRotation] in receipts.
const SectorsMethod = "sectors/4"

// Benchmark is the fund that sectors are compared with.
const Benchmark = "SPY"

// Sector is a GICS sector and the fund that stands for it.
type Sector struct{ Symbol, Name string }

// Sectors are the 11 sector funds, sorted by sector name.
var Sectors = []Sector{
	{"XLC", "Communication Services"},
	{"XLY", "Consumer Discretionary"},
	{"XLP", "Consumer Staples"},
	{"XLE", "Energy"},
	{"XLF", "Financials"},
	{"XLV", "Health Care"},
	{"XLI", "Industrials"},
	{"XLK", "Information Technology"},
	{"XLB", "Materials"},
	{"XLRE", "Real Estate"},
	{"XLU", "Utilities"},
}

// FundSymbols returns the symbols of the benchmark and of the sector funds.
func FundSymbols() []string {
	symbols := []string{Benchmark}
	for _, s := range Sectors {
		symbols = append(symbols, s.Symbol)
	}
	return symbols
}

var (
	cyclicals  = []string{"XLY", "XLF", "XLI", "XLB", "XLK"}
	defensives = []string{"XLP", "XLU", "XLV"}
)

// Rotation is the 11 sector funds against SPY and against each other, the `data` of sectors/rotation.
type Rotation struct {
	Benchmark FundReturns `json:"benchmark"`
	// One row per fund with a quote, by sector name.
	Sectors []SectorRow `json:"sectors" jsonschema:"minItems=1,maxItems=11"`
	// The way of each fund through the rotation graph: its points at the last 8 week-ends, oldest first, funds by sector name. The last
	// point of a fund is its `rrg`. Funds without enough closes have fewer points.
	Trail      []TrailPoint  `json:"trail" jsonschema:"maxItems=88"`
	Leaders    []SectorMover `json:"leaders" jsonschema:"maxItems=3"`  // The 3 best day returns, best first.
	Laggards   []SectorMover `json:"laggards" jsonschema:"maxItems=3"` // The 3 worst day returns, worst first.
	Breadth    Breadth       `json:"breadth"`
	Dispersion Dispersion    `json:"dispersion"`
	// Mean day return of XLY, XLF, XLI, XLB and XLK minus that of XLP, XLU and XLV. `null` when one of these funds is missing or has
	// no day return of `session_date`.
	CycMinusDef *Ratio `json:"cyclical_minus_defensive_pct" unit:"percentage points"`
	// Class of `cyclical_minus_defensive_pct`. `risk_on`: above +0.5 percentage points. `risk_off`: below −0.5 percentage
	// points. `mixed`: otherwise. `null` when `cyclical_minus_defensive_pct` is.
	Tone *string `json:"tone" jsonschema:"enum=risk_on,enum=risk_off,enum=mixed"`
	// Funds without a usable quote, which may include SPY. The other funds are served.
	Missing     []string `json:"missing" jsonschema:"example=XLRE"`
	Mixed       bool     `json:"mixed_session"` // Whether the quotes belong to different sessions.
	SessionDate Date     `json:"session_date"`  // Latest session among the quotes.
}

// FundReturns is the price and the returns of a fund.
type FundReturns struct {
	Symbol string `json:"symbol" jsonschema:"enum=SPY"` // Symbol of the fund.
	// Price of the fund at `meta.as_of`. `null` when the quote is missing.
	Price   *Level  `json:"price" jsonschema:"exclusiveMinimum=0" unit:"USD per share"`
	Returns Periods `json:"returns_pct"`
}

// Periods are price returns without dividends, against the official close on or before the base day. A return whose base is a price
// of before a jump, as of a split, is not known.
type Periods struct {
	Day     *Ratio `json:"day" unit:"percent, in relative_pct percentage points"`     // Over one session. `null` when it is not known.
	Week    *Ratio `json:"week" unit:"percent, in relative_pct percentage points"`    // Over 5 sessions. `null` when it is not known.
	Month   *Ratio `json:"month" unit:"percent, in relative_pct percentage points"`   // Over 1 calendar month. `null` when it is not known.
	Quarter *Ratio `json:"quarter" unit:"percent, in relative_pct percentage points"` // Over 3 calendar months. `null` when it is not known.
	YTD     *Ratio `json:"ytd" unit:"percent, in relative_pct percentage points"`     // Over the year to date. `null` when it is not known.
}

func (p *Periods) each() [5]**Ratio {
	return [...]**Ratio{&p.Day, &p.Week, &p.Month, &p.Quarter, &p.YTD}
}

// Ranks are the ranks among the sectors by return. 1 is the highest return.
type Ranks struct {
	Day     *int `json:"day" jsonschema:"minimum=1,maximum=11" unit:"rank"`     // Over one session. `null` when it is not known.
	Week    *int `json:"week" jsonschema:"minimum=1,maximum=11" unit:"rank"`    // Over 5 sessions. `null` when it is not known.
	Month   *int `json:"month" jsonschema:"minimum=1,maximum=11" unit:"rank"`   // Over 1 calendar month. `null` when it is not known.
	Quarter *int `json:"quarter" jsonschema:"minimum=1,maximum=11" unit:"rank"` // Over 3 calendar months. `null` when it is not known.
	YTD     *int `json:"ytd" jsonschema:"minimum=1,maximum=11" unit:"rank"`     // Over the year to date. `null` when it is not known.
}

func (r *Ranks) each() [5]**int { return [...]**int{&r.Day, &r.Week, &r.Month, &r.Quarter, &r.YTD} }

// SectorRow is one sector.
type SectorRow struct {
	Symbol  string  `json:"symbol" jsonschema:"oneof_ref=#/components/schemas/SectorFund"`
	Sector  string  `json:"sector" jsonschema:"oneof_ref=#/components/schemas/Sector"`
	Price   Level   `json:"price" jsonschema:"exclusiveMinimum=0" unit:"USD per share"` // Price of the fund.
	Returns Periods `json:"returns_pct"`
	// Returns minus those of SPY, in percentage points, where both quotes are of the same session.
	Relative Periods `json:"relative_pct"`
	// Ranks by return, among the funds with a quote of `session_date`.
	Rank Ranks `json:"rank"`
	// Point of the rotation graph. `null` with fewer than 135 common closes of fund and benchmark since the last jump of one of them,
	// as after a split.
	RRG *RRG `json:"rrg"`

	older bool // the quote is of an older session than the newest
}

// SectorMover is a leader or laggard of the day.
type SectorMover struct {
	Symbol string `json:"symbol" jsonschema:"oneof_ref=#/components/schemas/SectorFund"`
	Sector string `json:"sector" jsonschema:"oneof_ref=#/components/schemas/Sector"`
	Return Ratio  `json:"return_pct" unit:"percent"` // Day return.
}

// Breadth is how many sectors rise and fall by their day returns. Funds with a quote of an older session than `session_date` do not
// count.
type Breadth struct {
	// Sectors with a positive day return.
	Advancing int `json:"advancing" jsonschema:"minimum=0,maximum=11" unit:"sectors"`
	// Sectors with a negative day return.
	Declining int `json:"declining" jsonschema:"minimum=0,maximum=11" unit:"sectors"`
	// Sectors with a day return of 0.
	Unchanged int `json:"unchanged" jsonschema:"minimum=0,maximum=11" unit:"sectors"`
	// Sectors with a day return above that of SPY. `null` when the day return of SPY in `session_date` is not known.
	AboveBenchmark *int `json:"above_benchmark" jsonschema:"minimum=0,maximum=11" unit:"sectors"`
}

// Dispersion is how far the day returns lie apart, of funds with a quote of `session_date`.
type Dispersion struct {
	// Standard deviation of the day returns. `null` when no day return is known.
	Stdev *Ratio `json:"stdev_pct" jsonschema:"minimum=0" unit:"percentage points"`
	// Highest minus lowest day return. `null` when no day return is known.
	Range *Ratio `json:"range_pct" jsonschema:"minimum=0" unit:"percentage points"`
}

// SectorsInput is the input of [SectorRotation]. A fund that is not in the map is missing.
type SectorsInput struct {
	Funds    map[string]Fund
	Calendar *Calendar
}

// SectorRotation compares the sector funds with the benchmark and with each other. If the benchmark is missing, the fields
// that compare with it are nil. It also returns the funds with the closes that count, nil when every sector is missing.
func SectorRotation(in SectorsInput) (Rotation, map[string]Fund) {
	r := Rotation{Benchmark: FundReturns{Symbol: Benchmark}, Sectors: []SectorRow{}, Trail: []TrailPoint{}, Missing: []string{}}
	funds := in.official()
	for _, symbol := range FundSymbols() {
		if fund, ok := funds[symbol]; ok {
			session := fund.Quote.Session(in.Calendar)
			r.Mixed = r.Mixed || r.SessionDate != 0 && session != r.SessionDate
			r.SessionDate = max(r.SessionDate, session)
		} else {
			r.Missing = append(r.Missing, symbol)
		}
	}
	benchmark, ok := funds[Benchmark]
	if ok {
		r.Benchmark.Price, r.Benchmark.Returns = new(Level(benchmark.Quote.Spot)), fundReturns(benchmark, in.Calendar)
	}
	sessionOf := func(f Fund) Date { return f.Quote.Session(in.Calendar) }
	for _, s := range Sectors {
		fund, ok := funds[s.Symbol]
		if !ok {
			continue
		}
		dates, rs := relativeStrength(fund.comparable(), benchmark.comparable())
		r.Trail = append(r.Trail, trail(s.Symbol, dates, rs)...)
		row := SectorRow{
			Symbol: s.Symbol, Sector: s.Name, Price: Level(fund.Quote.Spot),
			Returns: fundReturns(fund, in.Calendar),
			RRG:     rrg(rs),
			older:   sessionOf(fund) != r.SessionDate,
		}
		for i, relative := range row.Relative.each() {
			own, bench := *row.Returns.each()[i], *r.Benchmark.Returns.each()[i]
			if own != nil && bench != nil && sessionOf(fund) == sessionOf(benchmark) {
				*relative = new(*own - *bench)
			}
		}
		r.Sectors = append(r.Sectors, row)
	}
	if len(r.Sectors) == 0 {
		return r, nil
	}
	slices.SortStableFunc(r.Trail, func(a, b TrailPoint) int { return cmp.Compare(a.Date, b.Date) })
	r.rank()
	if ok && sessionOf(benchmark) == r.SessionDate {
		r.summarise(r.Benchmark.Returns.Day)
	} else {
		r.summarise(nil)
	}
	return r, funds
}

// fundReturns returns the price returns up to the quote, each from the official close on or before its base day.
func fundReturns(f Fund, cal *Calendar) Periods {
	var p Periods
	p.Day = finiteOrNil(Ratio(f.Quote.PriceChangePercent))
	session, closes := f.Quote.Session(cal), f.comparable()
	since := func(base Date) *Ratio { // NaN where the history begins later, or lacks the last session up to the base day
		return finiteOrNil(Ratio((f.Quote.Spot/priceOn(closes, cal.OnOrBefore(base)) - 1) * 100))
	}
	p.Week = since(cal.Back(session, 5))
	p.Month = since(session.AddMonths(-1))
	p.Quarter = since(session.AddMonths(-3))
	p.YTD = since(NewDate(session.Year()-1, time.December, 31))
	return p
}

// rank ranks the sectors by the return of each period, ties by the day's return and then by symbol. A sector without a
// return, or with a quote of an older session, has no rank.
func (r *Rotation) rank() {
	for period := range (&Ranks{}).each() {
		var known []*SectorRow
		for i := range r.Sectors {
			if *r.Sectors[i].Returns.each()[period] != nil && !r.Sectors[i].older {
				known = append(known, &r.Sectors[i])
			}
		}
		slices.SortFunc(known, func(a, b *SectorRow) int {
			return cmp.Or(cmp.Compare(**b.Returns.each()[period], **a.Returns.each()[period]),
				cmp.Compare(orLowest(b.Returns.Day), orLowest(a.Returns.Day)), cmp.Compare(a.Symbol, b.Symbol))
		})
		for i, row := range known {
			*row.Rank.each()[period] = new(i + 1)
		}
	}
}

func orLowest(x *Ratio) Ratio {
	if x == nil {
		return Ratio(math.Inf(-1))
	}
	return *x
}

// summarise fills in the fields that compare the day's returns of the sectors in the newest session, with that of SPY, nil if unknown.
func (r *Rotation) summarise(spy *Ratio) {
	byRank := make([]SectorMover, 0, len(r.Sectors))
	day := map[string]float64{}
	var returns []float64
	above := 0
	for _, s := range r.Sectors {
		if s.Returns.Day == nil || s.older {
			continue
		}
		x := *s.Returns.Day
		day[s.Symbol] = float64(x)
		returns = append(returns, float64(x))
		byRank = append(byRank, SectorMover{s.Symbol, s.Sector, x})
		switch {
		case x > 0:
			r.Breadth.Advancing++
		case x < 0:
			r.Breadth.Declining++
		default:
			r.Breadth.Unchanged++
		}
		if spy != nil && x > *spy {
			above++
		}
	}
	if spy != nil {
		r.Breadth.AboveBenchmark = &above
	}
	slices.SortFunc(byRank, func(a, b SectorMover) int {
		return cmp.Or(cmp.Compare(b.Return, a.Return), cmp.Compare(a.Symbol, b.Symbol))
	})
	n := min(3, len(byRank))
	r.Leaders = append([]SectorMover{}, byRank[:n]...)
	r.Laggards = append([]SectorMover{}, byRank[len(byRank)-n:]...)
	slices.Reverse(r.Laggards)
	if len(returns) > 0 {
		_, sd := meanStdev(returns, 0)
		r.Dispersion = Dispersion{new(Ratio(sd)), new(Ratio(slices.Max(returns) - slices.Min(returns)))}
	}
	r.CycMinusDef, r.Tone = tone(day)
}

// tone compares cyclical with defensive sectors. It returns nil when one of these sectors has no return.
func tone(day map[string]float64) (spread *Ratio, name *string) {
	mean := func(symbols []string) float64 {
		sum := 0.0
		for _, s := range symbols {
			x, ok := day[s]
			if !ok {
				return math.NaN()
			}
			sum += x
		}
		return sum / float64(len(symbols))
	}
	x := mean(cyclicals) - mean(defensives)
	if math.IsNaN(x) {
		return nil, nil
	}
	spread = new(Ratio(x))
	switch x = decimal(x); {
	case x > 0.5:
		return spread, new("risk_on")
	case x < -0.5:
		return spread, new("risk_off")
	}
	return spread, new("mixed")
}

// zScore returns how many sample standard deviations the last value lies above the mean of all.
func zScore(xs []float64) float64 {
	mean, sd := meanStdev(xs, 1)
	return (xs[len(xs)-1] - mean) / sd
}

// meanStdev returns the mean and the standard deviation with n - ddof in the denominator.
func meanStdev(xs []float64, ddof int) (mean, sd float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	sum := 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum / float64(len(xs)-ddof))
}
