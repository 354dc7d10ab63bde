package limits

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"unsafe"
)

const (
	maxProxies = 256
	// maxHops is how many addresses of X-Forwarded-For are followed.
	maxHops = 32
)

// Proxies are the addresses whose X-Forwarded-For is believed. A nil pointer trusts no address. It never changes.
type Proxies struct{ prefixes []netip.Prefix }

// ParseProxies reads a comma-separated list of at most 256 addresses and prefixes, such as "10.0.0.0/8,::1". The
// empty list is nil.
func ParseProxies(list string) (*Proxies, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	p := &Proxies{}
	for element := range strings.SplitSeq(list, ",") {
		prefix, err := parseProxy(strings.TrimSpace(element))
		if err != nil {
			return nil, err
		}
		if p.prefixes = append(p.prefixes, prefix); len(p.prefixes) > maxProxies {
			return nil, fmt.Errorf("over %d trusted proxies; give prefixes such as 10.0.0.0/8", maxProxies)
		}
	}
	return p, nil
}

func parseProxy(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%.60q is not an address or a prefix such as 10.0.0.0/8 or ::1", s)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return prefix, fmt.Errorf("%.60q is not an address or a prefix such as 10.0.0.0/8 or ::1", s)
	case prefix.Addr().Is4In6():
		return prefix, fmt.Errorf("%q: write a prefix of IPv4 addresses as IPv4, such as 10.0.0.0/8", s)
	case prefix != prefix.Masked():
		return prefix, fmt.Errorf("%q has bits set after its prefix; %s is the prefix around it", s, prefix.Masked())
	}
	return prefix, nil
}

// Trusts says whether an address is one of the proxies.
func (p *Proxies) Trusts(addr netip.Addr) bool {
	if p == nil {
		return false
	}
	addr = addr.Unmap()
	for _, prefix := range p.prefixes {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// ClientAddr returns the address of the client behind trusted proxies. The lines are the values of every
// X-Forwarded-For header in their order; they are read, not kept. The walk goes from the right: every address that a
// trusted proxy reports is believed, until an address is not itself trusted. That one is the client, and what it
// claims further left is not read. A malformed element, or the 33rd, ends the walk at the last address before it.
// Elements may carry a port. The result has no zone, and IPv4 in IPv6 is IPv4. It does not allocate, but for the
// error of an element that has only the characters of an address and is none.
func ClientAddr(remote netip.Addr, lines [][]byte, trusted *Proxies) netip.Addr {
	current := remote.WithZone("").Unmap()
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		line := lines[i]
		for more := true; more; hops++ {
			if hops == maxHops || !trusted.Trusts(current) {
				return current
			}
			at := bytes.LastIndexByte(line, ',')
			addr, ok := parseElement(line[at+1:])
			if !ok {
				return current
			}
			current = addr.Unmap()
			if more = at >= 0; more {
				line = line[:at]
			}
		}
	}
	return current
}

// parseElement reads an element of X-Forwarded-For: an address, maybe with a port, an IPv6 address then in brackets.
func parseElement(b []byte) (netip.Addr, bool) {
	b = bytes.Trim(b, " \t")
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 0 || !validPort(b[end+1:]) {
			return netip.Addr{}, false
		}
		addr, ok := parseAddr(b[1:end])
		return addr, ok && addr.Is6()
	}
	if colon := bytes.IndexByte(b, ':'); colon >= 0 && bytes.IndexByte(b[colon+1:], ':') < 0 { // one: a port
		if !validPort(b[colon:]) {
			return netip.Addr{}, false
		}
		b = b[:colon]
	}
	return parseAddr(b)
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

// maxAddr is the length of the longest address, an IPv6 address that ends as IPv4.
const maxAddr = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

// parseAddr is netip.ParseAddr for bytes, without zones. A conversion to a string would allocate, as the error of
// ParseAddr keeps it; here the string is a view of b, and neither it nor the error outlives the call.
func parseAddr(b []byte) (netip.Addr, bool) {
	if len(b) == 0 || len(b) > maxAddr {
		return netip.Addr{}, false
	}
	for _, c := range b {
		if (c < '0' || c > ':') && (c|0x20 < 'a' || c|0x20 > 'f') && c != '.' {
			return netip.Addr{}, false
		}
	}
	addr, err := netip.ParseAddr(unsafe.String(&b[0], len(b))) //nolint:gosec // G103: as the comment above says
	return addr, err == nil
}
