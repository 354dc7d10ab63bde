package e2e

import (
	"cmp"
	"encoding/json"
	"maps"
	"testing"
)

// The summary of each kind of underlying is under 1,500 bytes uncompressed, and has the values of gex/{u} and volatility/{u}.
func TestSummary(t *testing.T) {
	t.Parallel()
	p := shared(t)
	type object = map[string]json.RawMessage
	within := func(o object, field string) (inner object) {
		_ = json.Unmarshal(o[field], &inner)
		return inner
	}
	for _, u := range []string{"spx", "spy", "aapl"} {
		path := "/api/v1/gex/" + u
		if _, body := p.get(path + "/summary"); len(body) >= 1500 {
			t.Errorf("%s has %d bytes", u, len(body))
		}
		own := dataOf[object](p, path)
		band, today := within(own, "flip_band"), within(own, "zero_dte")
		all := object{"flip_low": band["low"], "flip_high": band["high"], "zero_dte_net_gex_dollars": today["net_gex_dollars"], "zero_dte_gross_share_pct": today["gross_share_pct"]}
		maps.Copy(all, dataOf[object](p, "/api/v1/volatility/"+u))
		maps.Copy(all, own)
		summary := dataOf[object](p, path+"/summary")
		for field, value := range summary {
			if want := cmp.Or(string(all[field]), "null"); string(value) != want {
				t.Errorf("%s: %s is %s, want %s", u, field, value, want)
			}
		}
		if len(summary) != 21 {
			t.Errorf("%s: %d fields", u, len(summary))
		}
	}
}
