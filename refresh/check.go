package refresh

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/folder"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
)

// CheckCommand is `strikecache check`, in the form that the kong parser reads. It takes files the way of any document, through
// [folder.Read], the decoder and the guard, and prints what a server would use of them.
type CheckCommand struct {
	Files []string `arg:"" name:"file" help:"Documents. The end of the path says which, as in options/_SPX.json. Two files of one document are compared as if they came in this order. Or a folder as --folder or --history takes it." type:"path"`
	CalendarFlags
}

// Validate is called by the parser.
func (c *CheckCommand) Validate() error {
	if slices.Contains(c.Files, "-") {
		return errors.New("it reads files, not standard input")
	}
	return nil
}

// Run is called by the parser. It prints a report to out. The error says how many files a server would refuse, or how many answers it
// could not make of them.
func (c *CheckCommand) Run(out io.Writer) error {
	cal, err := c.Calendar()
	if err != nil {
		return err
	}
	k := &checker{out: out, Intake: feed.NewIntake(feed.MachineClock(), cal, slog.New(slog.DiscardHandler))}
	var files []string
	for _, path := range c.Files {
		inside, _, _ := folder.Files(path) // of a folder as --folder takes it
		for _, file := range inside {
			files = append(files, filepath.Join(path, file))
		}
		if inside == nil {
			files = append(files, path)
		}
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("check: %w", err)
		}
		if info.IsDir() {
			if err := k.past(path); err != nil {
				return fmt.Errorf("check: %w", err)
			}
			continue
		}
		if d, err := k.open(path); k.accepts(path, err) {
			fmt.Fprintf(out, "%s: accepted as %s\n", path, d.Name)
			k.describe(d)
		}
	}
	switch {
	case k.refused > 0:
		return fmt.Errorf("check: a server would refuse %d of %d files", k.refused, k.files)
	case k.failed > 0:
		return fmt.Errorf("check: a server could not make %d answers of these files", k.failed)
	}
	return nil
}

const (
	whenComplete = "was the file complete? Write it under another name in the same folder, then rename it"
	inARow       = "compared with the file checked before; a server accepts the third document in a row that agrees with the two before"
)

var advice = map[upstream.Reason]string{
	upstream.Missing:     "the path ends in options/SYMBOL.json, quotes/SYMBOL.json, charts/historical/SYMBOL.json or settlement/YYYY-MM-DD.csv, each also as .gz",
	upstream.Unreachable: "it must be a regular file, and no link may lead out of the folder that has options, quotes, charts and settlement",
	upstream.TooLarge:    "a file has the newest state of one document",
	upstream.Truncated:   whenComplete, upstream.Malformed: whenComplete,
	upstream.Empty:      "a chain has a price and a contract that has not settled, a history and a settlement file at least one row",
	upstream.ClockAhead: "a timestamp is UTC, a last_trade_time New York time, and a date that of a session; the clock of this machine must be right, too",
	upstream.Older:      "the folder of a date has the documents of its session",
	upstream.HTML:       "the file is a page, and no document",
	upstream.TooMany:    "leave out the expirations that nobody asks for",
	upstream.Backwards:  inARow, upstream.Shrunk: inARow, upstream.PriceJump: inARow, upstream.QuotesMissing: inARow,
	upstream.OIMissing: "open_interest is a number of every row, 0 where no contract is open; after another document, a server accepts the third in a row that agrees",
}

// checker describes documents.
type checker struct {
	out io.Writer
	*feed.Intake
	files, refused int // that were checked
	failed         int // answers that could not be made
}

// accepts counts a file, and prints why it is refused.
func (k *checker) accepts(path string, err error) bool {
	k.files++
	e, refused := errors.AsType[*upstream.Error](err)
	if !refused {
		return true
	}
	k.refused++
	fmt.Fprintf(k.out, "%s: REFUSED as %s: %v\n", path, e.Reason, e.Err)
	k.say("%s", cmp.Or(advice[e.Reason], "see server/deploy/SOURCE.md"))
	return false
}

// past says what a server would play of a folder with a folder for each date.
func (k *checker) past(dir string) error {
	past, err := folder.NewPast(dir, k.Calendar)
	if err != nil {
		return err
	}
	sessions, others, err := past.Dates()
	used, unused, played := map[string]int{}, map[string]int{}, 0
	for _, d := range sessions {
		if d >= compute.DateOf(k.Clock.Now().UTC()) {
			k.say("NOT YET: %s is not over", d)
			continue
		}
		good := 0
		names, strangers := past.Names(d)
		for _, name := range names {
			kind, key := name.Split()
			of := strings.Replace(string(name), d.String(), "DATE", 1)
			if !slices.Contains(slices.Concat(fundDocuments(), vixDocuments(d), closeHistories()), name) && (kind != upstream.OptionsKind || name != feed.ChainOf(strings.TrimPrefix(key, "_"))) {
				unused[of]++
				continue
			}
			doc, err := past.At(name, d.At(20, 0, 0, compute.NewYork))
			if err == nil {
				_, err = takePast(feed.NewIntake(k.Clock, k.Calendar, k.Log), doc, d)
			}
			if k.accepts(filepath.Join(dir, d.String(), string(name)), err) {
				used[of]++
				good++
			}
		}
		if unused["other paths"] += strangers; good > 0 {
			played++
		}
	}
	fmt.Fprintf(k.out, "%s: %d of %d sessions would be played\n", dir, played, len(sessions))
	for _, name := range slices.Sorted(maps.Keys(used)) {
		k.say("%d of %s", used[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		if unused[name] > 0 {
			k.say("NOT USED: %d of %s", unused[name], name)
		}
	}
	for _, d := range others {
		k.say("NOT USED: %s is no session of the exchange", d)
	}
	return err
}

// say prints an indented line.
func (k *checker) say(format string, args ...any) { fmt.Fprintf(k.out, "  "+format+"\n", args...) }

// open returns the document in a file after the checks that a server makes. Its error is an [*upstream.Error].
func (k *checker) open(path string) (*feed.Document, error) {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := range parts {
		relative := strings.Join(parts[i:], "/")
		name := folder.NameOf(relative)
		if kind, _ := name.Split(); kind == upstream.Unknown {
			continue
		}
		doc, _, err := folder.Read(strings.Join(append(parts[:i:i], "."), "/"), relative, name)
		if err != nil {
			return nil, err
		}
		doc.Received = time.Now().UTC()
		d, err := k.Take(doc)
		if err == nil && d.Settlement != nil {
			err = checkMonths(d.Settlement, k.Calendar, doc.Received)
		}
		if err == nil {
			k.Accept(map[upstream.Name]*feed.Document{d.Key(): d})
		}
		return d, err
	}
	return nil, upstream.Refuse(upstream.Missing, "no document has this path")
}

// describe says what is used of an accepted document.
func (k *checker) describe(d *feed.Document) {
	switch u := &d.Underlying; {
	case d.Chain != nil, d.Quote != nil:
		k.say("%s: price %v, last trade %s, made %s", u.Symbol, u.Spot, u.AsOf.Format(time.RFC3339), u.CapturedAt.Format(time.RFC3339))
	case d.Settlement != nil:
		f := d.Settlement
		curve, quality, _ := compute.VIXTermStructure(compute.VIXInput{Date: f.Date, Rows: f.Rows, Calendar: k.Calendar})
		k.say("%s has %d months, from %s; %d rows cannot be read", product.VIXResource, len(curve.Curve), feed.Counts(quality), f.Bad)
		if !k.Calendar.IsSession(f.Date) {
			k.say("NOT USED: %s is no session of the exchange", f.Date)
		}
	default:
		k.say("price history: %d closes, from %s to %s", len(d.Closes), d.Closes[0].Date, d.Closes[len(d.Closes)-1].Date)
	}
	if d.Bad > 0 {
		k.say("%d numbers count as absent: they are outside the range of their kind", d.Bad)
	}
	switch _, key := d.UpstreamName().Split(); {
	case d.Chain != nil:
		k.chain(d)
	case d.Settlement != nil:
	case slices.Contains(compute.FundSymbols(), key):
		k.say("%s rests on the quote and the price history of a fund", product.SectorsResource)
	case slices.Contains(product.IndexQuotes(), upstream.Quotes(key)):
		k.say("%s takes the close of the settlement date, or the newest level of the index, from it", product.VIXResource)
	default:
		k.say("NOT USED: no resource rests on it")
	}
}

// fields are what a contract may have, and what is lost when none has it.
var fields = []struct {
	name string
	has  func(*compute.Contract) bool
	cost string
}{
	{"open_interest over 0", func(c *compute.Contract) bool { return c.OpenInterest > 0 }, "gex has no number, and max pain is the same everywhere"},
	{"bid and ask", func(c *compute.Contract) bool { return c.TwoSided() }, "gex takes volatility from iv alone, and the flow knows no side"},
	{"iv", func(c *compute.Contract) bool { return c.IV > 0 }, "gex takes volatility from bid and ask alone, and the flow knows no side"},
	{"delta", func(c *compute.Contract) bool { return math.Abs(c.Delta) > 0 }, "the flow knows no side"},
	{"volume", func(c *compute.Contract) bool { return c.Volume > 0 }, "the flow has no row"},
	{"last_trade_price", func(c *compute.Contract) bool { return c.Last > 0 }, "the flow knows no side"},
	{"last_trade_time", func(c *compute.Contract) bool { return c.LastTrade > 0 }, "the flow has no row"},
}

// chain says what is used of a chain, and on how many contracts each resource would rest.
func (k *checker) chain(d *feed.Document) {
	chain, cal, expirations := d.Chain, k.Calendar, map[compute.Date]bool{}
	for i := range chain.Contracts {
		expirations[chain.Contracts[i].Expiration] = true
	}
	k.say("%d rows, %d contracts of %d expirations", chain.Listed, len(chain.Contracts), len(expirations))
	if chain.Skipped.Total() > 0 {
		k.say("skipped rows: %s", feed.Counts(chain.Skipped))
		for _, reason := range slices.Sorted(maps.Keys(chain.Examples)) {
			k.say("such as %q: %s", chain.Examples[reason], reason)
		}
	}
	for _, f := range fields {
		n, cost := 0, ": "+f.cost
		for i := range chain.Contracts {
			if f.has(&chain.Contracts[i]) {
				n, cost = n+1, ""
			}
		}
		k.say("%d contracts with %s%s", n, f.name, cost)
	}
	if why := compute.UnderlyingOf(chain.Symbol).Unusable; why != "" {
		k.say("NOT USED: %s cannot be an underlying: %s", chain.Symbol, why)
		return
	}
	if read := feed.ChainOf(chain.Symbol); d.UpstreamName() != read {
		k.say("NOT USED: a server reads the chain of %s from %s", chain.Symbol, read)
		return
	}
	const rate = 0.04 // no count depends on it
	in := product.FirstInputs(product.Settings{Calendar: cal, RiskFreeRate: rate}, k.Clock.Now(), d)
	for _, p := range product.All([]string{chain.Symbol}).Where(func(p *product.Product) bool { return p.Underlying != "" }) {
		a, err := p.Answer(in)
		if err == nil {
			err = a.Usable()
		}
		if err != nil {
			k.failed++
			k.say("NO ANSWER: %v", err)
		}
	}
	implied, _ := compute.RateOf(chain, cal, rate)
	u, q := compute.PathOf(chain.Symbol), compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: cal, RiskFreeRate: implied}).Quality
	k.say("gex/%s rests on %d contracts; left out: %s", u, q.Contracts.Used, feed.Counts(q.Contracts.Skipped))
	if q.Hours != nil {
		k.say("hours: %s", *q.Hours)
	}
	k.say("%s-max-pain has %d expirations", u, len(compute.MaxPains(chain, cal)))
	flow := compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: cal})
	k.say("options/flow/%s scores %d contracts; left out: %s", u, flow.Eligible, feed.Counts(flow.Rejected))
	k.say("it is used if --underlyings names %s", chain.Symbol)
}
