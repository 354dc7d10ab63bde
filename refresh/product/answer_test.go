package product

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// The quality of a curve and of a fund counts the numbers of their documents that count as absent because no market has them. The second
// program compares those of chains.
func TestBadNumbersAreCountedInTheQuality(t *testing.T) {
	curve := func(vix, close string) map[upstream.Name]string {
		return map[upstream.Name]string{
			upstream.Settlement("2026-11-19"): "Product,Symbol,Expiration Date,Price\nVX,VX/Z6,2026-12-16,18.5\n",
			upstream.Quotes("_VIX"):           fmt.Sprintf(`{"timestamp":"2026-11-19 22:00:00","data":{"symbol":"^VIX","current_price":%s,"close":17,"last_trade_time":"2026-11-19T16:15:00"}}`, vix),
			upstream.History("_VIX3M"):        fmt.Sprintf(`{"data":[{"date":"2026-11-18","close":%s},{"date":"2026-11-19","close":19}]}`, close),
		}
	}
	for bad, documents := range map[bool]map[upstream.Name]string{false: curve("18", "19"), true: curve("1800", "0.1")} {
		in := &Inputs{calendar: calendar}
		in.parameters.StaleSessionsTo = new(compute.NewDate(2026, 11, 20))
		for _, name := range []upstream.Name{upstream.Settlement("2026-11-19"), upstream.Quotes("_VIX"), upstream.History("_VIX3M")} {
			d, err := feed.New(&upstream.Document{Name: name, Body: []byte(documents[name]), FileDate: "2026-11-19"})
			must(t, err)
			in.Documents = append(in.Documents, d)
		}
		must(t, in.addState(vixHistory, []compute.VIXHistory{}))
		a, err := Named(VIXResource).computed(in)
		must(t, err)
		quality, err := json.Marshal(a.quality)
		if has := strings.Contains(string(quality), `"bad_numbers":2`); err != nil || has != bad || strings.Contains(string(quality), "bad_numbers") != bad {
			t.Errorf("%v: quality %s, %v", documents, quality, err)
		}
	}
	fund := compute.Fund{
		Quote:  compute.UnderlyingQuote{AsOf: time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)},
		Closes: []compute.Close{{Date: compute.NewDate(2026, 11, 19), Price: 1}},
	}
	q := qualityOf("XLK", fund, compute.NewDate(2026, 11, 20), calendar, 3)
	if q.Note == nil || !strings.HasPrefix(*q.Note, "3 numbers count as absent") {
		t.Errorf("note %v", q.Note)
	}
}

// What fails while an answer is computed or encoded, also a panic, is an error that names the product and the step.
func TestAnAnswerThatFails(t *testing.T) {
	fill := func(variants map[string]*Variant, byDefault string, quality any) Computation {
		return func(a *Answer, _ *Inputs, _ *feed.Document) error {
			a.variants, a.byDefault, a.quality = variants, byDefault, quality
			return nil
		}
	}
	for want, fails := range map[string]Computation{
		"compute underlyings: x":                          func(*Answer, *Inputs, *feed.Document) error { return errors.New("x") },
		"compute underlyings: panic: x":                   func(*Answer, *Inputs, *feed.Document) error { panic("x") },
		"encode underlyings: quality: json":               fill(only(&compute.Gamma{}), "", func() {}),
		`encode underlyings: variant "": json`:            fill(only(&struct{ F func() }{}), "", 1),
		`encode underlyings: the default variant "20" is`: fill(only(&compute.Gamma{}), "20", nil),
	} {
		row := *Named(UnderlyingsResource).Row
		row.Compute = fails
		if _, err := row.of("").Answer(&Inputs{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A figure that is not finite is null in data, row and quality, and the quality names it once.
func TestNotFiniteIsNullWithAReason(t *testing.T) {
	bad := compute.Dollars(math.NaN())
	g := compute.Gamma{Net: &bad, ByExpiration: []compute.ExpirationGamma{{Exposures: compute.Exposures{Delta: new(compute.Dollars(math.Inf(1)))}}}, ByStrike: []compute.StrikeGamma{{Call: &bad}, {Call: &bad}}}
	a := &Answer{Product: Named(GammaResource), Inputs: &Inputs{}, variants: only(&g), quality: compute.GammaQuality{SpotGap: new(compute.Ratio(math.Inf(-1)))}}
	a.row = &seriesRow{Values: []any{g.Net}}
	must(t, a.encode())
	for text, want := range map[string]string{
		string(a.variants[""].JSON): `"net_gex_dollars":null,`, string(a.summary): `"row":[null,"gex/9","0001-01-01T00:00:00Z"]`,
		string(a.QualityJSON): `{"not_finite":["by_expiration.delta_dollars","by_strike.call_gex_dollars","net_gex_dollars","spot_gap_pct"],"contracts":{`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s in %.300s", want, text)
		}
	}
	a.variants, a.quality = only(&g), struct{}{}
	if err := a.encode(); err != nil || string(a.QualityJSON) != `{"not_finite":["by_expiration.delta_dollars","by_strike.call_gex_dollars","net_gex_dollars"]}` {
		t.Errorf("a quality without members: %v, %s", err, a.QualityJSON)
	}
	g, a.variants, a.quality = compute.Gamma{}, only(&g), compute.GammaQuality{}
	if err := a.encode(); err != nil || strings.Contains(string(a.QualityJSON), "not_finite") {
		t.Errorf("finite: %v, %s", err, a.QualityJSON)
	}
}

// The reason of a percentile that is null is the history, or that today's value is unknown.
func TestUnknownVIX(t *testing.T) {
	known := new(compute.Ratio(1))
	c := compute.VIXCurve{ContangoM1M2: known}
	c.Percentiles.ContangoM1M2.Percentile = known
	why := unknownVIX(&c, compute.NewDate(2026, 11, 20))
	if why["percentiles"] != "" || !strings.Contains(why["vix"], "percentile") {
		t.Errorf("without a close of VIX: %v", why)
	}
	c.SpotBasis = known
	if why = unknownVIX(&c, compute.NewDate(2026, 11, 20)); why["percentiles"] == "" {
		t.Errorf("with a short history: %v", why)
	}
}

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
		{"gex/{u}", "csv", `{"by_strike":[{"strike":5.5,"put_gex_dollars":-1,"call_volume":null}]}`, "strike,call_gex_dollars,put_gex_dollars,net_gex_dollars,call_open_interest,put_open_interest,call_volume,put_volume\r\n5.5,,-1,,,,,\r\n"},
		{"gex/{u}/levels", "csv", `{"symbol":"SPX","levels":[]}`, "name,label,price,distance_pct\r\n"},
		{"gex/{u}/levels", "csv", `{"levels":[{"price":1.5,"name":"n","more":{},"distance_pct":null}]}`, "name,label,price,distance_pct\r\nn,,1.5,\r\n"},
		{"gex/{u}/levels", "line", `{"symbol":"SPX","levels":[]}`, "$SPX: "},
		{"gex/{u}/levels", "line", `{"symbol":"XLE","levels":[{"label":"A B","price":45},{"label":"C","price":44.25}]}`, "$XLE: A B, 45, C, 44.25"},
		{"gex/{u}/strikes", "csv", `{"columns":["as_of"],"rows":[["T",99.5,[90,100],[-1,null],"strikes/1"]]}`, "as_of,effective_spot,strike,net_gex_dollars,method\r\nT,99.5,90,-1,strikes/1\r\nT,99.5,100,,strikes/1\r\n"},
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

func TestTrackHours(t *testing.T) {
	for asOf, want := range map[string]bool{
		"2026-11-20 09:29:59": false, "2026-11-20 09:30:00": true, "2026-11-20 12:00:00": true, "2026-11-20 16:00:00": true,
		"2026-11-20 16:15:00": true, "2026-11-20 16:15:01": false, "2026-11-20 23:00:00": false,
		"2026-11-27 13:00:00": true, "2026-11-27 13:15:00": true, "2026-11-27 13:15:01": false, // an early close
		"2026-11-21 12:00:00": false, "2026-11-26 12:00:00": false, // a Saturday, a holiday
	} {
		if got := InTrack(ny(t, asOf), calendar); got != want {
			t.Errorf("%s: %v, want %v", asOf, got, want)
		}
	}
}

// A track of more than 1,200 rows keeps every second row, the first and the last.
func TestTrackIsThinned(t *testing.T) {
	for n, want := range map[int]int{1200: 1200, 1201: 601, 1202: 602, 1300: 651, 2401: 1201/2 + 1} {
		rows := make([]json.RawMessage, n)
		for i := range rows {
			rows[i] = json.RawMessage(strconv.Itoa(i))
		}
		var got []int
		for _, row := range thinned(rows) {
			i, _ := strconv.Atoi(string(row))
			got = append(got, i)
		}
		if len(got) != want || got[0] != 0 || n > 1200 && got[1]%2 != 0 || got[len(got)-1] != n-1 || !slices.IsSorted(got) {
			t.Errorf("of %d rows %d stay, want %d: %v … %v", n, len(got), want, got[:3], got[len(got)-3:])
		}
	}
}

// A track that was thinned loses no rows, but one that lacks a part does.
func TestLosesRows(t *testing.T) {
	track := func(rows []json.RawMessage) *snapshots.Snapshot {
		data, err := json.Marshal(trackData{Rows: rows})
		must(t, err)
		s, err := snapshots.Seal(data, snapshots.Meta{AsOf: ny(t, "2026-11-20 16:00:00"), Quality: []byte("{}"), Endpoint: TrackResource})
		must(t, err)
		return s
	}
	rows := make([]json.RawMessage, 1201)
	for i := range rows {
		rows[i] = json.RawMessage(ny(t, "2026-11-20 09:30:00").Add(time.Duration(i) * 5 * time.Second).Format(`["2006-01-02T15:04:05Z"]`))
	}
	for _, c := range []struct {
		had, has []json.RawMessage
		loses    bool
	}{
		{rows[:1200], thinned(rows), false}, {rows[:1200], slices.Concat(rows[:900], rows[910:]), true},
		{rows[:500], rows[:501], false}, {rows[:500], rows[:499], true}, {rows[:500], rows[1:501], true}, {nil, rows[:1], false},
	} {
		if got := LosesRows(track(c.had), track(c.has)); got != c.loses {
			t.Errorf("%d rows after %d: %v", len(c.has), len(c.had), got)
		}
	}
}

// Rows that an earlier method made, with columns less, go on in the track of their session: the columns before method are null in them.
func TestRowsOfAnEarlierMethod(t *testing.T) {
	for name, c := range map[string]struct{ row, want string }{
		"gex/spx/strikes":  {`["T",1.5,[1,2,3,4],[5,null,7,8],"strikes/1"]`, `["T",1.5,[1,2,3,4],[5,null,7,8],null,null,"strikes/1"]`},
		"gex/spx/intraday": {`["T",1,2,3,4,5,6,"neutral",8,9,10,11,12,13,"track/3"]`, `["T",1,2,3,4,5,6,"neutral",8,9,10,11,12,13,null,null,"track/3"]`},
	} {
		p := Named(name)
		own, later := p.track, *p.track
		later.columns = slices.Insert(slices.Clone(own.columns), len(own.columns)-1, "new", "newer")
		for _, row := range []string{c.row, c.want} {
			for made, want := range map[*track]string{own: row, &later: c.want} {
				p.track = made
				if rows, err := p.TrackRows([]byte(`{"rows":[` + row + `]}`)); err != nil || len(rows) != 1 || string(rows[0]) != want {
					t.Errorf("%s, %v", rows, err)
				}
			}
		}
		p.track = own
	}
	want := `["d","s",1,2,3,4,5,6,7,8,9,10,"cboe",null,"gex/7","T"]`
	if got := padded([]byte(strings.Replace(want, ",null", "", 1)), seriesColumns); string(got) != want {
		t.Errorf("of a series: %s", got)
	}
}

// The strikes of a track are those nearest to the spot, and the first snapshot of each 5 minutes has a row.
func TestRowsOfStrikes(t *testing.T) {
	var rows []compute.StrikeGamma
	for k := compute.Level(90); k <= 110; k += 5 {
		rows = append(rows, compute.StrikeGamma{Strike: k})
	}
	for spot, want := range map[compute.Level]compute.Level{80: 90, 97.4: 90, 97.5: 90, 97.6: 95, 100: 95, 130: 100} {
		if got := nearest(rows, spot, 3); len(got) != 3 || got[0].Strike != want {
			t.Errorf("at %v: %v", spot, got)
		}
	}
	if got := nearest(rows, 80, 6); len(got) != 5 {
		t.Error(got)
	}
	for x, want := range map[compute.Dollars]string{0: "0", 12.4: "12", -123456: "-123000", 9.996e9: "10000000000", -1.115e3: "-1120"} {
		if got, err := json.Marshal(threeDigits(&x)); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v", x, got, err)
		}
	}
	p := Named("gex/spx/strikes")
	for asOf, want := range map[string]bool{"10:04:59": false, "10:05:00": true, "10:07:00": true, "10:01:00": false, "10:00:01": false} {
		if got := p.Apart(ny(t, "2026-11-20 10:00:01"), ny(t, "2026-11-20 "+asOf)); got != want {
			t.Errorf("%s: %v", asOf, got)
		}
	}
}
