package refresh

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
	"strikecache/refresh/archive"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// resumeJob is the job of the batches of [Refresher.Resume].
const resumeJob = "resume"

// Resume computes the current stored answers again from their archived inputs, with the methods and the configuration of
// this process, and replaces the answers that differ. It also computes products of the same documents that have no stored
// answer. The archived documents become the accepted ones, with which documents fetched later are compared. [Refresher.Run]
// calls Resume first. Restore must have returned. The error joins the failures of all feeds.
func (r *Refresher) Resume() error {
	if r.cfg.Inputs == nil {
		return nil
	}
	var errs []error
	if err := r.resumeTracks(); err != nil {
		errs = append(errs, err)
	}
	for _, feed := range []string{optionsFeed, sectorsFeed, vixFeed} {
		b := r.newBatch(resumeJob)
		var products, others []*product
		for _, p := range r.ofFeed(feed) {
			if p.accumulates {
				products = append(products, p) // after a kill, the feed may have a document that adds to the stored answer
				continue
			}
			ready, err := r.takeInputs(b, p)
			if err != nil {
				errs = append(errs, fmt.Errorf("resume %s: %w", p.name, err))
			} else if ready {
				products = append(products, p)
			} else {
				others = append(others, p)
			}
		}
		for _, p := range others {
			if b.holds(r.current[p.name].edition.Default.Meta.Receipt) {
				products = append(products, p) // it has no recipe because of a crash or of an earlier version
			}
		}
		slices.SortFunc(products, func(x, y *product) int { return cmp.Compare(slices.Index(r.products, x), slices.Index(r.products, y)) })
		if len(b.documents) == 0 {
			continue
		}
		if err := r.accept(b, products); err != nil {
			errs = append(errs, fmt.Errorf("resume %s: %w", feed, err))
		}
	}
	return errors.Join(errs...)
}

// resumeTracks computes each answer that accumulates again, from the document that added to it last. The feed may have
// newer documents.
func (r *Refresher) resumeTracks() error {
	for _, p := range r.products {
		if !p.accumulates || r.current[p.name].edition == nil {
			continue
		}
		b := r.newBatch(resumeJob)
		ready, err := r.takeInputs(b, p)
		if ready {
			err = r.accept(b, []*product{p})
		}
		if err != nil {
			return fmt.Errorf("resume %s: %w", p.name, err)
		}
	}
	return nil
}

// takeInputs puts the archived documents of the product's stored answer into the batch. ready says whether the product can
// be computed from the batch. It cannot when the archive does not have the inputs of the stored answer, when another answer
// rests on another document of the same name, or when a document has a timestamp after the market's time. If the newest
// inputs of a flow are missing, or gamma rests on another SPX chain, the batch gets the flow's chains without SPX, so that
// the next SPX chain is published together with the flow.
func (r *Refresher) takeInputs(b *batch, p *product) (ready bool, err error) {
	h := r.current[p.name]
	if h.edition == nil {
		return true, nil
	}
	recipe, complete, err := r.newestRecipe(p, h.edition.Default.Meta)
	if recipe == nil || !complete && (!p.everyChain || r.cfg.Fleet != nil) { // in a fleet, the inputs may be long past
		return false, err
	}
	in, err := inputsOf(recipe, r.cfg.Inputs.Body)
	if err != nil {
		return false, err
	}
	taken := map[upstream.Name]*document{}
	for _, d := range in.upstream() {
		name := upstream.Name(d.Name)
		if !complete && name == spxChain {
			continue
		}
		if known := r.acceptedDocument(name); known != nil && known.SHA256 == d.SHA256 && known.chain != nil {
			d = known // decoded already
		} else if err := d.open(); err != nil {
			return false, err
		}
		d.Body = nil // it can be loaded again
		r.measure(d)
		if d.settlement != nil {
			name = latestSettlement
		}
		other := b.documents[name]
		differs := other != nil && other.content != d.content // another answer rests on another document of this name
		if differs && p.everyChain && name == spxChain {
			complete = false
			continue
		}
		if differs || d.mark.captured.After(b.at) { // or the clock was set back
			return false, nil
		}
		if other == nil {
			taken[name] = d
		}
	}
	maps.Copy(b.documents, taken)
	if complete && p.resume != nil {
		err = p.resume(b, in)
	}
	return complete && err == nil, err
}

// newestRecipe returns the recipe of the answer with this meta. If the archive does not have it, complete is false, and the
// recipe is that of another answer of the date, or nil. After a kill, the recipe may still have the suffix [archive.Next].
// Then it is put in its place.
func (r *Refresher) newestRecipe(p *product, meta snapshots.Meta) (recipe *archive.Recipe, complete bool, err error) {
	for _, name := range []string{p.name + archive.Next, p.name + besideFile + archive.Next, p.name + besideFile, p.name} {
		found, failed := r.cfg.Inputs.Recipe(name, compute.DateOf(meta.AsOf.UTC()).String())
		switch {
		case errors.Is(failed, archive.ErrGone):
		case failed != nil:
			err = failed
		case belongs(found, meta):
			if product, next := strings.CutSuffix(name, archive.Next); next { // the next answer of this date would replace it
				found.Product = product
				err = r.cfg.Inputs.Put([]archive.Recipe{*found}, nil)
			}
			return found, true, err
		default:
			recipe = found
		}
	}
	return recipe, false, err
}

// holds says whether the batch has all upstream documents of a receipt.
func (b *batch) holds(receipt snapshots.Receipt) bool {
	has := map[string]bool{}
	for _, d := range b.documents {
		has[d.SHA256] = true
	}
	for i, sum := range receipt.InputSHA256 { // an earlier version named no states
		if !has[sum] && (i >= len(receipt.Inputs) || !isState(receipt.Inputs[i].Name)) {
			return false
		}
	}
	return true
}

// belongs says whether a recipe is that of a stored answer.
func belongs(recipe *archive.Recipe, meta snapshots.Meta) bool {
	var inputs []string
	for _, in := range recipe.Inputs {
		inputs = append(inputs, in.SHA256)
	}
	return slices.Equal(inputs, meta.Receipt.InputSHA256) && recipe.ComputedAt.Truncate(time.Second).Equal(meta.ComputedAt)
}
