package product

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"github.com/goccy/go-json"

	"strikecache/snapshots"
)

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

// Rows that an earlier method made, with columns less, go on in the track of their session: the later columns are null in them.
func TestRowsOfAnEarlierMethod(t *testing.T) {
	const earlier = `{"date":"2026-11-20","session_date":"2026-11-20","columns":["as_of","spot","effective_spot","net_gex_dollars","zero_gamma_flip",` +
		`"call_wall","put_wall","gamma_regime","expected_move_1d","zero_dte_net_gex_dollars","zero_dte_gross_share_pct","flip_low","flip_high"],` +
		`"rows":[["2026-11-20T14:30:52Z",7551.86,7551.86,-8693514,7551.88,7700,7500,"neutral",69.61,6370763033,6.2332,7543.36,7575.67]]}`
	s, err := snapshots.Seal([]byte(earlier), snapshots.Meta{Quality: []byte("{}")})
	must(t, err)
	rows, err := TrackRows(s)
	if err != nil || len(rows) != 1 || !bytes.HasSuffix(rows[0], []byte(`,7543.36,7575.67,null,null]`)) || !json.Valid(rows[0]) {
		t.Errorf("%s, %v", rows, err)
	}
}
