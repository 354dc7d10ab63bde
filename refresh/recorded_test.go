package refresh_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"strikecache/compute"
	"strikecache/refresh/cboe"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	rate        = 0.04
	recordedSPX = "replay/options/_SPX.json.gz"
)

func recordedChain(t testing.TB) *compute.Chain {
	t.Helper()
	chain, err := cboe.DecodeChain(recordedBody(t, recordedSPX))
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func gammaOf(chain *compute.Chain) compute.GammaResult {
	return compute.GammaExposure(compute.GammaInput{Chain: chain, Calendar: compute.NewCalendar(nil, nil), RiskFreeRate: rate})
}

// The figures of the model are those on which two implementations agreed.
func TestRecordedGammaGolden(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64: the last digits are promised per architecture")
	}
	r := gammaOf(recordedChain(t))
	r.Data.Profile, r.Data.ByStrike = nil, nil // long, and compared with the second implementation
	got, err := json.MarshalIndent(struct {
		Data    compute.Gamma        `json:"data"`
		Quality compute.GammaQuality `json:"quality"`
	}{r.Data, r.Quality}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "gex-2026-08-11.golden.json")
	if *update {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("figures differ from %s; got\n%s", path, got)
	}
}
