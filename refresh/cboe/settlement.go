package cboe

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"strikecache/compute"
)

// ErrNoRows is the error of a well-formed document without a usable row, such as a header alone or an empty history.
var ErrNoRows = errors.New("document has no rows")

// maxSettlementRows bounds a settlement file; a real one has 55 rows.
const maxSettlementRows = 5_000

// DecodeSettlement decodes a daily settlement file, Product,Symbol,Expiration Date,Price, of all products. It accepts a byte
// order mark, and a star after a price. Rows that cannot be read are left out and counted. The error of a file without rows
// is ErrNoRows: the date is a holiday, or its file is not published yet. A file whose last line has no line end was cut off,
// perhaps within a price: it is ErrMalformed.
func DecodeSettlement(body []byte) (rows []compute.FuturesSettlement, bad int, err error) {
	if body, err = textOf(body); err != nil {
		return nil, 0, fmt.Errorf("decode settlement: %w", err)
	}
	if !bytes.HasSuffix(body, []byte("\n")) {
		return nil, 0, fmt.Errorf("decode settlement: %w: cut off", ErrMalformed)
	}
	r := csv.NewReader(bytes.NewReader(body))
	r.FieldsPerRecord = -1
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil || len(header) < 4 || strings.TrimSpace(header[0]) != "Product" || strings.TrimSpace(header[3]) != "Price" {
		return nil, 0, fmt.Errorf("decode settlement: %w: no header", ErrMalformed)
	}
	for {
		record, err := r.Read()
		if err == io.EOF {
			break
		}
		if len(rows)+bad >= maxSettlementRows {
			return nil, 0, fmt.Errorf("decode settlement: %w: over %d rows", ErrMalformed, maxSettlementRows)
		}
		row, ok := settlementRow(record)
		if err != nil || !ok {
			bad++
			continue
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, bad, fmt.Errorf("decode settlement: %w", ErrNoRows)
	}
	return rows, bad, nil
}

func settlementRow(record []string) (row compute.FuturesSettlement, ok bool) {
	if len(record) < 4 {
		return row, false
	}
	for i := range record {
		record[i] = strings.TrimSpace(record[i])
	}
	date, err := compute.ParseDate(record[2])
	price, err2 := strconv.ParseFloat(strings.TrimSuffix(record[3], "*"), 64)
	kind := compute.Price
	if record[0] == "VX" {
		kind = compute.VolatilityPrice
	}
	row = compute.FuturesSettlement{Product: record[0], Symbol: record[1], Expiration: date, Price: price}
	return row, err == nil && err2 == nil && !math.IsNaN(kind.Usable(price))
}
