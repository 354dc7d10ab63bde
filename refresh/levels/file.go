package levels

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"strikecache/compute"
)

const (
	// maxBytes and maxRows bound a file. A row takes about 130 bytes in CSV and 330 in JSON, and 250 rows make a year.
	maxBytes = 16 << 20
	maxRows  = 20_000
	// maxFaults is how many bad cells are named.
	maxFaults = 20
)

var errTooManyRows = fmt.Errorf("over %d rows", maxRows)

// encodeCSV writes rows of JSON values: a header, lines that end in CRLF, null as an empty cell.
func encodeCSV(rows [][]json.RawMessage) ([]byte, error) {
	records := [][]string{columnNames}
	for _, row := range rows {
		record := make([]string, len(row))
		for i, value := range row {
			if string(value) != "null" {
				record[i] = strings.Trim(string(value), `"`) // no value has an escape
			}
		}
		records = append(records, record)
	}
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	err := w.WriteAll(records)
	return out.Bytes(), err
}

// encodeJSON writes rows of JSON values as an array, an object a line.
func encodeJSON(rows [][]json.RawMessage) []byte {
	out, between := []byte("["), "\n"
	for _, row := range rows {
		out = appendObject(append(out, between...), columnNames, row)
		between = ",\n"
	}
	if len(rows) > 0 {
		out = append(out, '\n')
	}
	return append(out, "]\n"...)
}

// appendObject appends a JSON object of the given members.
func appendObject(b []byte, names []string, values []json.RawMessage) []byte {
	between := byte('{')
	for i, name := range names {
		b = fmt.Appendf(append(b, between), "%q:%s", name, values[i])
		between = ','
	}
	return append(b, '}')
}

// decode reads a file in CSV or JSON, whichever it is, and returns its rows in the order of their dates. The error names
// the first bad cells.
func decode(b []byte, calendar *compute.Calendar, now time.Time) ([]row, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	read := readCSV
	if start := bytes.TrimLeft(b, " \t\r\n"); len(start) > 0 && (start[0] == '[' || start[0] == '{') {
		read = readJSON
	}
	c := checker{calendar: calendar, now: now, lines: map[compute.Date]int{}}
	err := read(b, c.check)
	if err := errors.Join(append(c.faults, err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(c.rows, func(a, b row) int { return int(a.date - b.date) })
	return c.rows, nil
}

// readCSV calls visit for every record but the header, which must be as export writes it.
func readCSV(b []byte, visit func(line int, cells []any) error) error {
	r := csv.NewReader(bytes.NewReader(b))
	header, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !slices.Equal(header, columnNames) {
		return faultAt(1, "", fmt.Errorf("the header must be %s", strings.Join(columnNames, ",")))
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // it names the line
		}
		cells := make([]any, len(columns))
		for i, text := range record {
			switch {
			case text == "":
			case columns[i].isText:
				cells[i] = text
			default:
				cells[i] = json.Number(text)
			}
		}
		line, _ := r.FieldPos(0)
		if err := visit(line, cells); err != nil {
			return err
		}
	}
}

// readJSON calls visit for every object of an array. An object must have every column once and nothing else.
func readJSON(b []byte, visit func(line int, cells []any) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	line, counted := 1, int64(0)
	here := func() int {
		line += bytes.Count(b[counted:d.InputOffset()], []byte{'\n'})
		counted = d.InputOffset()
		return line
	}
	if token, err := d.Token(); err != nil || token != json.Delim('[') {
		return faultAt(here(), "", errors.New("the file is not an array of objects"))
	}
	for d.More() {
		if token, err := d.Token(); err != nil || token != json.Delim('{') {
			return faultAt(here(), "", errors.New("an element is not an object"))
		}
		start := here()
		cells, column, err := readObject(d)
		if err != nil {
			return faultAt(here(), column, err)
		}
		if err := visit(start, cells); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return faultAt(here(), "", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return faultAt(here(), "", errors.New("something follows the array"))
	}
	return nil
}

// readObject reads an object behind its brace and returns its values in the order of the columns. An error is of a column,
// or of the whole object.
func readObject(d *json.Decoder) (cells []any, column string, err error) {
	cells = make([]any, len(columns))
	missing := slices.Clone(columnNames)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, "", err
		}
		name := token.(string) // a key
		i, left := slices.Index(columnNames, name), slices.Index(missing, name)
		switch {
		case i < 0:
			return nil, "", fmt.Errorf("%.40q is no column; these are %s", name, strings.Join(columnNames, ", "))
		case left < 0:
			return nil, name, errors.New("it stands twice in one object")
		}
		missing = slices.Delete(missing, left, left+1)
		if err := d.Decode(&cells[i]); err != nil {
			return nil, name, err
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, "", err
	}
	if len(missing) > 0 {
		return nil, missing[0], errors.New("the object does not have it")
	}
	return cells, "", nil
}
