package product

import (
	"bytes"
	"crypto/sha256"
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

// alteration replaces the first match of a pattern in the data, or with a pattern that begins with "meta:" in the rest of an answer.
// names are those of the figures that then differ.
type alteration struct {
	resource, pattern, with string
	names                   []string
}

// alter returns an answer with an altered figure. The digest of the data is then corrected, as if a server had computed something else.
func alter(t testing.TB, s *snapshots.Snapshot, c alteration) []byte {
	t.Helper()
	body, data := s.Body(snapshots.Identity), s.Data()
	pattern, meta := strings.CutPrefix(c.pattern, "meta:")
	part := data
	if meta {
		part = body
	}
	at := regexp.MustCompile(pattern).FindIndex(part)
	if at == nil {
		t.Errorf("%s: %s does not occur in %.3000s", c.resource, c.pattern, part)
		return body
	}
	altered := slices.Concat(part[:at[0]], []byte(c.with), part[at[1]:])
	if bytes.Equal(altered, part) {
		t.Errorf("%s: %s changes nothing", c.resource, c.pattern)
	}
	if meta {
		return altered
	}
	digest := func(b []byte) []byte { return fmt.Appendf(nil, "%x", sha256.Sum256(b)) }
	return bytes.ReplaceAll(bytes.Replace(body, data, altered, 1), digest(data), digest(altered))
}

// In an answer of every resource, each altered figure, digest or document is found and named, and nothing else. Each alteration is of
// an answer that otherwise agrees.
func TestFaultAlteredAnswersAreNotVerified(t *testing.T) {
	long(t)
	t.Parallel()
	a, sealed := newAnswers(t), map[string]*snapshots.Snapshot{}
	seal := func(resource string, inputs ...madeInput) (row madeInput) {
		sealed[resource], row = a.sealRow(resource, 0.04, inputs...)
		return row
	}
	var now madeInput
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
			continue
		}
		seal("gex/spx/matrix", now)
		seal("gex/spx/levels", now)
		seal("gex/spx/intraday", now, madeInput{Name: "state/track-rows", Body: []byte(`[["2026-11-20T15:00:00Z",7500,7500,1,2,3,4,"neutral",5,6,7,8,9,10]]`)})
		seal("gex/spx/series", now, rows)
		rows = seal("volatility/spx", now, madeInput{Name: "state/volatility-history", Body: []byte(`[{"session":"2026-11-19","close":7480,"atm_30d":15.5}]`)})
		seal("volatility/spx/series", now, rows)
		seal("spx-max-pain", now)
		seal(FlowResource, now, before)
		seal(UnderlyingsResource, underlyingsStateOf(t, "SPX", sealed["gex/spx"], sealed["volatility/spx"]))
	}
	sealed[SectorsResource] = a.rotation(rand.New(rand.NewPCG(51, 10)), day)
	sealed[VIXResource] = a.curve(rand.New(rand.NewPCG(51, 10)), compute.DateOf(day))
	for _, c := range alterations {
		a.add(c.resource, alter(t, sealed[c.resource], c), c.names...)
	}
	a.verify()
	t.Logf("figure: %d alterations of answers: the second program names what differs", len(alterations))

	// A document with one digit more is another document.
	b := newAnswers(t)
	b.seal("spx-max-pain", 0, now)
	b.expected[b.files[0]] = []string{"§0 input options/_SPX.json"}
	b.write(fmt.Sprintf("%x", sha256.Sum256(now.Body)), bytes.Replace(now.Body, []byte(`"open_interest":`), []byte(`"open_interest":1`), 1))
	b.verify()
}

var alterations = []alteration{
	// gex/{u}
	{"gex/spx", `meta:"data_sha256":"....`, `"data_sha256":"0000`, []string{"§0 data_sha256"}},
	{"gex/spx", `meta:"input_sha256":\["....`, `"input_sha256":["0000`, []string{"§0 input_sha256"}},
	{"gex/spx", `"symbol":"SPX"`, `"symbol":"XSP"`, []string{"§0 symbol"}},
	{"gex/spx", `"spot":7`, `"spot":8`, []string{"§0 spot"}},
	{"gex/ndx", `"spot_source":"index"`, `"spot_source":"implied"`, []string{"§1.0 spot_source"}},
	{"gex/spx", `"spot_change_pct":0.5`, `"spot_change_pct":0.51`, []string{"§1.0 spot_change_pct"}},
	{"gex/spx", `"effective_spot":7503`, `"effective_spot":7000`, []string{"§1.0 effective_spot"}},
	{"gex/spx", `"net_gex_dollars":1`, `"net_gex_dollars":2`, []string{"§1.3 net_gex_dollars"}},
	{"gex/spx", `"call_gex_dollars":1`, `"call_gex_dollars":2`, []string{"§1.3 call_gex_dollars"}},
	{"gex/spx", `"put_gex_dollars":-1`, `"put_gex_dollars":-2`, []string{"§1.3 put_gex_dollars"}},
	{"gex/spx", `"gross_gex_dollars":2`, `"gross_gex_dollars":3`, []string{"§1.3 gross_gex_dollars"}},
	{"gex/spx", `"gamma_tilt":1`, `"gamma_tilt":9`, []string{"§1.3 gamma_tilt"}},
	{"gex/spx", `"zero_gamma_flip":7486.57,"flip_status"`, `"zero_gamma_flip":7400,"flip_status"`, []string{"§1.2 zero_gamma_flip"}},
	{"gex/spx", `"zero_gamma_flip":7486.57,"flip_status":"found"`, `"zero_gamma_flip":null,"flip_status":"none_all_positive"`, []string{"§1.2 zero_gamma_flip", "§1.2 flip_status"}},
	{"gex/spx", `"flip_status":"found"`, `"flip_status":"multiple"`, []string{"§1.2 flip_status"}},
	{"gex/spx", `"flip_distance_pct":0`, `"flip_distance_pct":9`, []string{"§1.3 flip_distance_pct"}},
	{"gex/spx", `"flips":\[\{"price":7486.57`, `"flips":[{"price":7486.5`, []string{"§1.2 flips[0].price", "§1.2 flips[0], which is no root"}},
	{"gex/spx", `"direction":"negative_to_positive"`, `"direction":"positive_to_negative"`, []string{"§1.2 flips[0].direction"}},
	{"gex/spx", `"flip_band":\{"low":\d+`, `"flip_band":{"low":1`, []string{"§1.2 flip_band.low"}},
	{"gex/spx", `"vol_down_10","zero_gamma_flip":7487`, `"vol_down_10","zero_gamma_flip":7488`, []string{"§1.2 vol_down_10.zero_gamma_flip"}},
	{"gex/spx", `("within_90_days","zero_gamma_flip":[\d.]+,"net_gex_dollars":)\d`, `"within_90_days","zero_gamma_flip":null,"net_gex_dollars":9`, []string{"§1.2 within_90_days.net_gex_dollars", "§1.2 within_90_days.zero_gamma_flip"}},
	{"gex/spx", `"gamma_regime":"[a-z]+"`, `"gamma_regime":"unknown"`, []string{"§1.3 gamma_regime"}},
	{"gex/spx", `"call_wall":\d+`, `"call_wall":1`, []string{"§1.3 call_wall"}},
	{"gex/spx", `"put_wall":\d+`, `"put_wall":1`, []string{"§1.3 put_wall"}},
	{"gex/spx", `"vol_trigger":[\d.]+`, `"vol_trigger":7550`, []string{"§1.3 vol_trigger"}},
	{"gex/spx", `"abs_gamma_strike":\d+`, `"abs_gamma_strike":1`, []string{"§1.3 abs_gamma_strike"}},
	{"gex/spx", `"by_side":\{"call":\d+`, `"by_side":{"call":1`, []string{"§1.3 walls.by_side"}},
	{"gex/spx", `"zero_dte":\{"net_gex_dollars":-?\d+`, `"zero_dte":{"net_gex_dollars":1`, []string{"§1.3 zero_dte.net_gex_dollars"}},
	{"gex/spx", `"contracts":82`, `"contracts":83`, []string{"§1.3 zero_dte.contracts"}},
	{"gex/spx", `"expected_move_1d":76.56`, `"expected_move_1d":76.59`, []string{"§1.3 expected_move_1d"}},
	{"gex/spx", `"oi_settle_date":"2026-11-19"`, `"oi_settle_date":"2026-11-18"`, []string{"§1.3 oi_settle_date"}},
	{"gex/spx", `"oi_state":"settled"`, `"oi_state":"updating"`, []string{"§1.3 oi_state"}},
	{"gex/spx", `"contracts_analyzed":656`, `"contracts_analyzed":655`, []string{"§1.3 contracts_analyzed"}},
	{"gex/spx", `"published_gamma","net_gex_dollars":-?\d`, `"published_gamma","net_gex_dollars":999999`, []string{"§1.3 published_gamma.net_gex_dollars"}},
	{"gex/spx", `"perfiliev","net_gex_dollars":-?\d+`, `"perfiliev","net_gex_dollars":1`, []string{"§1.3 perfiliev.net_gex_dollars"}},
	{"gex/spx", `("volume_weighted","net_gex_dollars":-?\d+,"zero_gamma_flip":)[\d.]+`, `"volume_weighted","net_gex_dollars":1,"zero_gamma_flip":7000`, []string{"§1.3 volume_weighted.net_gex_dollars", "§1.3 volume_weighted.zero_gamma_flip"}},
	{"gex/spx", `"delta_dollars":`, `"delta_dollars":1`, []string{"§1.4 delta_dollars"}},
	{"gex/spx", `"charm_dollars_per_day":-?\d`, `"charm_dollars_per_day":99`, []string{"§1.4 charm_dollars_per_day"}},
	{"gex/spy", `"time":-?\d`, `"time":99`, []string{"§1.5 net_gex_dollars.time"}},
	{"gex/spx", `"flip":\{"from":\d+`, `"flip":{"from":1`, []string{"§1.5 flip.from"}},
	{"gex/spx", `"open_interest_changes":\[\{"contract":"SPX`, `"open_interest_changes":[{"contract":"XPX`, []string{"§1.5 open_interest_changes"}},
	{"gex/spx", `"gross_gex_dollars":\d+,"gross_share_pct":\d`, `"gross_gex_dollars":1,"gross_share_pct":99`,
		[]string{"§1.3 by_expiration[2026-11-20 pm].gross_gex_dollars", "§1.3 by_expiration[2026-11-20 pm].gross_share_pct"}},
	{"gex/spx", `"forward":75`, `"forward":76`, []string{"§1.3 by_expiration[2026-11-20 pm].forward"}},
	{"gex/spx", `"profile":\[\{"spot":\d`, `"profile":[{"spot":9`, []string{"§1.3 profile[-60].spot"}},
	{"gex/spx", `("spot":7503.25,"net_gex_dollars":)\d+\},`, `"spot":7503.25,"net_gex_dollars":1},`, []string{"§1.3 profile[0].net_gex_dollars"}},
	{"gex/spx", `"strike":7500,"call_gex_dollars":\d`, `"strike":7500,"call_gex_dollars":99`, []string{"§1.3 by_strike[7500.0].call_gex_dollars"}},
	{"gex/spx", `meta:"used":656`, `"used":655`, []string{"§1.7 used"}},
	{"gex/spx", `meta:"settled":\d+`, `"settled":7`, []string{"§1.7 skipped.settled"}},
	{"gex/spx", `meta:"open_interest_pct":\d`, `"open_interest_pct":9`, []string{"§1.7 volatility[implied].open_interest_pct"}},
	{"gex/spx", `meta:"two_sided_quote_pct":\d`, `"two_sided_quote_pct":9`, []string{"§1.7 two_sided_quote_pct"}},
	{"gex/spx", `meta:"parity":8`, `"parity":7`, []string{"§1.7 forwards"}},
	{"gex/spx", `meta:"median":`, `"median":1`, []string{"§1.7 published_gamma_difference.median"}},
	{"gex/spx", `meta:"quote_age_seconds":900`, `"quote_age_seconds":901`, []string{"§1.7 quote_age_seconds"}},
	{"gex/spx", `meta:"spot_gap_pct":`, `"spot_gap_pct":1`, []string{"§1.0 spot_gap_pct"}},
	{"gex/spx", `meta:"calendar":null`, `"calendar":"none"`, []string{"§1.7 calendar"}},
	{"gex/spy", `meta:"gross_beyond_60_days_pct":\d`, `"gross_beyond_60_days_pct":99`, []string{"§1.8 gross_beyond_60_days_pct"}},
	{"gex/spy", `meta:"exercise_note":"`, `"exercise_note":"An ex-dividend date seems to lie before 2026-11-27 by more than that. `, []string{"§1.8 ex-dividend date"}},
	{"gex/spx", `meta:"as_of":"2026-11-20T16:00:00Z"`, `"as_of":"2026-11-20T16:00:01Z"`, []string{"§0 as_of"}},
	// gex/{u}/matrix, levels, intraday and series
	{"gex/spx/matrix", `"strike":7500,"call_gex_dollars":\d`, `"strike":7500,"call_gex_dollars":99`, []string{"§1.6 zero_dte[7500.0].call_gex_dollars"}},
	{"gex/spx/matrix", `"net_gex_dollars":\[\[-?\d+`, `"net_gex_dollars":[[null`, []string{"§1.6 2026-11-20 pm[7000.0].cell"}},
	{"gex/spx/matrix", `"to":"2026-11-20"`, `"to":"2026-11-21"`, []string{"§1.6 parts"}},
	{"gex/spx/levels", `"price":7775`, `"price":7800`, []string{"§1.10 abs_gamma_strike.price"}},
	{"gex/spx/levels", `"distance_pct":1.0204`, `"distance_pct":1.0234`, []string{"§1.10 expected_high_1d.distance_pct"}},
	{"gex/spx/levels", `"name":"max_pain"`, `"name":"mac_pain"`, []string{"§1.10 max_pain.price", "§1.10 unknown names", "§1.10 mac_pain.distance_pct", "§1.10 names of the future"}},
	{"gex/spx/levels", `"forward":7514`, `"forward":7515`, []string{"§1.10 forward"}},
	{"gex/spx/levels", `"price":7787`, `"price":7787.25`, []string{"§1.10 ES abs_gamma_strike"}},
	{"gex/spx/intraday", `"neutral",5`, `"neutral",6`, []string{"§2 rows before the newest"}},
	{"gex/spx/intraday", `7486.57`, `7486.5`, []string{"§2 newest row, zero_gamma_flip"}},
	{"gex/spx/intraday", `"positive",76.56`, `"negative",76.8`, []string{"§2 newest row, expected_move_1d", "§2 newest row, gamma_regime"}},
	{"gex/spx/intraday", `7493.56`, `7493.6`, []string{"§2 newest row, flip_high"}},
	{"gex/spx/series", `"positive"`, `"negative"`, []string{"§2 rows"}},
	{"volatility/spx/series", `16.0027`, `16.0028`, []string{"§2 rows"}},
	{"underlyings", `"gross_gex_dollars":2`, `"gross_gex_dollars":3`, []string{"§1.9 rows", "§1.9 SPX, gamma"}},
	{"underlyings", `"atm_30d":1`, `"atm_30d":2`, []string{"§1.9 rows", "§1.9 SPX, volatility"}},
	// volatility/{u}
	{"volatility/spx", `"atm_30d":16`, `"atm_30d":17`, []string{"§1.11 atm_30d"}},
	{"volatility/spx", `"sessions":\d`, `"sessions":9`, []string{"§1.11 sessions"}},
	{"volatility/spx", `"butterfly_10":-?\d`, `"butterfly_10":9`, []string{"§1.11 expirations[2026-11-27 pm].butterfly_10"}},
	{"volatility/spx", `"model_free_30d":null`, `"model_free_30d":17`, []string{"§1.11 model_free_30d"}},
	{"volatility/spx", `meta:"rank_1y":"few_sessions"`, `"rank_1y":"no_range"`, []string{"§1.11 unknown"}},
	// {u}-max-pain
	{"spx-max-pain", `"max_pain":\d+`, `"max_pain":7000`, []string{"§4 max_pain"}},
	{"spx-max-pain", `"max_pain_range":\[7500`, `"max_pain_range":[7475`, []string{"§4 max_pain_range"}},
	{"spx-max-pain", `"flatness":\{"low":7475`, `"flatness":{"low":7500`, []string{"§4 flatness"}},
	{"spx-max-pain", `"put_payout_dollars":\d`, `"put_payout_dollars":99`, []string{"§4 payout_curve[7000.0].put_payout_dollars"}},
	{"spx-max-pain", `"open_interest":\[\{"strike":\d`, `"open_interest":[{"strike":9`, []string{"§4 open_interest"}},
	{"spx-max-pain", `"expirations":\[\{"expiration":"2026-11-20","settlement":"pm"`, `"expirations":[{"expiration":"2026-11-20","settlement":"am"`,
		[]string{"§4 expirations[2026-11-20].settlement"}},
	// options/flow/unusual
	{"options/flow/unusual", `"score":48,"band":"notable"`, `"score":48.1,"band":"notable"`, []string{"§5 items[SPXW270115C07500000].score"}},
	{"options/flow/unusual", `"band":"notable"`, `"band":"extreme"`, []string{"§5 items[SPXW270115C07500000].band"}},
	{"options/flow/unusual", `"side":"unknown"`, `"side":"ask"`, []string{"§5 items[SPXW270115C07500000].side"}},
	{"options/flow/unusual", `"quote_location":[\d.]+`, `"quote_location":14`, []string{"§5 components[SPXW270115C07500000].quote_location"}},
	{"options/flow/unusual", `"iv_change":0.1,"delta"`, `"iv_change":0.11,"delta"`, []string{"§5 items[SPXW270115C07500000].iv_change"}},
	{"options/flow/unusual", `"VOL_OI 8.1x"`, `"VOL_OI 8.2x"`, []string{"§5 reasons"}},
	{"options/flow/unusual", `"low_volume":`, `"low_volume":1`, []string{"§5 rejected.low_volume"}},
	{"options/flow/unusual", `\{"id":"2026-11-20:SPXW270115C07500000".*?\},"quality":1,"reasons":\[[^\]]*\]\},`, ``, []string{"§5 count", "§5 items that are left out"}},
	{"options/flow/unusual", `meta:"eligible":`, `"eligible":1`, []string{"§5 chains[SPX].eligible"}},
	// sectors/rotation
	{"sectors/rotation", `"quarter":-?\d`, `"quarter":99`, []string{"§3 benchmark.quarter"}},
	{"sectors/rotation", `"rank":\{"day":\d`, `"rank":{"day":11`, []string{"§3 sectors[XLC].day rank"}},
	{"sectors/rotation", `"rs_momentum":\d`, `"rs_momentum":29`, []string{"§3 sectors[XLC].rs_momentum"}},
	{"sectors/rotation", `"return_pct":-?\d`, `"return_pct":99`, []string{"§3 leaders[XLC].return_pct"}},
	{"sectors/rotation", `"advancing":\d`, `"advancing":99`, []string{"§3 breadth.advancing"}},
	{"sectors/rotation", `"stdev_pct":\d`, `"stdev_pct":99`, []string{"§3 dispersion.stdev_pct"}},
	{"sectors/rotation", `"missing":\[("[A-Z]+")?`, `"missing":["XLQ"`, []string{"§3 missing"}},
	// vix-term-structure
	{"vix-term-structure", `"settlement":\d`, `"settlement":9`, []string{"§6 curve[VX/Z6].settlement"}},
	{"vix-term-structure", `"contango_m1_m2_pct":-?\d`, `"contango_m1_m2_pct":99`, []string{"§6 contango_m1_m2_pct", "§6 percentiles.contango_m1_m2_pct"}},
	{"vix-term-structure", `"shape":"[a-z]+"`, `"shape":"none"`, []string{"§6 shape"}},
	{"vix-term-structure", `"regime":"[a-z_]+"`, `"regime":"none"`, []string{"§6 regime"}},
	{"vix-term-structure", `"cm30":\d`, `"cm30":9`, []string{"§6 cm30"}},
	{"vix-term-structure", `"n":\d`, `"n":9`, []string{"§6 percentiles.contango_m1_m2_pct.n"}},
	{"vix-term-structure", `"value":\d`, `"value":9`, []string{"§6.2 vix3m.value"}},
	{"vix-term-structure", `"stale_sessions":\d`, `"stale_sessions":9`, []string{"§6 stale_sessions"}},
}
