package refresh

import (
	"math"
	"strings"
	"testing"

	"strikecache/compute"
)

// A figure that is not finite is null in data, row and quality, and the quality names it once.
func TestNotFiniteIsNullWithAReason(t *testing.T) {
	bad := compute.Dollars(math.NaN())
	g := compute.Gamma{Net: &bad, ByExpiration: []compute.ExpirationGamma{{Exposures: compute.Exposures{Delta: new(compute.Dollars(math.Inf(1)))}}}, ByStrike: []compute.StrikeGamma{{Call: &bad}, {Call: &bad}}}
	a := &answer{product: productOf(GammaResource), inputs: &inputs{}, variants: only(&g), quality: compute.GammaQuality{SpotGap: new(compute.Ratio(math.Inf(-1)))}}
	a.row, a.summarise = []any{g.Net}, func(row seriesRow) any { return row }
	must(t, a.encode())
	for text, want := range map[string]string{
		string(a.encoded[a.variants[""]]): `"net_gex_dollars":null,`, string(a.summary): `"row":[null,"gex/6"]`,
		string(a.qualityJSON): `{"not_finite":["by_expiration.delta_dollars","by_strike.call_gex_dollars","net_gex_dollars","spot_gap_pct"],"contracts":{`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in %.300s", want, text)
		}
	}
	g, a.quality = compute.Gamma{}, compute.GammaQuality{}
	if err := a.encode(); err != nil || strings.Contains(string(a.qualityJSON), "not_finite") {
		t.Errorf("finite: %v, %s", err, a.qualityJSON)
	}
}
