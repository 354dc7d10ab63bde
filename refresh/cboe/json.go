package cboe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/goccy/go-json"
)

// Errors of documents that cannot be read.
var (
	ErrHTML      = errors.New("document is HTML, not JSON")
	ErrMalformed = errors.New("document is malformed")
)

// decode decodes a document that is one JSON object, as encoding/json does, but a member of another type than its field counts
// as absent. The error is [ErrHTML] or [ErrMalformed]. Rows are what has depth brackets around it. A document with many more
// than maxRows rows is malformed: an empty row has 3 bytes in the text and over 100 in memory.
func decode(body []byte, into any, depth, maxRows int) error {
	switch text := bytes.TrimLeft(body, " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("<")):
		return ErrHTML
	case !bytes.HasPrefix(text, []byte("{")):
		return fmt.Errorf("%w: not an object", ErrMalformed)
	case outerCommas(text, depth) > maxRows+maxMembers:
		return fmt.Errorf("%w: over %d rows", ErrMalformed, maxRows)
	}
	d := json.NewDecoder(bytes.NewReader(body)) // [json.Unmarshal] keeps a copy of the body in a pool: 12 MB of a chain
	err := d.Decode(into)
	if mismatch := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &mismatch) {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: text behind the object", ErrMalformed)
	}
	return nil
}

const maxMembers = 100 // outside the rows; a chain has 25

// outerCommas returns how many commas of a JSON text have at most depth brackets around them and are not in a string.
func outerCommas(text []byte, depth int) (commas int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth--
		case '}', ']':
			depth++
		case ',':
			if depth >= 0 {
				commas++
			}
		}
	}
	return commas
}

// number is a JSON number. One that is missing or not a number is zero: absent.
type number struct {
	value float64 // an infinity if the number overflows a float64
	given bool
}

// UnmarshalJSON implements [json.Unmarshaler]. It accepts any value, so that a bad number does not make the document unreadable.
func (n *number) UnmarshalJSON(raw []byte) error {
	*n = number{}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		*n = number{parseFloat(raw), true}
	}
	return nil
}

// float returns the number, NaN if it is absent.
func (n number) float() float64 {
	if !n.given {
		return math.NaN()
	}
	return n.value
}

// parseFloat returns NaN for a text that is not a number, and an infinity for a number that overflows.
func parseFloat(raw []byte) float64 {
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return x
}
