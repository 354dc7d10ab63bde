package product

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/snapshots"
)

// stateWith returns the state of a flow with items of these scores, a second apart.
func stateWith(t testing.TB, symbol string, scores ...compute.Score) *feed.Document {
	t.Helper()
	at := ny(t, "2026-08-11 15:00:00")
	f := compute.Flow{
		Items: []compute.FlowItem{}, Count: len(scores), Universe: []string{symbol}, SessionDate: compute.NewDate(2026, 8, 11),
		Rejected: compute.FlowRejected{Settled: 1, NotThisSession: 2, LowVolume: 3, LowPrice: 4, LowPremium: 5},
	}
	for i, score := range scores {
		f.Items = append(f.Items, compute.FlowItem{ID: fmt.Sprint(symbol, i), Contract: fmt.Sprintf("%s%03d", symbol, i), Score: score, ObservedAt: at, Reasons: []string{`A "[{],}"`}})
	}
	data, err := json.Marshal(&f)
	must(t, err)
	quality, err := json.Marshal(flowQuality{Chains: []flowChainQuality{{Symbol: symbol, AsOf: at, Served: len(scores)}}, IVChange: new(noIVHistory)})
	must(t, err)
	return flowStateOf(symbol, answered{data, quality, at, new(at.Add(15 * time.Minute)), new(snapshots.Digest(data)), nil})
}

// merged returns the flow of all chains, sealed.
func merged(t testing.TB, states ...*feed.Document) *Answer {
	t.Helper()
	a, err := Named(FlowResource).Answer(&Inputs{at: ny(t, "2026-08-11 15:15:00"), calendar: calendar, source: "made", Documents: states})
	must(t, err)
	must(t, a.Seal(0, snapshots.Freshness{State: "fresh"}))
	return a
}

// Rejected contracts are summed, at most 100 items are kept, and each limit has the bytes of the same rows encoded and sealed alone, also when the
// stored answer is opened again.
func TestFlowOfAllChains(t *testing.T) {
	var xlk, spy []compute.Score
	for i := range 70 {
		xlk, spy = append(xlk, compute.Score(100-i)), append(spy, compute.Score(99.5-float64(i)))
	}
	a := merged(t, stateWith(t, "QQQ"), stateWith(t, "SPY", spy...), stateWith(t, "XLK", xlk...))
	var all compute.Flow
	must(t, json.Unmarshal(a.Edition.Variants[allFlow].Data(), &all))
	for i := range all.Items {
		if want := fmt.Sprint([]string{"XLK", "SPY"}[i%2], i/2); all.Items[i].ID != want {
			t.Errorf("row %d is %s, want %s", i, all.Items[i].ID, want)
		}
	}
	if !slices.Equal(all.Universe, []string{"QQQ", "SPY", "XLK"}) || !slices.Equal(a.RestsOn, all.Universe) || all.Count != 100 ||
		all.Rejected != (compute.FlowRejected{Settled: 3, NotThisSession: 6, LowVolume: 9, LowPrice: 12, LowPremium: 15}) || all.SessionDate != compute.NewDate(2026, 8, 11) {
		t.Errorf("%v %v %d %+v %v", a.RestsOn, all.Universe, all.Count, all.Rejected, all.SessionDate)
	}
	f, _ := a.File(true)
	again, rests, err := a.Product.Reopen(f.Edition)
	must(t, err)
	if !slices.Equal(rests, a.RestsOn) || again.Default != again.Variants[defaultFlow] {
		t.Errorf("opened again, it rests on %v", rests)
	}
	for n := 1; n <= compute.MaxFlowItems; n++ {
		part, limit := all, strconv.Itoa(n)
		part.Items, part.Count = all.Items[:n], n
		data, err := json.Marshal(&part)
		must(t, err)
		want, err := snapshots.Seal(data, a.Edition.Default.Meta)
		must(t, err)
		for _, got := range []*snapshots.Snapshot{a.Edition.Variants[limit], again.Variants[limit]} {
			if !bytes.Equal(got.Body(snapshots.Identity), want.Body(snapshots.Identity)) || got.ETag(snapshots.Identity) != want.ETag(snapshots.Identity) {
				t.Errorf("limit %d: %s, want %s", n, got.Body(snapshots.Identity), want.Body(snapshots.Identity))
			}
			if often := limit == defaultFlow || limit == allFlow; got.Has(snapshots.Zstd) != often || (got.Form("csv") != nil) != often {
				t.Errorf("limit %d in zstd: %v, as csv: %v", n, !often, !often)
			}
		}
	}
}

// The limits that reach the number of rows share an answer, and equal rows are in the order of their contracts.
func TestFlowOfFewRows(t *testing.T) {
	for rows := range 3 {
		a := merged(t, stateWith(t, "SPY", slices.Repeat([]compute.Score{50}, rows)...))
		e := a.Edition
		if whole := e.Variants[allFlow]; e.Default != whole || e.Variants[strconv.Itoa(max(rows, 1))] != whole || len(e.Variants) != 100 {
			t.Errorf("%d rows: %d variants", rows, len(e.Variants))
		}
		if !a.Matches(e, 0) {
			t.Errorf("%d rows: the answer does not match itself", rows)
		}
	}
	data := string(merged(t, stateWith(t, "DIA", 50, 50), stateWith(t, "SPY", 50)).Edition.Default.Data())
	if want := regexp.MustCompile(`DIA000".*DIA001".*SPY000"`); !want.MatchString(data) {
		t.Errorf("%s, want %s", data, want)
	}
	if _, err := Named(FlowResource).Answer(&Inputs{}); err == nil {
		t.Error("a flow of no chain")
	}
}

type tornStore struct{ Stored }

func (tornStore) Current(string) *snapshots.Edition { return nil }

func (tornStore) Load(string, string) (snapshots.File, error) {
	return snapshots.File{}, snapshots.ErrTorn
}

// The flow of all of a played date is not made without a flow that is stored and cannot be read.
func TestFlowOfAllNeedsEachStoredFlow(t *testing.T) {
	b := &Batch{Settings: Settings{Underlyings: []string{"SPX"}}, Memory: NewMemory(tornStore{}, nil, nil)}
	if err := gatherFlow(nil, b, &Inputs{}); !errors.Is(err, snapshots.ErrTorn) || !strings.Contains(err.Error(), "options/flow/spx") {
		t.Errorf("%v", err)
	}
}
