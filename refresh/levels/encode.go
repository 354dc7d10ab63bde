package levels

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
)

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
	var out bytes.Buffer
	out.WriteByte('[')
	for n, row := range rows {
		if n > 0 {
			out.WriteByte(',')
		}
		for i, value := range row {
			between := ","
			if i == 0 {
				between = "\n{"
			}
			fmt.Fprintf(&out, "%s%q:%s", between, columns[i].name, value)
		}
		out.WriteByte('}')
	}
	if len(rows) > 0 {
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	return out.Bytes()
}
