package refresh

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/product"
	"strikecache/snapshots"
)

// RecomputeCommand is `strikecache recompute`, in the form that the kong parser reads: it computes the answers of a stored
// date again from their stored documents and prints the fields that differ.
type RecomputeCommand struct {
	Date    string `help:"UTC date to compute again, YYYY-MM-DD, or current for the answers that were served last." placeholder:"DATE" required:""`
	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source  string `help:"Source of the stored date, as in meta.source." default:"simulated"`
	Product string `help:"Product to compute again, such as gex/spx, by its meta.endpoint; all for all that are stored." default:"all"`
}

const (
	allProducts = "all"
	// maxShown is how many details of one product are printed.
	maxShown = 50
)

// The verdicts of a [Finding]. A run ends with the exit code 1 if a product differs, else with 3 if one was not compared.
const (
	identical     = "identical"
	differs       = "differs"
	methodChanged = "method_changed" // the stored answer is of another method: nothing was compared
	inputsGone    = "inputs_gone"    // inputs are missing or damaged: nothing was compared
)

// Outcome is the error of [RecomputeCommand.Run] when a stored answer of the date could not be reproduced exactly.
type Outcome struct {
	Date     string              // YYYY-MM-DD, UTC
	Products map[string][]string // by verdict, without those that are identical
}

// Error names the products that differ, and those that could not be compared.
func (o *Outcome) Error() string {
	var parts []string
	for _, verdict := range []string{differs, methodChanged, inputsGone} {
		if products := o.Products[verdict]; products != nil {
			parts = append(parts, verdict+": "+strings.Join(products, ", "))
		}
	}
	return "recompute " + o.Date + ": " + strings.Join(parts, "; ")
}

// ExitCode returns 1 when a product differs, else 3.
func (o *Outcome) ExitCode() int {
	if o.Products[differs] != nil {
		return 1
	}
	return 3
}

// Validate is called by the parser.
func (c *RecomputeCommand) Validate() error {
	if _, err := compute.ParseDate(c.Date); err != nil && c.Date != "current" {
		return fmt.Errorf("--date must be YYYY-MM-DD, a UTC date, or current, not %.40q", c.Date)
	}
	if c.Product != allProducts && product.Named(c.Product) == nil {
		return fmt.Errorf("--product: no resource is named %.40q; it is all or a name such as %s", c.Product, product.GammaResource)
	}
	if !sourceForm.MatchString(c.Source) {
		return fmt.Errorf("--source must be 1 to 32 of a-z, 0-9 and -, not %.40q", c.Source)
	}
	return nil
}

// Run is called by the parser. It prints a report to out. The error is an [*Outcome] unless every stored answer of the date
// is identical, and another error when nothing of the date is stored or a file cannot be read.
func (c *RecomputeCommand) Run(out io.Writer) error {
	names := []string{c.Product}
	if c.Product == allProducts {
		var err error
		if names, err = snapshots.FileNames(c.DataDir, c.Source, c.Date); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	outcome := &Outcome{Date: c.Date, Products: map[string][]string{}}
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
		if f.Verdict != identical {
			outcome.Products[f.Verdict] = append(outcome.Products[f.Verdict], f.Product)
		}
	}
	switch {
	case stored == 0 && c.Product != allProducts:
		return fmt.Errorf("recompute: no %s of %s is stored in %s by source %s", c.Product, c.Date, c.DataDir, c.Source)
	case stored == 0:
		return fmt.Errorf("recompute: nothing of %s is stored in %s by source %s", c.Date, c.DataDir, c.Source)
	case len(outcome.Products) > 0:
		return outcome
	}
	return nil
}

// Finding is the result of [Recompute] for one product of a date.
type Finding struct {
	Product, Verdict string
	Summary          string   // follows the verdict in the report; may be empty
	Details          []string // the fields that differ, or the inputs that are missing or damaged, each with the reason
	Note             string   // follows the details; may be empty
}

// print writes a line for the product, and an indented line for each detail.
func (f *Finding) print(out io.Writer) {
	fmt.Fprintf(out, "%s %s%s\n", f.Product, f.Verdict, f.Summary)
	for _, detail := range f.Details[:min(len(f.Details), maxShown)] {
		fmt.Fprintf(out, "  %s\n", detail)
	}
	if more := len(f.Details) - maxShown; more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
	if f.Note != "" {
		fmt.Fprintf(out, "  %s\n", f.Note)
	}
}

// recomputeTries is how often [Recompute] reads a file whose inputs are gone: a running server removes them after it has replaced the file.
const recomputeTries = 5

// Recompute computes the answer of a product of a UTC date (YYYY-MM-DD) again from its stored documents, and compares the
// result with the stored answer. In place of the product it takes the name of its file. It compares nothing if this version has another
// method than the stored answer. It only reads and takes no lock, so a server may write the directory at the same time. The error is
// [snapshots.ErrNoSnapshot] when no answer of that date is stored.
func Recompute(dataDir, source, date, name string) (f *Finding, err error) {
	load := func(sha256 string) ([]byte, error) { return snapshots.ReadObject(dataDir, source, sha256) }
	for range recomputeTries {
		stored, err := snapshots.ReadFile(dataDir, source, name, date)
		if err != nil {
			return nil, err
		}
		if f, err = recompute(&stored, load); err != nil || f.Verdict != inputsGone {
			return f, err
		}
	}
	return f, nil
}

// recompute computes a stored answer again. load reads an input.
func recompute(stored *snapshots.File, load func(sha256 string) ([]byte, error)) (*Finding, error) {
	p := product.Named(stored.Product)
	if p == nil {
		return nil, fmt.Errorf("recompute: unknown product %.40q", stored.Product)
	}
	f := &Finding{Product: p.Name}
	if m := stored.Edition.Default.Meta.Receipt.Method; m != p.Method {
		f.Verdict, f.Summary = methodChanged, fmt.Sprintf(": stored by %s, which it keeps, and this version has %s", m, p.Method)
		return f, nil
	}
	for _, in := range stored.Inputs {
		if _, err := load(in.SHA256); err != nil {
			f.Details = append(f.Details, strings.TrimSpace(in.SHA256+" "+in.Name)+": "+err.Error())
		}
	}
	if f.Details != nil {
		f.Verdict = inputsGone
		return f, nil
	}
	in, err := product.InputsOf(stored, load)
	if err != nil {
		return nil, fmt.Errorf("recompute %s: %w", p.Name, err)
	}
	a, err := p.Answer(in)
	if err != nil {
		return nil, fmt.Errorf("recompute %s: %w", p.Name, err)
	}
	if err := f.compare(stored.Edition, a, stored.Build); err != nil {
		return nil, fmt.Errorf("compare %s: %w", p.Name, err)
	}
	return f, nil
}

// compare fills in the verdict. The path of a difference begins with the value of the parameter, if the product has a parameter.
// build is the [product.Build] that computed the stored answer.
func (f *Finding) compare(stored *snapshots.Edition, a *product.Answer, build string) error {
	meta := stored.Default.Meta
	was, err := json.Marshal(reproducible{meta.AsOf, meta.CapturedAt, meta.SessionDate, meta.Quality})
	if err != nil {
		return err
	}
	is, err := json.Marshal(reproducible{a.AsOf, a.Captured, a.Inputs.Calendar().SessionDate(a.AsOf).String(), a.QualityJSON})
	if err != nil {
		return err
	}
	if f.Details, err = differences("meta", was, is); err != nil {
		return err
	}
	answers, computed := product.VariantsOf(stored), a.Stored()
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		variant := computed[name]
		if variant == nil {
			f.Details = append(f.Details, difference(name, "an answer", absent))
			continue
		}
		found, err := differences(strings.TrimPrefix(name+": data", ": "), answers[name].Data(), variant.JSON)
		if err != nil {
			return err
		}
		if found == nil {
			for _, form := range product.OtherForms(answers[name], variant.Forms) {
				found = append(found, difference(strings.TrimPrefix(name+": "+form, ": "), "other bytes or none", "of the same data"))
			}
		}
		f.Details = append(f.Details, found...)
	}
	for _, name := range slices.Sorted(maps.Keys(computed)) {
		if answers[name] == nil {
			f.Details = append(f.Details, difference(name, absent, "an answer"))
		}
	}
	f.Verdict = identical
	if len(answers) > 1 {
		f.Summary = fmt.Sprintf(", %d answers", len(answers))
	}
	if f.Details != nil {
		f.Verdict, f.Summary = differs, fmt.Sprintf(" in %d fields", len(f.Details))
		if now := product.Build(); build != now {
			f.Note = fmt.Sprintf("stored by a build of %s, recomputed by %s: last digits may differ", build, now)
		}
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
