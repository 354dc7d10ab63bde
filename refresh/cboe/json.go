package cboe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Errors of documents that cannot be read.
var (
	ErrHTML      = errors.New("document is HTML, not JSON")
	ErrMalformed = errors.New("document is malformed")
)

// scanner reads a JSON text once, from left to right. Of buf, it accepts exactly what [encoding/json.Valid] accepts, nested
// at most maxDepth deep. To take a value is to read it and move behind it. The methods return false at the first byte that does
// not fit; then the scanner must not be used any more.
type scanner struct {
	buf  []byte
	pos  int
	from io.Reader // has the text behind buf; nil: there is none
}

// maxDepth bounds nesting; the upstream's documents nest 4 deep.
const maxDepth = 64

func (s *scanner) skipSpace() {
	for s.pos < len(s.buf) {
		switch s.buf[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// next skips white space and returns the next byte without taking it; 0 at the end.
func (s *scanner) next() byte {
	if s.pos < len(s.buf) && s.buf[s.pos] > ' ' {
		return s.buf[s.pos]
	}
	s.skipSpace()
	if s.pos == len(s.buf) {
		return 0
	}
	return s.buf[s.pos]
}

// take skips white space and takes the byte c.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.pos++
	return true
}

// rawString takes a string and returns the text between its quotes, with its escapes.
func (s *scanner) rawString() (raw []byte, ok bool) {
	if !s.take('"') {
		return nil, false
	}
	escaped := false
	for i := s.pos; i < len(s.buf); i++ {
		switch c := s.buf[i]; {
		case c == '"':
			raw, s.pos = s.buf[s.pos:i], i+1
			return raw, !escaped || json.Valid(s.buf[i-len(raw)-1:s.pos])
		case c < ' ':
			return nil, false
		case c == '\\':
			escaped = true
			i++
		}
	}
	return nil, false
}

// number takes a number and returns its text.
func (s *scanner) number() (raw []byte, ok bool) {
	s.skipSpace()
	start := s.pos
	if s.at('-') {
		s.pos++
	}
	zero := s.at('0')
	if digits := s.digits(); digits == 0 || zero && digits > 1 {
		return nil, false
	}
	if s.at('.') {
		s.pos++
		if s.digits() == 0 {
			return nil, false
		}
	}
	if s.at('e') || s.at('E') {
		s.pos++
		if s.at('+') || s.at('-') {
			s.pos++
		}
		if s.digits() == 0 {
			return nil, false
		}
	}
	return s.buf[start:s.pos], true
}

// at says whether the next byte is c.
func (s *scanner) at(c byte) bool { return s.pos < len(s.buf) && s.buf[s.pos] == c }

// digits takes digits and returns how many.
func (s *scanner) digits() int {
	b := s.buf[s.pos:]
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	s.pos += n
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// literal takes true, false or null.
func (s *scanner) literal() bool {
	for _, word := range [...]string{"null", "true", "false"} {
		if bytes.HasPrefix(s.buf[s.pos:], []byte(word)) {
			s.pos += len(word)
			return true
		}
	}
	return false
}

// skip takes any value, nested at most depth deep.
func (s *scanner) skip(depth int) bool {
	switch c := s.next(); c {
	case '"':
		_, ok := s.rawString()
		return ok
	case '{':
		return s.object(depth, func([]byte) bool { return s.skip(depth - 1) })
	case '[':
		return s.array(depth, func() bool { return s.skip(depth - 1) })
	case 't', 'f', 'n':
		return s.literal()
	default:
		_, ok := s.number()
		return ok
	}
}

// whole takes the whole text, which must be one object; member is called for each raw key and takes its value.
func (s *scanner) whole(member func(key []byte) bool) error {
	if s.next() == '<' {
		return ErrHTML
	}
	if !s.object(maxDepth, member) || s.next() != 0 || s.pos < len(s.buf) || s.from != nil {
		return fmt.Errorf("%w near byte %d of %d", ErrMalformed, s.pos, len(s.buf))
	}
	return nil
}

// object takes an object; member is called for each raw key and takes its value.
func (s *scanner) object(depth int, member func(key []byte) bool) bool {
	return s.list(depth, '{', '}', func() bool {
		key, ok := s.rawString()
		return ok && s.take(':') && member(key)
	})
}

// array takes an array; element is called for each element and takes it.
func (s *scanner) array(depth int, element func() bool) bool { return s.list(depth, '[', ']', element) }

// list takes two brackets and the elements between them, separated by commas.
func (s *scanner) list(depth int, opening, closing byte, element func() bool) bool {
	if depth <= 0 || !s.take(opening) {
		return false
	}
	if s.take(closing) {
		return true
	}
	for element() {
		if s.take(closing) {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
	return false
}

// float takes any value and returns it if it is a number, an infinity if the number overflows a float64. Otherwise it
// returns NaN, so that a bad number does not make the whole document unreadable.
func (s *scanner) float() (x float64, ok bool) {
	if c := s.next(); c != '-' && !isDigit(c) {
		return math.NaN(), s.skip(maxDepth)
	}
	start := s.pos
	if x, ok := s.decimal(); ok {
		return x, true
	}
	s.pos = start
	raw, ok := s.number()
	return parseFloat(raw), ok
}

// tens holds the powers of ten that a float64 has exactly, as far as decimal needs them.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// decimal takes a number of at most 15 digits without an exponent, as nearly all are: a quotient of two exact numbers, so it is
// rounded once, as strconv does. If the number has another form, ok is false, and the position is undefined.
func (s *scanner) decimal() (x float64, ok bool) {
	b, i := s.buf, s.pos
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start, point, digits := i, 0, uint64(0)
	for ; i < len(b); i++ {
		if c := b[i]; isDigit(c) {
			digits = digits*10 + uint64(c-'0')
		} else if c == '.' && point == 0 && i > start {
			point = i + 1
		} else {
			break
		}
	}
	n, decimals := i-start, 0
	if point > 0 {
		n, decimals = n-1, i-point
	}
	switch {
	case n == 0 || n > 15 || point == i: // no digit, too many, or none behind the point
		return 0, false
	case b[start] == '0' && n > 1 && point != start+2: // a leading zero
		return 0, false
	case i < len(b) && (b[i] == 'e' || b[i] == 'E'):
		return 0, false
	}
	s.pos = i
	x = float64(digits) / tens[decimals]
	if negative {
		x = -x
	}
	return x, true
}

// parseFloat returns NaN for a text that is not a number, and an infinity for a number that overflows.
func parseFloat(raw []byte) float64 {
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return math.NaN()
	}
	return x
}

// str takes any value and returns its raw text if it is a string, otherwise nil.
func (s *scanner) str() (raw []byte, ok bool) {
	if s.next() == '"' {
		return s.rawString()
	}
	return nil, s.skip(maxDepth)
}
