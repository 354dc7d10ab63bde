package cboe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode"

	"github.com/goccy/go-json"
)

// Errors of documents that cannot be read.
var (
	ErrHTML      = errors.New("document is an HTML page")
	ErrMalformed = errors.New("document is malformed")
)

// textOf returns the text of a document, without the byte order mark that a parser may ignore (RFC 8259, section 8.1). The error is
// [ErrHTML] for a page, and [ErrMalformed] for a document without text or in another compression than gzip.
func textOf(body []byte) ([]byte, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("%w: the document is empty", ErrMalformed)
	case text[0] == '<':
		return nil, ErrHTML
	case bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")):
		return nil, fmt.Errorf("%w: compressed with zstd; only gzip is read", ErrMalformed)
	case bytes.HasPrefix(text, []byte("\xff\xfe")), bytes.HasPrefix(text, []byte("\xfe\xff")):
		return nil, fmt.Errorf("%w: the text is UTF-16; only UTF-8 is read", ErrMalformed)
	}
	return text, nil
}

// decode decodes a document that is one JSON object, as encoding/json does, but a member of another type than its field counts
// as absent. The error is [ErrHTML] or [ErrMalformed]. Rows are what has depth brackets around it. A document with many more
// than maxRows rows is malformed: an empty row has 3 bytes in the text and over 100 in memory.
func decode(body []byte, into any, depth, maxRows int) error {
	text, err := textOf(body)
	if err != nil {
		return err
	}
	if text[0] != '{' {
		return fmt.Errorf("%w: not an object", ErrMalformed)
	}
	commas, word := scan(text, depth)
	switch {
	case word >= 0:
		length := len(text[word:]) - len(bytes.TrimLeftFunc(text[word:], unicode.IsLetter))
		return fmt.Errorf("%w: %.20s at byte %d is not JSON", ErrMalformed, text[word:word+length], len(body)-len(text)+word)
	case commas > maxRows+maxMembers:
		return fmt.Errorf("%w: over %d rows", ErrMalformed, maxRows)
	}
	d := json.NewDecoder(bytes.NewReader(text)) // [json.Unmarshal] keeps a copy of the body in a pool: 12 MB of a chain
	err = d.Decode(into)
	if mismatch := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &mismatch) {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: text behind the object", ErrMalformed)
	}
	return nil
}

const maxMembers = 100 // outside the rows; a chain has 25

// scan returns how many commas of a JSON text have at most depth brackets around them and are not in a string, and where the first NaN or
// Infinity is that is not in a string, -1 without one: no other word of JSON has an N or an I.
func scan(text []byte, depth int) (commas, word int) {
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
		case 'N', 'I':
			return commas, i
		}
	}
	return commas, -1
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
