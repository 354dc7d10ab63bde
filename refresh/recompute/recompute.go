package recompute

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"strikecache/refresh"
	"strikecache/refresh/archive"
	"strikecache/snapshots"
)

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

// Place says where the stored day lies.
type Place struct{ DataDir, Source, Date string }

// patience is how long a product is looked at again whose stored answer and archived inputs do not belong together: a
// running server writes one after the other.
const (
	patience = 2 * time.Second
	pause    = 400 * time.Millisecond
)

// Product computes a product of a stored day again. The error is [snapshots.ErrNoSnapshot] when none is stored.
func Product(at Place, product string) (*Finding, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		f, settled, err := once(at, product)
		if settled || err != nil || time.Now().After(deadline) {
			return f, err
		}
	}
}

// once compares what is stored now. It is not settled while inputs are gone that a server may be about to write.
func once(at Place, product string) (f *Finding, settled bool, err error) {
	stored, err := snapshots.ReadFile(at.DataDir, at.Source, product, at.Date)
	if err != nil {
		return nil, true, err
	}
	f = &Finding{Product: product}
	meta := stored.Edition.Default.Meta
	dir := archive.Dir(at.DataDir, at.Source)
	recipe, err := archive.ReadRecipe(dir, product, at.Date)
	if err == nil && !belongs(recipe, meta) {
		err = fmt.Errorf("%w: the archive has the inputs of the answer computed at %s", archive.ErrGone, recipe.ComputedAt.Format(time.RFC3339))
	}
	if err != nil {
		for _, sha := range meta.Receipt.InputSHA256 {
			f.Gone = append(f.Gone, Gone{sha, "", err})
		}
		return f, false, nil
	}
	bodies, gone := look(dir, recipe)
	if f.Gone = gone; gone != nil {
		// A server removes documents once a newer recipe stands: under the same one, they are gone.
		now, err := archive.ReadRecipe(dir, product, at.Date)
		return f, err == nil && now.ComputedAt.Equal(recipe.ComputedAt), nil
	}
	again, err := refresh.Recompute(recipe, bodies)
	if err != nil {
		return nil, true, fmt.Errorf("recompute %s: %w", product, err)
	}
	if err := f.compare(stored.Edition, again, recipe.Build); err != nil {
		return nil, true, fmt.Errorf("compare %s: %w", product, err)
	}
	return f, true, nil
}

// belongs says whether a recipe is that of a stored answer.
func belongs(r *archive.Recipe, meta snapshots.Meta) bool {
	inputs := make([]string, 0, len(r.Inputs))
	for _, in := range r.Inputs {
		inputs = append(inputs, in.SHA256)
	}
	return slices.Equal(inputs, meta.Receipt.InputSHA256) && r.ComputedAt.Truncate(time.Second).Equal(meta.ComputedAt)
}

// look checks that all documents are there, and returns how to read them: one at a time, since all chains of a day are
// a hundred megabytes.
func look(dir string, r *archive.Recipe) (func(archive.Input) ([]byte, error), []Gone) {
	var gone []Gone
	for _, in := range slices.Concat(r.Inputs, r.States) {
		if _, err := archive.ReadDocument(dir, in.SHA256); err != nil {
			gone = append(gone, Gone{in.SHA256, in.Name, err})
		}
	}
	return func(in archive.Input) ([]byte, error) { return archive.ReadDocument(dir, in.SHA256) }, gone
}

// compare fills in what differs. Paths of a parameter's answer begin with its value.
func (f *Finding) compare(stored *snapshots.Edition, again *refresh.Recomputed, build string) error {
	meta := stored.Default.Meta
	if m := meta.Receipt.Method; m != again.Method {
		f.Methods = [2]string{m, again.Method}
	}
	was, err := json.Marshal(clocks{meta.AsOf, meta.CapturedAt, meta.SessionDate, meta.Quality})
	if err != nil {
		return err
	}
	is, err := json.Marshal(clocks{again.AsOf, again.CapturedAt, again.SessionDate, again.Quality})
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
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		data, ok := again.Data[name]
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
	for _, name := range slices.Sorted(maps.Keys(again.Data)) {
		if answers[name] == nil {
			f.Differences = append(f.Differences, Difference{name, absent, "an answer"})
		}
	}
	if now := refresh.Build(); f.Differences != nil && build != now {
		f.Builds = [2]string{build, now}
	}
	return nil
}

// clocks is the part of meta that rests on the inputs alone.
type clocks struct {
	AsOf        time.Time       `json:"as_of"`
	CapturedAt  *time.Time      `json:"captured_at"`
	SessionDate string          `json:"session_date"`
	Quality     json.RawMessage `json:"quality"`
}
