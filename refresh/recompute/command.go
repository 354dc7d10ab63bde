package recompute

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/snapshots"
)

// Command is `strikecache recompute`, in the form that the kong parser reads.
type Command struct {
	Date    string `help:"UTC date to compute again, YYYY-MM-DD." required:""`
	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
	Source  string `help:"Source whose day it is: ${enum}." enum:"simulated,cboe,replay" default:"simulated"`
	Product string `help:"Product to compute again: ${enum}." enum:"${stored_products}" default:"all"`
}

// Vars are what the help of [Command] names.
func Vars() map[string]string {
	return map[string]string{"stored_products": strings.Join(append([]string{all}, refresh.StoredProducts()...), ",")}
}

const (
	all = "all"
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

// ExitCode is 1 when something differs, and 3 when nothing does but inputs are gone.
func (o *Outcome) ExitCode() int {
	if len(o.Differ) > 0 {
		return exitDiffers
	}
	return exitGone
}

// Validate is called by the parser.
func (c *Command) Validate() error {
	if _, err := compute.ParseDate(c.Date); err != nil {
		return fmt.Errorf("--date: %w", err)
	}
	return nil
}

// Run is called by the parser. It returns an [*Outcome] unless all that is stored is identical.
func (c *Command) Run(out io.Writer) error {
	products := []string{c.Product}
	if c.Product == all {
		products = refresh.StoredProducts()
	}
	outcome := &Outcome{Date: c.Date}
	stored := 0
	for _, product := range products {
		f, err := Product(Place{c.DataDir, c.Source, c.Date}, product)
		if errors.Is(err, snapshots.ErrNoSnapshot) {
			fmt.Fprintf(out, "%s not stored\n", product)
			continue
		}
		if err != nil {
			return err
		}
		stored++
		f.print(out)
		switch {
		case f.Gone != nil:
			outcome.Gone = append(outcome.Gone, product)
		case f.Differences != nil:
			outcome.Differ = append(outcome.Differ, product)
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
