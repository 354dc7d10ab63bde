package refresh_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/product"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// Every answer names all its inputs, each stored under its digest: over two sessions and a night, with quotes of the evening and histories.
func TestReceiptsNameEveryInput(t *testing.T) {
	long(t)
	play(t, "2026-11-18 16:40", func(t *testing.T, r *rig) {
		check := func(resource, parameters string, names ...string) {
			t.Helper()
			e := r.store.Current(resource)
			receipt := e.Default.Meta.Receipt
			var got, sums []string
			for _, in := range receipt.Inputs {
				got, sums = append(got, in.Name), append(sums, in.SHA256)
				if _, err := snapshots.ReadObject(r.dir, "simulated", in.SHA256); err != nil { // it compares the digest
					t.Errorf("%s: %s %s: %v", resource, in.Name, in.SHA256, err)
				}
			}
			if !slices.Equal(got, names) || !slices.Equal(sums, receipt.InputSHA256) || string(receipt.Parameters) != parameters {
				t.Errorf("%s: receipt %+v with parameters %s, want %s and inputs %q", resource, receipt, receipt.Parameters, parameters, names)
			}
		}
		const spx = string(spxDocument)
		var funds []string
		for _, symbol := range compute.FundSymbols() {
			funds = append(funds, string(upstream.Quotes(symbol)), string(upstream.History(symbol)))
		}
		for _, at := range []struct{ time, settled, closes, session string }{
			{"2026-11-18 16:40", "2026-11-17", "charts/historical/", "2026-11-18"}, // the quotes are of the 18th
			{"2026-11-18 18:50", "2026-11-18", "quotes/", "2026-11-18"},
			{"2026-11-18 20:30", "2026-11-18", "quotes/", "2026-11-18"},
			{"2026-11-19 11:00", "2026-11-18", "quotes/", "2026-11-19"},
			{"2026-11-19 11:05", "2026-11-18", "quotes/", "2026-11-19"},
		} {
			r.onceAt(at.time)
			var of struct {
				Rate float64 `json:"risk_free_rate"`
			}
			must(t, json.Unmarshal(r.meta(product.GammaResource).Receipt.Parameters, &of))
			if math.Abs(of.Rate-0.04) > 1e-4 {
				t.Errorf("the quotes, made at 4 %%, give a rate of %v", of.Rate)
			}
			gamma, parameters := []string{spx}, fmt.Sprintf(`{"risk_free_rate":%v,"risk_free_rate_source":"document"}`, of.Rate)
			first := at.session == "2026-11-18"
			if !first {
				gamma = append(gamma, "previous/"+spx)
			}
			check(product.MatrixResource, parameters, spx)
			check(product.GammaResource, parameters, gamma...)
			check("gex/spx/open-interest", parameters, gamma...)
			check("gex/spx/summary", parameters, spx)
			check(product.SeriesResource, `{}`, spx, "state/series-rows")
			check(product.PainResource, `{}`, spx)
			check("options/flow/spx", `{}`, gamma...)
			check(product.FlowResource, `{}`, "state/flow/SPX", "state/flow/XLF")
			// Without the session before, the changes of volatilities are unknown, and the quality says so.
			data := string(r.store.Current(product.FlowResource).Variants["100"].Data())
			items, unknown := strings.Count(data, `"iv_change":`)/2, strings.Count(data, `"iv_change":null`) // each item has it twice
			note := strings.Contains(string(r.meta(product.FlowResource).Quality), "iv_change is null")
			if items == 0 || (unknown == items) != first || note != first {
				t.Errorf("%s: %d of %d changes of volatility are unknown, said %v", at.time, unknown, items, note)
			}
			check(product.SectorsResource, `{}`, funds...)
			check(product.SectorsResource+"/series", `{}`, append(slices.Clone(funds), "state/series-rows")...)
			curve := []string{"settlement/" + at.settled + ".csv", at.closes + "_VIX.json", at.closes + "_VIX3M.json"}
			for _, symbol := range compute.VIXIndices { // in the evening, the newest quotes have the closes
				if name := "quotes/_" + symbol + ".json"; !slices.Contains(curve, name) || !first {
					curve = append(curve, name)
				}
			}
			check(product.VIXResource, fmt.Sprintf(`{"stale_sessions_to":%q}`, at.session), append(curve, "state/vix-history")...)
			check(product.VIXSeriesResource, `{}`, curve[0], "state/series-rows")
		}
		const chain = "previous/options/_SPX.json" // of the close: that of the night is not stored under the date
		if of := inputOf(t, r.dir, "options/flow/spx", "2026-11-19", chain); of == "" || of != inputOf(t, r.dir, product.GammaResource, "2026-11-19", chain) {
			t.Error("the flow and gamma compare with two chains of the session before")
		}
		// The row of each date names the gamma snapshot that a client can fetch.
		var rows []struct{ Snapshot string }
		must(t, json.Unmarshal([]byte(inputOf(t, r.dir, product.SeriesResource, "2026-11-19", "state/series-rows")), &rows))
		for i, date := range []string{"2026-11-18", "2026-11-19"} {
			past, err := r.store.Historical(product.GammaResource, date)
			if err != nil || len(rows) != 2 || rows[i].Snapshot != past.Default.Meta.Receipt.DataSHA256 {
				t.Errorf("%s: %v, rows of the snapshots %v", date, err, rows)
			}
		}
	})
}

// A document of the session before that is gone is named in the log once, and not again at each refresh.
func TestDocumentOfTheSessionBeforeIsGone(t *testing.T) {
	long(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), "2026-11-19 15:00")
		r.once()
		must(t, os.RemoveAll(filepath.Join(r.dir, "simulated", "objects")))
		r = r.again("2026-11-20 11:00")
		for range 2 {
			r.once()
			time.Sleep(time.Minute)
		}
		if n := strings.Count(r.log.String(), "document=options/_SPX.json"); n != 1 { // gex/spx and the flow share it
			t.Errorf("named %d times\n%s", n, r.log)
		}
		if !strings.Contains(string(r.meta(product.GammaResource).Quality), `"changes_reason":"no_reference"`) {
			t.Errorf("quality %s", r.meta(product.GammaResource).Quality)
		}
	})
}
