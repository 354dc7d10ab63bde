package product

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The values of every kind of form, and odd ones: names with commas, quotes and line ends, null, absent fields, lists, nested objects, no rows.
func TestOddForms(t *testing.T) {
	shapes := Shapes()
	render := func(pattern, name, data string) (string, error) {
		for _, f := range shapes[pattern].Forms {
			if f.Name == name {
				body, err := f.Render([]byte(data))
				return string(body), err
			}
		}
		return "", fmt.Errorf("%s has no %s", pattern, name)
	}
	for _, x := range []struct{ pattern, form, data, want string }{
		{"gex/{u}/series", "csv", `{"columns":["a","b"],"rows":[]}`, "a,b\r\n"},
		{"gex/{u}/series", "csv", `{"columns":["a","b,\"c\""],"rows":[["x,\"y\"\nz\u00e9",null],[true,-1.50e3],[["u","v"],""]]}`, "a,\"b,\"\"c\"\"\"\r\n\"x,\"\"y\"\"\r\nz\u00e9\",\r\ntrue,-1.50e3\r\nu; v,\r\n"},
		{"gex/{u}/levels", "csv", `{"symbol":"SPX","levels":[]}`, "name,label,price,distance_pct\r\n"},
		{"gex/{u}/levels", "csv", `{"levels":[{"price":1.5,"name":"n","more":{},"distance_pct":null}]}`, "name,label,price,distance_pct\r\nn,,1.5,\r\n"},
		{"gex/{u}/levels", "line", `{"symbol":"SPX","levels":[]}`, "$SPX: "},
		{"gex/{u}/levels", "line", `{"symbol":"XLE","levels":[{"label":"A B","price":45},{"label":"C","price":44.25}]}`, "$XLE: A B, 45, C, 44.25"},
		{"gex/{u}/matrix", "csv", `{"strikes":[],"expirations":[],"net_gex_dollars":[]}`, "strike,expiration,settlement,net_gex_dollars\r\n"},
		{"gex/{u}/matrix", "csv", `{"strikes":[{"strike":50}],"expirations":[{"expiration":"2026-11-20","settlement":"am"},{"expiration":"2026-11-20","settlement":"pm"}],"net_gex_dollars":[[null,-7]]}`, "strike,expiration,settlement,net_gex_dollars\r\n50,2026-11-20,am,\r\n50,2026-11-20,pm,-7\r\n"},
		{"options/flow/unusual", "csv", `{"count":1,"items":[{"reasons":["VOL_OI 52.8x","NEW"],"id":"i","symbol":"XLF","contract":"XLF261218C00050000","option_type":"call",` +
			`"strike":50,"expiration":"2026-12-18","days_to_expiration":28,"score":61.5,"band":"high","volume":900,"open_interest":0,"volume_oi_ratio":null,"premium":45000,` +
			`"premium_basis":"mid","last_price":0.5,"bid":null,"ask":0.55,"implied_volatility":0.2,"iv_change":-1.84,"delta":0.5,"moneyness_pct":1.5,"underlying_price":49.26,` +
			`"side":"ask","direction":"bullish","direction_confidence":0.6,"direction_basis":"b","opening_likely":true,"observed_at":"2026-11-20T15:44:52Z",` +
			`"components":{"volume_oi":1,"premium":2,"size_surprise":3,"quote_location":4,"iv_change":null},"quality":[],"other":1}]}`,
			"id,symbol,contract,option_type,strike,expiration,days_to_expiration,score,band,volume,open_interest,volume_oi_ratio,premium,premium_basis,last_price,bid,ask," +
				"implied_volatility,iv_change,delta,moneyness_pct,underlying_price,side,direction,direction_confidence,direction_basis,opening_likely,observed_at," +
				"components_volume_oi,components_premium,components_size_surprise,components_quote_location,components_iv_change,quality,reasons\r\n" +
				"i,XLF,XLF261218C00050000,call,50,2026-12-18,28,61.5,high,900,0,,45000,mid,0.5,,0.55,0.2,-1.84,0.5,1.5,49.26,ask,bullish,0.6,b,true,2026-11-20T15:44:52Z,1,2,3,4,,,VOL_OI 52.8x; NEW\r\n"},
	} {
		if got, err := render(x.pattern, x.form, x.data); err != nil || got != x.want {
			t.Errorf("%s: %q, %v, want %q", x.data, got, err, x.want)
		}
	}
	for _, data := range []string{``, `[]`, `{"columns":1}`, `{"columns":["a"],"rows":[1]}`} {
		if got, err := render("gex/{u}/series", "csv", data); err == nil {
			t.Errorf("%s gives %q", data, got)
		}
	}
	for pattern, shape := range shapes {
		for _, f := range shape.Forms {
			header, err := render(pattern, f.Name, `{"columns":["x"],"items":[],"levels":[],"rows":[]}`)
			columns := strings.Split(strings.TrimSpace(header), ",")
			slices.Sort(columns)
			if err != nil || len(slices.Compact(slices.Clone(columns))) != len(columns) || slices.Contains(columns, "") {
				t.Errorf("%s: %q, %v", pattern, columns, err)
			}
		}
	}
}
