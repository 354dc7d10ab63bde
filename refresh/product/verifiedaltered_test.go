package product

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/snapshots"
)

// quietMarket is a market without gaps and errors: strikes of 25 points within 20 of the spot, priced with a skew and a carry of 2 %, in seven
// expirations of which one has both settlements. Most puts lie below the spot and most calls above, so that there is a flip.
func quietMarket(t testing.TB, symbol, am, pm string, asOf time.Time, spot float64) synthetic {
	t.Helper()
	u := compute.UnderlyingQuote{Symbol: symbol, Spot: spot, PriceChangePercent: 0.5, AsOf: asOf, CapturedAt: asOf.Add(15 * time.Minute)}
	var rows []contractRow
	for i, date := range []string{"261120", "261127", "261204", "261218", "270115", "270319", "270618"} {
		expiration, err := compute.ParseDate("20" + date[:2] + "-" + date[2:4] + "-" + date[4:])
		must(t, err)
		for _, root := range []string{am, pm} {
			settlement := compute.PM
			if root == am {
				settlement = compute.AM
			}
			left := settlement.Instant(expiration, calendar).Sub(asOf).Hours() / (365 * 24)
			if root == "" || left <= 0 || root == am && i != 3 {
				continue
			}
			for j := -20; j <= 20; j++ {
				k := math.Round(spot/25)*25 + 25*float64(j)
				forward := spot * math.Exp(0.02*left)
				iv := 0.16 - 0.4*math.Log(k/forward) + math.Pow(math.Log(k/forward), 2)
				for right, letter := range "CP" {
					price := compute.BlackValue(compute.Right(right), forward, k, iv*math.Sqrt(left)) * math.Exp(-0.04*left)
					q := with(math.Max(math.Round(price*20)/20-0.05, 0.05), math.Round(price*20)/20+0.05, math.Round(iv*1e4)/1e4)
					far := float64(j) * float64(1-2*right)
					q.OpenInterest = 100 + math.Max(0, 200*far) + float64(7*i+asOf.Day())
					q.Volume, q.Gamma, q.Delta, q.Last = 1200+50*far, 0.0012, 0.4*float64(1-2*right), q.Ask
					q.LastTrade = asOf.Unix() - int64(3*i)
					rows = append(rows, contractRow{fmt.Sprintf("%s%s%c%08.0f", root, date, letter, k*1000), q})
				}
			}
		}
	}
	return newSynthetic(t, u, 0.04, rows)
}

// leaf is a value in an answer that is no list and no object.
type leaf struct {
	is  any
	set func(v any)
}

// leaves finds one leaf of each path: all elements of a list have one path. A leaf that is not null comes before one that is.
func leaves(path string, v any, set func(any), all map[string]leaf) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			leaves(path+"."+name, x, func(y any) { v[name] = y }, all)
		}
	case []any:
		for i, x := range v {
			leaves(path, x, func(y any) { v[i] = y }, all)
		}
	default:
		if was, found := all[path]; !found || was.is == nil {
			all[path] = leaf{v, set}
		}
	}
}

// another returns another value of a kind.
func another(v any) any {
	switch v := v.(type) {
	case json.Number:
		if x, _ := v.Float64(); x != 0 {
			return 1.5*x + 1
		}
	case string:
		return v + "x"
	case bool:
		return !v
	}
	return 1e6
}

// unverified are texts that follow from figures, and values that no document decides.
var unverified = regexp.MustCompile(`^meta\.(endpoint|source|session_date|delay_minutes|refresh_seconds|notice|freshness|computed_at|captured_at|receipt\.(method|parameters|inputs))|[._](note|label|reasons)$|meta\.quality\.(unknown\.|hours|unreadable_rows)`)

// alter adds an answer for each value of an answer, below a prefix, with another value there.
func (a *answers) alter(resource, prefix string, s *snapshots.Snapshot) {
	all, _ := alteredAt(a, s, "")
	for path := range all {
		if strings.HasPrefix(path, prefix) && !unverified.MatchString(path) {
			_, body := alteredAt(a, s, path)
			a.add(resource, body, path)
		}
	}
}

// alteredAt returns the leaves of an answer, and the answer with another value at a path. The digest of the data is then corrected, as if a
// server had computed something else.
func alteredAt(t testing.TB, s *snapshots.Snapshot, path string) (all map[string]leaf, body []byte) {
	var answer struct {
		Success bool           `json:"success"`
		Data    any            `json:"data"`
		Meta    map[string]any `json:"meta"`
		Usage   any            `json:"usage"`
	}
	d := json.NewDecoder(bytes.NewReader(s.Body(snapshots.Identity)))
	d.UseNumber()
	must(t, d.Decode(&answer))
	all = map[string]leaf{}
	leaves("data", answer.Data, nil, all)
	leaves("meta", answer.Meta, nil, all)
	if path != "" {
		all[path].set(another(all[path].is))
	}
	data, err := json.Marshal(answer.Data)
	must(t, err)
	body, err = json.Marshal(answer)
	must(t, err)
	digest := func(b []byte) []byte { return fmt.Appendf(nil, "%x", sha256.Sum256(b)) }
	return all, bytes.ReplaceAll(body, digest(s.Data()), digest(data))
}

// In an answer of every resource, each altered figure, digest or document is found. Each alteration is of an answer that otherwise agrees.
func TestFaultAlteredAnswersAreNotVerified(t *testing.T) {
	long(t)
	t.Parallel()
	a, sealed := newAnswers(t), map[string]*snapshots.Snapshot{}
	seal := func(resource string, inputs ...madeInput) (row madeInput) {
		sealed[resource], row = a.sealRow(resource, 0.04, inputs...)
		return row
	}
	var now madeInput
	var flows []madeInput
	day := time.Date(2026, time.November, 20, 16, 0, 0, 0, time.UTC)
	for _, u := range []struct {
		symbol, path, am, pm string
		spot                 float64
	}{{"NDX", "options/_NDX.json", "NDX", "NDXP", 7503.25}, {"SPY", "options/SPY.json", "", "SPY", 750}, {"SPX", "options/_SPX.json", "SPX", "SPXW", 7503.25}} {
		name := strings.ToLower(u.symbol)
		now = madeInput{Name: u.path, Body: quietMarket(t, u.symbol, u.am, u.pm, day, u.spot).body}
		before := madeInput{Name: "previous/" + u.path, Body: quietMarket(t, u.symbol, u.am, u.pm, day.AddDate(0, 0, -1), u.spot-20).body}
		rows := seal("gex/"+name, now, before)
		if u.symbol != "SPX" {
			flow, _ := a.sealRow("options/flow/"+name, 0, now, before)
			flows = append(flows, flowStateFrom(u.symbol, flow))
			continue
		}
		seal("gex/spx/matrix", now)
		seal("gex/spx/levels", now)
		seal("gex/spx/summary", now)
		seal("gex/spx/open-interest", now, before)
		seal("gex/spx/intraday", now, madeInput{Name: "state/track-rows", Body: []byte(`[["2026-11-20T15:00:00Z",7500,7500,1,2,3,4,"neutral",5,6,7,8,9,10]]`)})
		seal("gex/spx/strikes", now, madeInput{Name: "state/track-rows", Body: []byte(`[["2026-11-20T15:00:00Z",7500,[7495,7500],[1,null],"strikes/1"]]`)})
		seal("gex/spx/series", now, rows)
		rows = seal("volatility/spx", now, madeInput{Name: "state/volatility-history", Body: []byte(`[{"session":"2026-11-19","close":7480,"atm_30d":15.5}]`)})
		seal("volatility/spx/series", now, rows)
		rows = seal(PainResource, now)
		seal(PainResource+"/series", now, rows)
		seal("options/flow/spx", now, before)
		flows = slices.Insert(flows, 1, flowStateFrom("SPX", sealed["options/flow/spx"])) // by symbol
		seal(FlowResource, flows...)
		seal(UnderlyingsResource, underlyingsStateOf(t, "SPX", sealed["gex/spx"], sealed["volatility/spx"]))
	}
	sealed[SectorsResource] = a.rotation(rand.New(rand.NewPCG(51, 10)), day)
	sealed[VIXResource] = a.curve(rand.New(rand.NewPCG(51, 10)), compute.DateOf(day))
	for resource, s := range sealed {
		a.alter(resource, map[string]string{"gex/spy": "meta.quality.", "gex/ndx": "data.spot"}[resource], s) // the rest is as in gex/spx
	}
	a.verify()
	t.Logf("figure: %d altered answers: the second program finds each", len(a.files))

	// A document with one digit more is another document.
	b := newAnswers(t)
	b.seal(PainResource, 0, now)
	b.altered[b.files[0]] = "its document"
	b.write(fmt.Sprintf("%x", sha256.Sum256(now.Body)), bytes.Replace(now.Body, []byte(`"open_interest":`), []byte(`"open_interest":1`), 1))
	b.verify()
}
