package limits

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
)

const (
	maxProxies = 256
	// maxHops is how many addresses of X-Forwarded-For are followed.
	maxHops = 32
)

// Proxies are the addresses whose X-Forwarded-For counts. A nil pointer trusts none. It never changes.
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
// X-Forwarded-For header in their order; they are read, not kept. From the right, every address that a trusted
// proxy reports is believed, until one is not itself trusted: that is the client, and what it claims further left is
// not read. A malformed element, or the 33rd, ends the walk at the last address before it. Elements may carry a
// port. The result has no zone, and IPv4 in IPv6 is IPv4. It never allocates.
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
