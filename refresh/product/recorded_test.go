package product

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/folder"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A replay goes on at the time of its newest document.
func TestTimeOfAReplay(t *testing.T) {
	source, err := folder.NewRecorded(recorded(t, "replay"))
	must(t, err)
	if want := time.Date(2026, 10, 6, 17, 56, 38, 0, time.UTC); !source.Now().Equal(want) {
		t.Errorf("it is %v, want %v", source.Now(), want)
	}
}

// The figures of the model are those on which two implementations agreed.
func TestRecordedGammaGolden(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: the last digits are promised per architecture")
	}
	chain, err := cboe.DecodeChain(recordedBody(t, "replay/options/_SPX.json.gz"))
	must(t, err)
	own, _ := compute.RateOf(chain, calendar, rate)
	r := compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: calendar, RiskFreeRate: own})
	r.Data.Profile, r.Data.ByStrike = nil, nil // long, and compared with the second implementation
	got, err := json.MarshalIndent(struct {
		Data    compute.Gamma        `json:"data"`
		Quality compute.GammaQuality `json:"quality"`
	}{r.Data, r.Quality}, "", "  ")
	must(t, err)
	path := filepath.Join("testdata", "gex-2026-08-11.golden.json")
	if *update {
		must(t, os.WriteFile(path, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if string(got)+"\n" != string(want) {
		t.Errorf("figures differ from %s; got\n%s", path, got)
	}
}
