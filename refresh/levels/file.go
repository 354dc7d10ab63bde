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
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = true
	if err := w.Write(names()); err != nil {
		return nil, err
	}
	cells := make([]string, len(columns))
	for _, row := range rows {
		for i, value := range row {
			switch {
			case string(value) == "null":
				cells[i] = ""
			case value[0] != '"':
				cells[i] = string(value)
			default:
				if err := json.Unmarshal(value, &cells[i]); err != nil {
					return nil, err
				}
			}
		}
		if err := w.Write(cells); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return out.Bytes(), w.Error()
}

// encodeJSON writes rows of JSON values as an array, an object a line.
func encodeJSON(rows [][]json.RawMessage) []byte {
	out, between := []byte("["), "\n"
	for _, row := range rows {
		out = appendObject(append(out, between...), names(), row)
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
	checker := checker{calendar: calendar, now: now, lines: map[compute.Date]int{}}
	var rows []row
	var faults []error
	err := read(b, func(line int, cells []cell) error {
		r, bad := checker.check(line, cells)
		rows, faults = append(rows, r), append(faults, bad...)
		switch {
		case len(faults) > maxFaults:
			return errors.New("further errors are not listed")
		case len(rows) > maxRows:
			return faultAt(line, "", errTooManyRows)
		}
		return nil
	})
	if err := errors.Join(append(faults[:min(len(faults), maxFaults)], err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return int(a.date - b.date) })
	return rows, nil
}

// readCSV calls visit for every record but the header, which must be as export writes it.
func readCSV(b []byte, visit func(line int, cells []cell) error) error {
	r := csv.NewReader(bytes.NewReader(b))
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !slices.Equal(header, names()) {
		return faultAt(1, "", fmt.Errorf("the header must be %s", strings.Join(names(), ",")))
	}
	cells := make([]cell, len(columns))
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err // it names the line
		}
		for i, value := range record {
			cells[i] = cell{value: value, null: value == "", text: true, number: true}
		}
		line, _ := r.FieldPos(0)
		if err := visit(line, cells); err != nil {
			return err
		}
	}
}

// jsonReader reads an array of flat objects and knows in which line it is.
type jsonReader struct {
	*json.Decoder
	text []byte
	line int
	end  int64 // of the last token
}

// readJSON calls visit for every object, which must have every column once and nothing else.
func readJSON(b []byte, visit func(line int, cells []cell) error) error {
	r := &jsonReader{Decoder: json.NewDecoder(bytes.NewReader(b)), text: b, line: 1}
	r.UseNumber()
	if err := r.expect('['); err != nil {
		return err
	}
	cells := make([]cell, len(columns))
	for r.More() {
		line, err := r.object(cells)
		if err == nil {
			err = visit(line, cells)
		}
		if err != nil {
			return err
		}
	}
	if err := r.expect(']'); err != nil {
		return err
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return faultAt(r.line, "", errors.New("the file goes on after the end of the array"))
	}
	return nil
}

// next returns the next token.
func (r *jsonReader) next() (json.Token, error) {
	token, err := r.Token()
	end := min(r.InputOffset(), int64(len(r.text)))
	r.line += bytes.Count(r.text[r.end:end], []byte{'\n'})
	r.end = end
	if err != nil {
		return nil, faultAt(r.line, "", err)
	}
	return token, nil
}

func (r *jsonReader) expect(want json.Delim) error {
	token, err := r.next()
	if err == nil && token != want {
		err = faultAt(r.line, "", fmt.Errorf("found %.40q, want %v of an array of objects", fmt.Sprint(token), want))
	}
	return err
}

// object reads an object into cells, in the order of the columns, and returns the line in which it begins.
func (r *jsonReader) object(cells []cell) (line int, err error) {
	if err := r.expect('{'); err != nil {
		return 0, err
	}
	line = r.line
	seen := make([]bool, len(columns))
	for r.More() {
		token, err := r.next()
		if err != nil {
			return 0, err
		}
		name, _ := token.(string)
		i := slices.Index(names(), name)
		switch {
		case i < 0:
			return 0, faultAt(r.line, "", fmt.Errorf("%.40q is not a column; the columns are %s", name, strings.Join(names(), ", ")))
		case seen[i]:
			return 0, faultAt(r.line, name, errors.New("the object has this column twice"))
		}
		seen[i] = true
		if cells[i], err = r.scalar(name); err != nil {
			return 0, err
		}
	}
	if err := r.expect('}'); err != nil {
		return 0, err
	}
	if i := slices.Index(seen, false); i >= 0 {
		return 0, faultAt(r.line, columns[i].name, errors.New("the object does not have this column"))
	}
	return line, nil
}

func (r *jsonReader) scalar(column string) (cell, error) {
	token, err := r.next()
	if err != nil {
		return cell{}, err
	}
	switch v := token.(type) {
	case nil:
		return cell{null: true}, nil
	case string:
		return cell{value: v, text: true}, nil
	case json.Number:
		return cell{value: v.String(), number: true}, nil
	}
	return cell{}, faultAt(r.line, column, fmt.Errorf("found %v, want a string, a number or null", token))
}
