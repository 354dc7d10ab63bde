package refresh

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/snapshots"
)

// RecomputeCommand is `strikecache recompute`, in the form that the kong parser reads: it computes a stored day again
// from its archived inputs and says what differs.
type RecomputeCommand struct {
	Date    string `help:"UTC date to compute again, YYYY-MM-DD." required:""`
	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source  string `help:"Source of the stored date: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`
	Product string `help:"Product to compute again: ${enum}." enum:"${stored_products}" default:"all"`
}

const (
	allProducts = "all"
	// maxShown is how many differences of a product are printed.
	maxShown = 50
)

// The exit codes of an [Outcome].
const (
	exitDiffers = 1
	exitGone    = 3
)

// Outcome is the error of a day that is not identical.
type Outcome struct {
	Date         string
	Differ, Gone []string // products
}

// Error implements error.
func (o *Outcome) Error() string {
	var parts []string
	if len(o.Differ) > 0 {
		parts = append(parts, "differs: "+strings.Join(o.Differ, ", "))
	}
	if len(o.Gone) > 0 {
		parts = append(parts, "inputs_gone: "+strings.Join(o.Gone, ", "))
	}
	return "recompute " + o.Date + ": " + strings.Join(parts, "; ")
}

// ExitCode is 1 when something differs, and 3 when nothing differs but inputs are gone.
func (o *Outcome) ExitCode() int {
	if len(o.Differ) > 0 {
		return exitDiffers
	}
	return exitGone
}

// Validate is called by the parser.
func (c *RecomputeCommand) Validate() error {
	if _, err := compute.ParseDate(c.Date); err != nil {
		return fmt.Errorf("--date: %w", err)
	}
	return nil
}

// Run is called by the parser. It returns an [*Outcome] unless all that is stored is identical.
func (c *RecomputeCommand) Run(out io.Writer) error {
	names := []string{c.Product}
	if c.Product == allProducts {
		names = StoredProducts()
	}
	outcome := &Outcome{Date: c.Date}
	stored := 0
	for _, name := range names {
		f, err := Recompute(c.DataDir, c.Source, c.Date, name)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			fmt.Fprintf(out, "%s not stored\n", name)
			continue
		}
		if err != nil {
			return err
		}
		stored++
		f.print(out)
		switch {
		case f.Gone != nil:
			outcome.Gone = append(outcome.Gone, name)
		case f.Differences != nil:
			outcome.Differ = append(outcome.Differ, name)
		}
	}
	switch {
	case stored == 0:
		return fmt.Errorf("recompute: nothing of %s is stored in %s by source %s", c.Date, c.DataDir, c.Source)
	case outcome.Differ != nil || outcome.Gone != nil:
		return outcome
	}
	return nil
}

// Finding is what became of one product of a date: identical when it has neither differences nor gone inputs.
type Finding struct {
	Product     string
	Answers     int // that were compared
	Differences []Difference
	// Methods are those of the stored answer and of this version, where they are not the same; Builds likewise, where
	// something differs.
	Methods, Builds [2]string
	// Gone are the inputs that cannot be had, each with the reason.
	Gone []Gone
}

// Gone is an input that the archive does not have, or not as it was.
type Gone struct {
	SHA256, Name string
	Err          error
}

// print writes a line for the product, and one for each input that is gone and each field that differs.
func (f *Finding) print(out io.Writer) {
	note := ""
	if f.Methods != [2]string{} {
		note = fmt.Sprintf(" (stored by method %s, recomputed by %s)", f.Methods[0], f.Methods[1])
	}
	switch {
	case f.Gone != nil:
		fmt.Fprintf(out, "%s inputs_gone\n", f.Product)
		for _, g := range f.Gone {
			fmt.Fprintf(out, "  %s: %v\n", strings.TrimSpace(g.SHA256+" "+g.Name), g.Err)
		}
	case f.Differences == nil && f.Answers > 1:
		fmt.Fprintf(out, "%s identical, %d answers%s\n", f.Product, f.Answers, note)
	case f.Differences == nil:
		fmt.Fprintf(out, "%s identical%s\n", f.Product, note)
	default:
		fmt.Fprintf(out, "%s differs in %d fields%s\n", f.Product, len(f.Differences), note)
		for _, d := range f.Differences[:min(len(f.Differences), maxShown)] {
			fmt.Fprintf(out, "  %v\n", d)
		}
		if more := len(f.Differences) - maxShown; more > 0 {
			fmt.Fprintf(out, "  and %d more\n", more)
		}
		if f.Builds != [2]string{} {
			fmt.Fprintf(out, "  stored by a build of %s, recomputed by %s: last digits may differ\n", f.Builds[0], f.Builds[1])
		}
	}
}

// A running server writes an answer and its archived inputs one after the other. A product whose two do not belong
// together is looked at again for so long.
const (
	recomputeWait  = 2 * time.Second
	recomputePause = 400 * time.Millisecond
)

// Recompute computes a product of a stored day again, with the methods of this version. It takes no lock and changes
// nothing. The error is [snapshots.ErrNoSnapshot] when the product is not stored.
func Recompute(dataDir, source, date, product string) (*Finding, error) {
	for deadline := time.Now().Add(recomputeWait); ; time.Sleep(recomputePause) {
		f, settled, err := recomputeNow(dataDir, source, date, product)
		if settled || err != nil || time.Now().After(deadline) {
			return f, err
		}
	}
}

// recomputeNow compares what is stored now. It is not settled while inputs are gone that a server may be about to write.
func recomputeNow(dataDir, source, date, product string) (f *Finding, settled bool, err error) {
	stored, err := snapshots.ReadFile(dataDir, source, product, date)
	if err != nil {
		return nil, true, err
	}
	p := productOf(product)
	if p == nil {
		return nil, true, fmt.Errorf("recompute: unknown product %.40q", product)
	}
	f = &Finding{Product: product}
	meta := stored.Edition.Default.Meta
	dir := archive.Dir(dataDir, source)
	recipe, err := archive.ReadRecipe(dir, product, date)
	if err == nil && !belongs(recipe, meta) {
		err = fmt.Errorf("%w: the archive has the inputs of the answer computed at %s", archive.ErrGone, recipe.ComputedAt.Format(time.RFC3339))
	}
	if err != nil {
		for _, sha := range meta.Receipt.InputSHA256 {
			f.Gone = append(f.Gone, Gone{sha, "", err})
		}
		return f, false, nil
	}
	body := func(in archive.Input) ([]byte, error) { return archive.ReadDocument(dir, in.SHA256) }
	for _, in := range slices.Concat(recipe.Inputs, recipe.States) {
		if _, err := body(in); err != nil {
			f.Gone = append(f.Gone, Gone{in.SHA256, in.Name, err})
		}
	}
	if f.Gone != nil {
		// A server removes documents once a newer recipe stands: under the same one, they are gone.
		now, err := archive.ReadRecipe(dir, product, date)
		return f, err == nil && now.ComputedAt.Equal(recipe.ComputedAt), nil
	}
	a, err := p.answer(inputsOf(recipe, body))
	if err != nil {
		return nil, true, fmt.Errorf("recompute %s: %w", product, err)
	}
	if err := f.compare(stored.Edition, a, recipe.Build); err != nil {
		return nil, true, fmt.Errorf("compare %s: %w", product, err)
	}
	return f, true, nil
}

// compare fills in what differs. Paths of a parameter's answer begin with its value.
func (f *Finding) compare(stored *snapshots.Edition, a *answer, build string) error {
	meta := stored.Default.Meta
	if m := meta.Receipt.Method; m != a.product.method {
		f.Methods = [2]string{m, a.product.method}
	}
	quality, err := json.Marshal(a.quality)
	if err != nil {
		return err
	}
	was, err := json.Marshal(reproducible{meta.AsOf, meta.CapturedAt, meta.SessionDate, meta.Quality})
	if err != nil {
		return err
	}
	is, err := json.Marshal(reproducible{a.asOf, a.captured, a.inputs.calendar.SessionDate(a.asOf).String(), quality})
	if err != nil {
		return err
	}
	if f.Differences, err = differences("meta", was, is); err != nil {
		return err
	}
	answers := stored.Variants
	if answers == nil {
		answers = map[string]*snapshots.Snapshot{"": stored.Default}
	}
	f.Answers = len(answers)
	computed := a.storedData()
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		data, ok := computed[name]
		if !ok {
			f.Differences = append(f.Differences, Difference{name, "an answer", absent})
			continue
		}
		found, err := differences(strings.TrimPrefix(name+": data", ": "), answers[name].Data(), data)
		if err != nil {
			return err
		}
		f.Differences = append(f.Differences, found...)
	}
	for _, name := range slices.Sorted(maps.Keys(computed)) {
		if answers[name] == nil {
			f.Differences = append(f.Differences, Difference{name, absent, "an answer"})
		}
	}
	if now := Build(); f.Differences != nil && build != now {
		f.Builds = [2]string{build, now}
	}
	return nil
}

// reproducible is the part of meta that rests on the inputs alone.
type reproducible struct {
	AsOf        time.Time       `json:"as_of"`
	CapturedAt  *time.Time      `json:"captured_at"`
	SessionDate string          `json:"session_date"`
	Quality     json.RawMessage `json:"quality"`
}
