package cboe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// scanner walks a JSON text once, from left to right, and never looks back. It accepts exactly what
// [encoding/json.Valid] accepts, nested at most maxDepth deep. Methods report false at the first byte that does
// not fit; the scanner is of no use afterwards.
type scanner struct {
	buf []byte
	pos int
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

// next skips white space and returns the byte after it without taking it; 0 at the end.
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

// rawString takes a string and returns what stands between its quotes, escapes as they are.
func (s *scanner) rawString() (raw []byte, ok bool) {
	if !s.take('"') {
		return nil, false
	}
	for i := s.pos; i < len(s.buf); i++ {
		switch c := s.buf[i]; {
		case c == '"':
			raw, s.pos = s.buf[s.pos:i], i+1
			return raw, true
		case c < ' ':
			return nil, false
		case c == '\\':
			if i += escapeLen(s.buf[i+1:]); i >= len(s.buf) {
				return nil, false
			}
		}
	}
	return nil, false
}

// escapeLen returns the length of an escape without its backslash, and more than len(b) for one that is malformed.
func escapeLen(b []byte) int {
	if len(b) == 0 || bytes.IndexByte([]byte(`"\/bfnrtu`), b[0]) < 0 {
		return len(b) + 1
	}
	if b[0] != 'u' {
		return 1
	}
	if len(b) < 5 || !isHex(b[1]) || !isHex(b[2]) || !isHex(b[3]) || !isHex(b[4]) {
		return len(b) + 1
	}
	return 5
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// text returns the value of a raw string, unescaped.
func text(raw []byte) (out string) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	if json.Unmarshal(fmt.Appendf(nil, `"%s"`, raw), &out) != nil {
		return ""
	}
	return out
}

// number takes a number. Its value is NaN when it overflows a float64.
func (s *scanner) number() (x float64, ok bool) {
	s.skipSpace()
	start, i, buf := s.pos, s.pos, s.buf
	negative := i < len(buf) && buf[i] == '-'
	if negative {
		i++
	}
	mantissa, exponent, first := uint64(0), 0, i
	for i < len(buf) && isDigit(buf[i]) {
		mantissa = mantissa*10 + uint64(buf[i]-'0')
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && buf[first] == '0' {
		return 0, false
	}
	if i < len(buf) && buf[i] == '.' {
		i++
		first = i
		for i < len(buf) && isDigit(buf[i]) {
			mantissa = mantissa*10 + uint64(buf[i]-'0')
			i++
		}
		exponent = first - i
		digits -= exponent
		if exponent == 0 {
			return 0, false
		}
	}
	if i < len(buf) && buf[i]|0x20 == 'e' {
		digits = math.MaxInt // too rare to be worth a fast path
		i++
		if i < len(buf) && (buf[i] == '+' || buf[i] == '-') {
			i++
		}
		first = i
		for i < len(buf) && isDigit(buf[i]) {
			i++
		}
		if i == first {
			return 0, false
		}
	}
	s.pos = i
	// A mantissa below 2^53 and a power of ten below 10^23 are exact doubles, so one division rounds correctly
	// (W. D. Clinger, How to read floating point numbers accurately, 1990).
	if digits <= 19 && mantissa < 1<<53 && exponent >= -22 {
		x = float64(mantissa) / tenTo[-exponent]
		if negative {
			x = -x
		}
		return x, true
	}
	x, err := strconv.ParseFloat(string(buf[start:i]), 64)
	if err != nil {
		x = math.NaN()
	}
	return x, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

var tenTo = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

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

// object takes an object; member is called for each raw key and takes its value.
func (s *scanner) object(depth int, member func(key []byte) bool) bool {
	if depth <= 0 || !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.rawString()
		if !ok || !s.take(':') || !member(key) {
			return false
		}
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// array takes an array; element is called for each element and takes it.
func (s *scanner) array(depth int, element func() bool) bool {
	if depth <= 0 || !s.take('[') {
		return false
	}
	if s.take(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// float takes any value and returns it when it is a number, else NaN: one bad number must not lose a document.
func (s *scanner) float() (x float64, ok bool) {
	if c := s.next(); c == '-' || isDigit(c) {
		return s.number()
	}
	return math.NaN(), s.skip(maxDepth)
}

// str takes any value and returns its raw text when it is a string, else nil.
func (s *scanner) str() (raw []byte, ok bool) {
	if s.next() == '"' {
		return s.rawString()
	}
	return nil, s.skip(maxDepth)
}
