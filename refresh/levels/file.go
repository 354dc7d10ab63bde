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

// encodeCSV encodes rows of JSON values as CSV, with a header, CRLF at each line end, and empty cells for null.
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

// encodeJSON encodes rows of JSON values as an array, with one object per line.
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

// record is a row as a file has it: a JSON value for each column.
type record struct {
	line  int
	cells []json.RawMessage
}

// decode decodes a file, which may be CSV or JSON, and returns its rows in the order of their dates. The error names the
// first bad cells.
func decode(b []byte, calendar *compute.Calendar, now time.Time) ([]row, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	read := readCSV
	if start := bytes.TrimLeft(b, " \t\r\n"); len(start) > 0 && (start[0] == '[' || start[0] == '{') {
		read = readJSON
	}
	records, err := read(b)
	if len(records) > maxRows {
		return nil, errTooManyRows
	}
	c := checker{calendar: calendar, now: now, lines: map[compute.Date]int{}}
	for _, r := range records {
		c.check(r)
	}
	if len(c.faults) > maxFaults {
		c.faults, err = c.faults[:maxFaults], errors.New("further errors are not listed")
	}
	if err := errors.Join(append(c.faults, err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(c.rows, func(a, b row) int { return int(a.date - b.date) })
	return c.rows, nil
}

// readCSV reads the records up to the first malformed one. The header must be as export writes it.
func readCSV(b []byte) (records []record, err error) {
	r := csv.NewReader(bytes.NewReader(b))
	header, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !slices.Equal(header, columnNames) {
		return nil, fmt.Errorf("line 1: the header must be %s", strings.Join(columnNames, ","))
	}
	for len(records) <= maxRows {
		texts, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return records, err // which names the line
		}
		cells := make([]json.RawMessage, len(columns))
		for i, text := range texts {
			cells[i] = columns[i].cell(text)
		}
		line, _ := r.FieldPos(0)
		records = append(records, record{line, cells})
	}
	return records, nil
}

// cell returns the JSON value of a CSV cell.
func (c column) cell(text string) json.RawMessage {
	switch {
	case text == "":
		return json.RawMessage("null")
	case c.isText:
		quoted, _ := json.Marshal(text) // a string always has a JSON form
		return quoted
	}
	return json.RawMessage(text)
}

// readJSON reads the objects of an array up to the first that does not have exactly the columns as its members.
func readJSON(b []byte) (records []record, err error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(b, &elements); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("line %d: %w", 1+newlines(b[:syntax.Offset]), err)
		}
		return nil, errors.New("line 1: the file is not an array of objects")
	}
	line := 1
	for _, element := range elements {
		start := bytes.Index(b, element)
		line += newlines(b[:start])
		cells, err := cellsOf(element)
		if err != nil {
			return records, fmt.Errorf("line %d: %w", line, err)
		}
		records = append(records, record{line, cells})
		line += newlines(element)
		b = b[start+len(element):]
	}
	return records, nil
}

func newlines(b []byte) int { return bytes.Count(b, []byte{'\n'}) }

// cellsOf returns the values of an object in the order of the columns.
func cellsOf(element json.RawMessage) ([]json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(element, &object); err != nil {
		return nil, errors.New("the element is not an object")
	}
	var cells []json.RawMessage
	for _, name := range columnNames {
		value, found := object[name]
		if !found {
			return nil, fmt.Errorf("the object has no %s", name)
		}
		cells = append(cells, value)
		delete(object, name)
	}
	for name := range object {
		return nil, fmt.Errorf("%.40q is not a column; the columns are %s", name, strings.Join(columnNames, ", "))
	}
	return cells, nil
}
