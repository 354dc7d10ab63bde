package limits

import (
	"bytes"
	"net/netip"
)

// parseElement reads an element of X-Forwarded-For: an address, maybe with a port, an IPv6 one then in brackets.
func parseElement(b []byte) (netip.Addr, bool) {
	b = bytes.Trim(b, " \t")
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 || !validPort(b[end+1:]) {
			return netip.Addr{}, false
		}
		return parseIPv6(b[1:end])
	}
	colon := bytes.IndexByte(b, ':')
	switch {
	case colon < 0:
		return parseIPv4(b)
	case bytes.IndexByte(b[colon+1:], ':') >= 0:
		return parseIPv6(b)
	case !validPort(b[colon:]):
		return netip.Addr{}, false
	}
	return parseIPv4(b[:colon])
}

// validPort says whether b is nothing, or a colon and one to five digits.
func validPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) < 2 || len(b) > 6 {
		return false
	}
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// parseIPv4 is netip.ParseAddr for IPv4 without its allocations.
func parseIPv4(b []byte) (netip.Addr, bool) {
	var out [4]byte
	for i := range out {
		part := b
		if i < len(out)-1 {
			dot := bytes.IndexByte(b, '.')
			if dot < 0 {
				return netip.Addr{}, false
			}
			part, b = b[:dot], b[dot+1:]
		}
		if len(part) < 1 || len(part) > 3 || len(part) > 1 && part[0] == '0' {
			return netip.Addr{}, false
		}
		n := 0
		for _, c := range part {
			if c < '0' || c > '9' {
				return netip.Addr{}, false
			}
			n = n*10 + int(c-'0')
		}
		if n > 255 {
			return netip.Addr{}, false
		}
		out[i] = byte(n)
	}
	return netip.AddrFrom4(out), true
}

// parseIPv6 is netip.ParseAddr for IPv6 without its allocations, and without zones.
func parseIPv6(b []byte) (netip.Addr, bool) {
	var out [16]byte
	n, gap := 0, -1 // bytes written, and where :: stands
	if bytes.HasPrefix(b, []byte("::")) {
		gap, b = 0, b[2:]
		if len(b) == 0 {
			return netip.IPv6Unspecified(), true
		}
	}
	for n < len(out) {
		group, digits := hexGroup(b)
		if digits < len(b) && b[digits] == '.' { // the rest is an IPv4 address
			v4, ok := parseIPv4(b)
			if !ok || n > len(out)-4 || gap < 0 && n != len(out)-4 {
				return netip.Addr{}, false
			}
			last := v4.As4()
			n, b = n+copy(out[n:], last[:]), nil
			break
		}
		if digits < 1 || digits > 4 {
			return netip.Addr{}, false
		}
		out[n], out[n+1] = byte(group>>8), byte(group)
		n, b = n+2, b[digits:]
		if len(b) == 0 {
			break
		}
		if b[0] != ':' || len(b) == 1 {
			return netip.Addr{}, false
		}
		if b = b[1:]; b[0] == ':' {
			if gap >= 0 {
				return netip.Addr{}, false
			}
			if gap, b = n, b[1:]; len(b) == 0 {
				break
			}
		}
	}
	if len(b) > 0 || n == len(out) && gap >= 0 || n < len(out) && gap < 0 {
		return netip.Addr{}, false
	}
	if gap >= 0 {
		moved := copy(out[len(out)-(n-gap):], out[gap:n])
		clear(out[gap : len(out)-moved])
	}
	return netip.AddrFrom16(out), true
}

// hexGroup reads the hexadecimal digits, at most five of them, that b begins with.
func hexGroup(b []byte) (group, digits int) {
	for digits < min(len(b), 5) {
		c := b[digits]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return group, digits
		}
		group, digits = group<<4|int(c), digits+1
	}
	return group, digits
}
