package cboe

import (
	"errors"
	"strings"
	"testing"

	"strikecache/bench/need"
	"strikecache/compute"
)

func TestDecodeHistory(t *testing.T) {
	body := `{"symbol":"XLK","data":[{"date":"1998-12-22","open":0.0,"high":0.0,"low":0.0,"close":0.0,"volume":0},` +
		`{"date":"2026-10-02","open":"1","high":"1","low":"1","close":"187.25","volume":"10"},` +
		`{"date":"2026-10-01","close":186.5},{"date":"2026-10-05","close":null},{"date":"x","close":1},{"close":2},7,` +
		`{"date":"2026-10-02","close":187.5}]}`
	got, err := DecodeHistory([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := []compute.Close{{Date: compute.NewDate(2026, 10, 1), Price: 186.5}, {Date: compute.NewDate(2026, 10, 2), Price: 187.5}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
	for text, want := range map[string]error{
		`<html>`: ErrHTML, `{"data":[]}`: ErrNoRows, `{}`: ErrNoRows, `{"data":[{"date":"2026-10-01","close":0}]}`: ErrNoRows,
		body[:len(body)-3]: ErrMalformed, ``: ErrMalformed,
		`{"data":[` + strings.Repeat(`{},`, maxHistoryRows) + `{}]}`: ErrMalformed,
	} {
		if _, err := DecodeHistory([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.40s: %v, want %v", text, err, want)
		}
	}
}

func TestDecodeSettlement(t *testing.T) {
	const header = "Product,Symbol,Expiration Date,Price\r\n"
	rows, bad, err := DecodeSettlement([]byte("\xef\xbb\xbf" + header + "VX,VX/V6,2026-10-21,17.4555*\r\n VX , VX40/V6 ,2026-10-07, 17.4555 \r\n" +
		"VX,VX/X6,2026-10-41,18\r\nVX,VX/X6,2026-11-18,x\r\nVX,VX/X6\r\nVX,VX/X6,2026-11-18,0\r\nVX,VX/X6,2026-11-18,NaN\r\n"))
	if err != nil || bad != 5 || len(rows) != 2 {
		t.Fatalf("rows %v, bad %d, %v", rows, bad, err)
	}
	want := compute.FuturesSettlement{Product: "VX", Symbol: "VX/V6", Expiration: compute.NewDate(2026, 10, 21), Price: 17.4555}
	if rows[0] != want || rows[1].Symbol != "VX40/V6" {
		t.Errorf("got %+v", rows)
	}
	for text, want := range map[string]error{
		header: ErrNoRows, "": ErrMalformed, "<html>": ErrHTML, "a,b\n": ErrMalformed,
		header + "VX,VX/V6,2026-10-21,17.4":                                        ErrMalformed, // cut off in the price
		header + strings.Repeat("VX,VX/V6,2026-10-21,17\r\n", maxSettlementRows+1): ErrMalformed,
	} {
		if _, _, err := DecodeSettlement([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", text, err, want)
		}
	}
}

func TestRecordedSettlement(t *testing.T) {
	body := need.Document(t, "replay/settlement/2026-10-05.csv")
	rows, bad, err := DecodeSettlement(body)
	if err != nil || bad != 0 || len(rows) != 55 {
		t.Errorf("%d rows, %d bad, %v", len(rows), bad, err)
	}
}
