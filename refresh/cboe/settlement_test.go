package cboe

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

func TestRecordedSettlement(t *testing.T) {
	body := recorded(t, "replay/settlement/2026-10-05.csv")
	rows, bad, err := DecodeSettlement(body)
	if err != nil || bad != 0 || len(rows) != 55 {
		t.Errorf("%d rows, %d bad, %v", len(rows), bad, err)
	}
}

// FuzzDecodeSettlement: in a file without quotation marks, the rows are those of lines cut at commas.
func FuzzDecodeSettlement(f *testing.F) {
	const header = "Product,Symbol,Expiration Date,Price\r\n"
	for _, price := range []string{"1", "1000", "0.99", "1000.01", "123456.5", "1000000", "1000001", "1042857132428570400", "-17", "0"} {
		f.Add([]byte(header + "VX,VX/V6,2026-10-21," + price + "\r\nPBT,PBT/Z35,2026-10-21," + price + "\r\nVX,VX/X6,2026-11-18,17\r\n"))
	}
	for _, s := range []string{
		header + "VX,VX/X6,2026-10-41,18\r\nVX,VX/X6,2026-11-18,x\r\nVX,VX/X6\r\nVX,VX/X6,2026-11-18,NaN\r\nVX,VX/F7,2027-01-20,17\r\n",
		header + strings.Repeat("VX,VX/V6,2026-10-21,17\r\n", maxSettlementRows+1), "", "<html>", "a,b\n",
		header + "VX,VX/V6,2026-10-21,17.4555\r\n", "\xef\xbb\xbf" + header + "VX,VX/V6,2026-10-21,17.4555*\n\r\n VX , VX40/V6 ,2026-10-07, 17 ,more\n", header, header + "VX,VX/V6,2026-10-21,17.4", header + "VX,\"VX/V6\",2026-10-21,1\n\"a\nb\",c,2026-10-21,2\n",
		header + "\"\n\n", header + "VX,V\"X,2026-02-30,1\nVX,X,2026-10-21,-1\nVX,X,2026-10-21,1e10\nVX,X,2026-10-21,0x10\n", "<html>\n", "Product,,,Price\n,,2026-01-01,1\n", header + ",\r,2026-01-01,1\r\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rows, bad, err := DecodeSettlement(body)
		for _, r := range rows {
			if !(r.Price >= 1e-6 && r.Price <= 1e6) || r.Product == "VX" && !(r.Price >= 1 && r.Price <= 1000) || r.Symbol != strings.TrimSpace(r.Symbol) {
				t.Errorf("row %+v", r)
			}
		}
		if err == nil && bytes.Count(body, []byte{'\n'}) < len(rows)+bad+1 {
			t.Errorf("%d rows and %d bad ones of %d lines", len(rows), bad, bytes.Count(body, []byte{'\n'}))
		}
		if bytes.IndexByte(body, '"') >= 0 {
			return
		}
		want, wantBad, wantErr := plainSettlement(strings.TrimPrefix(string(body), "\xef\xbb\xbf"))
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, want %v", err, wantErr)
		}
		if !slices.Equal(rows, want) || bad != wantBad {
			t.Errorf("%+v %d, want %+v %d", rows, bad, want, wantBad)
		}
	})
}

func plainSettlement(text string) (rows []compute.FuturesSettlement, bad int, err error) {
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		return nil, 0, ErrHTML
	}
	text, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return nil, 0, ErrMalformed
	}
	headed := false
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		fields := strings.Split(line, ",")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if !headed {
			if headed = len(fields) >= 4 && fields[0] == "Product" && fields[3] == "Price"; !headed {
				return nil, 0, ErrMalformed
			}
			continue
		}
		if len(rows)+bad == maxSettlementRows {
			return nil, 0, ErrMalformed
		}
		bad++
		if len(fields) < 4 || len(fields[2]) != 10 {
			continue
		}
		date, err := time.Parse(time.DateOnly, fields[2])
		price, priceErr := strconv.ParseFloat(strings.TrimSuffix(fields[3], "*"), 64)
		least, most := 1e-6, 1e6
		if fields[0] == "VX" {
			least, most = 1, 1000
		}
		if err == nil && priceErr == nil && price >= least && price <= most {
			bad--
			rows = append(rows, compute.FuturesSettlement{Product: fields[0], Symbol: fields[1], Expiration: compute.DateOf(date), Price: price})
		}
	}
	switch {
	case !headed:
		return nil, 0, ErrMalformed
	case len(rows) == 0:
		return nil, bad, ErrNoRows
	}
	return rows, bad, nil
}
