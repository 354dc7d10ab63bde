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

// row is a row of a file, all of its values checked. A column without a value is null.
type row struct {
	line   int
	date   compute.Date
	values map[string]any
}

// cell is a value of a file as it is spelt. null is an empty cell of CSV; text and literal are what a JSON value is, and
// both true for CSV, which does not tell.
type cell struct {
	value               string
	null, text, literal bool
}

// fault is what is wrong with a file, and where.
type fault struct {
	line   int
	column string // "" for a whole line
	err    error
}

// Error implements error.
func (f *fault) Error() string {
	if f.column == "" {
		return fmt.Sprintf("line %d: %v", f.line, f.err)
	}
	return fmt.Sprintf("line %d, column %s: %v", f.line, f.column, f.err)
}

// Unwrap returns what is wrong, without the place.
func (f *fault) Unwrap() error { return f.err }

var errTooManyRows = fmt.Errorf("over %d rows", maxRows)

// decode reads a file in CSV or JSON, whichever it is, and returns its rows in the order of their dates. The error names
// the first bad cells.
func decode(b []byte, calendar *compute.Calendar, now time.Time) ([]row, error) {
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	read := readCSV
	if start := bytes.TrimLeft(b, " \t\r\n"); len(start) > 0 && (start[0] == '[' || start[0] == '{') {
		read = readJSON
	}
	check := checker{calendar: calendar, now: now, lines: map[compute.Date]int{}}
	var rows []row
	var faults []error
	err := read(b, func(line int, cells []cell) error {
		r, bad := check.row(line, cells)
		rows, faults = append(rows, r), append(faults, bad...)
		switch {
		case len(faults) > maxFaults:
			return errors.New("there are more faults")
		case len(rows) > maxRows:
			return &fault{line, "", errTooManyRows}
		}
		return nil
	})
	if err := errors.Join(append(faults[:min(len(faults), maxFaults)], err)...); err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b row) int { return int(a.date - b.date) })
	return rows, nil
}

// row checks the cells of one row.
func (c *checker) row(line int, cells []cell) (row, []error) {
	c.line, c.date = line, 0
	r := row{line: line, values: map[string]any{}}
	var faults []error
	for i, column := range columns {
		value, err := c.cell(column, cells[i])
		if err != nil {
			faults = append(faults, &fault{line, column.name, err})
		}
		if value != nil {
			r.values[column.name] = value
		}
	}
	r.date = c.date
	return r, faults
}

func (c *checker) cell(column column, cell cell) (any, error) {
	switch {
	case cell.null && column.nullable:
		return nil, nil
	case cell.null:
		return nil, errors.New("there is no value")
	case column.isText() && !cell.text:
		return nil, fmt.Errorf("%.40s is not a string", cell.value)
	case !column.isText() && !cell.literal:
		return nil, fmt.Errorf("%.40q is not a number", cell.value)
	}
	return column.parse(c, cell.value)
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
		return &fault{1, "", fmt.Errorf("the header is not %s", strings.Join(names(), ","))}
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
			cells[i] = cell{value, value == "", true, true}
		}
		line, _ := r.FieldPos(0)
		if err := visit(line, cells); err != nil {
			return err
		}
	}
}

// jsonReader reads an array of flat objects and knows in which line it is.
type jsonReader struct {
	text   []byte
	tokens *json.Decoder
	line   int
	at     int64 // the end of the last token
}

// readJSON calls visit for every object, which must have every column once and nothing else.
func readJSON(b []byte, visit func(line int, cells []cell) error) error {
	r := &jsonReader{text: b, tokens: json.NewDecoder(bytes.NewReader(b)), line: 1}
	r.tokens.UseNumber()
	if err := r.expect('['); err != nil {
		return err
	}
	cells := make([]cell, len(columns))
	for r.tokens.More() {
		line, err := r.object(cells)
		if err != nil {
			return err
		}
		if err := visit(line, cells); err != nil {
			return err
		}
	}
	if err := r.expect(']'); err != nil {
		return err
	}
	if _, err := r.tokens.Token(); !errors.Is(err, io.EOF) {
		return r.fault("", errors.New("something follows the array"))
	}
	return nil
}

func (r *jsonReader) fault(column string, err error) error { return &fault{r.line, column, err} }

// next returns the next token.
func (r *jsonReader) next() (json.Token, error) {
	token, err := r.tokens.Token()
	end := min(r.tokens.InputOffset(), int64(len(r.text)))
	r.line += bytes.Count(r.text[r.at:end], []byte{'\n'})
	r.at = end
	if err != nil {
		return nil, r.fault("", err)
	}
	return token, nil
}

func (r *jsonReader) expect(want json.Delim) error {
	token, err := r.next()
	if err == nil && token != want {
		err = r.fault("", fmt.Errorf("found %.40q, want %v of an array of objects", fmt.Sprint(token), want))
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
	for r.tokens.More() {
		token, err := r.next()
		if err != nil {
			return 0, err
		}
		name, _ := token.(string)
		i := slices.Index(names(), name)
		switch {
		case i < 0:
			return 0, r.fault("", fmt.Errorf("%.40q is no column; these are %s", name, strings.Join(names(), ", ")))
		case seen[i]:
			return 0, r.fault(name, errors.New("it stands twice in one object"))
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
		return 0, r.fault(columns[i].name, errors.New("the object does not have it"))
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
		return cell{value: v.String(), literal: true}, nil
	}
	return cell{}, r.fault(column, fmt.Errorf("found %v, want a string, a number or null", token))
}
