package server

import "bytes"

// parameter returns the percent-decoded value of a query parameter, nil when it is absent, and how many times it
// is given. The value is a part of the query or, when it had to be decoded, new memory; a malformed escape stays
// as it is, and so matches nothing.
func parameter(query []byte, name string) (value []byte, n int) {
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		key, v, _ := bytes.Cut(pair, []byte{'='})
		if string(unescape(key)) != name {
			continue
		}
		if n == 0 {
			value = unescape(v)
		}
		n++
	}
	return value, n
}

// unescape decodes %XX and +. It returns b itself, never nil, when there is nothing to decode.
func unescape(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '+') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(b) && unhex(b[i+1]) >= 0 && unhex(b[i+2]) >= 0:
			out = append(out, byte(unhex(b[i+1])<<4|unhex(b[i+2])))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
