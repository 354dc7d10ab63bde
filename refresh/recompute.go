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
	"strikecache/snapshots"
)

// RecomputeCommand is `strikecache recompute`, in the form that the kong parser reads: it computes the answers of a stored
// date again from their stored documents and prints the fields that differ.
type RecomputeCommand struct {
	Date    string `help:"UTC date to compute again, YYYY-MM-DD, or current for the answers that were served last." placeholder:"DATE" required:""`
	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source  string `help:"Source of the stored date: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`
	Product string `help:"Product to compute again: ${enum}." enum:"${stored_products}" default:"all"`
}

const (
	allProducts = "all"
	// maxShown is how many differences of one product are printed.
	maxShown = 50
)

// The exit codes of an [Outcome].
const (
	exitDiffers     = 1
	exitNotCompared = 3
)

// Outcome is the error of [RecomputeCommand.Run] when a stored answer of the date could not be reproduced exactly.
type Outcome struct {
	Date    string   // YYYY-MM-DD, UTC
	Differ  []string // products whose recomputed answer differs
	Changed []string // products whose stored answer is of another method
	Gone    []string // products whose documents are not stored any more
}

// Error names the products that differ, and those that could not be compared.
func (o *Outcome) Error() string {
	var parts []string
	if len(o.Differ) > 0 {
		parts = append(parts, "differs: "+strings.Join(o.Differ, ", "))
	}
	if len(o.Changed) > 0 {
		parts = append(parts, "method_changed: "+strings.Join(o.Changed, ", "))
	}
	if len(o.Gone) > 0 {
		parts = append(parts, "inputs_gone: "+strings.Join(o.Gone, ", "))
	}
	return "recompute " + o.Date + ": " + strings.Join(parts, "; ")
}

// ExitCode returns 1 when a product differs, else 3.
func (o *Outcome) ExitCode() int {
	if len(o.Differ) > 0 {
		return exitDiffers
	}
	return exitNotCompared
}

// Validate is called by the parser.
func (c *RecomputeCommand) Validate() error {
	if _, err := compute.ParseDate(c.Date); err != nil && c.Date != "current" {
		return fmt.Errorf("--date: %w", err)
	}
	return nil
}

// Run is called by the parser. It prints a report to out. The error is an [*Outcome] unless every stored answer of the date
// is identical, and another error when nothing of the date is stored or a file cannot be read.
func (c *RecomputeCommand) Run(out io.Writer) error {
	names := []string{c.Product}
	if c.Product == allProducts {
		names = Resources()
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
		case f.Methods != [2]string{}:
			outcome.Changed = append(outcome.Changed, name)
		case f.Gone != nil:
			outcome.Gone = append(outcome.Gone, name)
		case f.Differences != nil:
			outcome.Differ = append(outcome.Differ, name)
		}
	}
	switch {
	case stored == 0:
		return fmt.Errorf("recompute: nothing of %s is stored in %s by source %s", c.Date, c.DataDir, c.Source)
	case outcome.Differ != nil || outcome.Changed != nil || outcome.Gone != nil:
		return outcome
	}
	return nil
}

// Finding is the result of [Recompute] for one product of a date. The product is identical when Differences and Gone are nil
// and Methods is empty.
type Finding struct {
	Product     string
	Answers     int // number of stored variants that were compared
	Differences []Difference
	// Methods holds the method of the stored answer and the method of this version, if the two differ. Then nothing was
	// compared.
	Methods [2]string
	// Builds holds the [Build] of the stored answer and that of this version, if the two differ and Differences is not nil.
	Builds [2]string
	// Gone holds the inputs that are missing or damaged. If there are any, nothing was compared.
	Gone []Gone
}

// Gone is an input that is not stored, or whose bytes do not have the digest SHA256.
type Gone struct {
	SHA256, Name string
	Err          error // the reason
}

// print writes a line for the product, and an indented line for each missing input or for each field that differs.
func (f *Finding) print(out io.Writer) {
	switch {
	case f.Methods != [2]string{}:
		fmt.Fprintf(out, "%s method_changed: stored by %s, this version has %s\n", f.Product, f.Methods[0], f.Methods[1])
	case f.Gone != nil:
		fmt.Fprintf(out, "%s inputs_gone\n", f.Product)
		for _, g := range f.Gone {
			fmt.Fprintf(out, "  %s: %v\n", strings.TrimSpace(g.SHA256+" "+g.Name), g.Err)
		}
	case f.Differences == nil && f.Answers > 1:
		fmt.Fprintf(out, "%s identical, %d answers\n", f.Product, f.Answers)
	case f.Differences == nil:
		fmt.Fprintf(out, "%s identical\n", f.Product)
	default:
		fmt.Fprintf(out, "%s differs in %d fields\n", f.Product, len(f.Differences))
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

// recomputeTries is how often [Recompute] reads a file again that a running server has replaced meanwhile.
const recomputeTries = 5

// Recompute computes the answer of a product of a UTC date (YYYY-MM-DD) again from its stored documents, and compares the
// result with the stored answer. It compares nothing if this version has another method than the stored answer. It only
// reads and takes no lock, so a server may write the directory at the same time. The error is [snapshots.ErrNoSnapshot]
// when no answer of that date is stored.
func Recompute(dataDir, source, date, product string) (f *Finding, err error) {
	for range recomputeTries {
		var settled bool
		if f, settled, err = recomputeNow(dataDir, source, date, product); settled || err != nil {
			break
		}
	}
	return f, err
}

// recomputeNow makes one attempt. settled is false when inputs are gone and a newer file has replaced the one that names them.
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
	if m := meta.Receipt.Method; m != p.method {
		f.Methods = [2]string{m, p.method}
		return f, true, nil
	}
	load := func(sha256 string) ([]byte, error) { return snapshots.ReadObject(dataDir, source, sha256) }
	for _, in := range stored.Inputs {
		if _, err := load(in.SHA256); err != nil {
			f.Gone = append(f.Gone, Gone{in.SHA256, in.Name, err})
		}
	}
	if f.Gone != nil {
		// A server removes the documents of a file only after it has written a newer file. If the file is still the same, the
		// documents are gone for good.
		again, err := snapshots.ReadFile(dataDir, source, product, date)
		return f, err == nil && again.Edition.Default.ETag(snapshots.Identity) == stored.Edition.Default.ETag(snapshots.Identity), nil
	}
	in, err := inputsOf(&stored, load)
	if err != nil {
		return nil, true, fmt.Errorf("recompute %s: %w", product, err)
	}
	a, err := p.answer(in)
	if err != nil {
		return nil, true, fmt.Errorf("recompute %s: %w", product, err)
	}
	if err := f.compare(stored.Edition, a, stored.Build); err != nil {
		return nil, true, fmt.Errorf("compare %s: %w", product, err)
	}
	return f, true, nil
}

// compare fills in Answers, Differences and Builds. The path of a difference begins with the value of the
// parameter, if the product has a parameter. build is the [Build] that computed the stored answer.
func (f *Finding) compare(stored *snapshots.Edition, a *answer, build string) error {
	meta := stored.Default.Meta
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

// reproducible is the part of meta that the inputs alone determine.
type reproducible struct {
	AsOf        time.Time       `json:"as_of"`
	CapturedAt  *time.Time      `json:"captured_at"`
	SessionDate string          `json:"session_date"`
	Quality     json.RawMessage `json:"quality"`
}
