package limits

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unsafe"
)

const (
	maxProxies = 256
	// maxHops is how many addresses of X-Forwarded-For are read.
	maxHops = 32
)

// Proxies are the addresses whose X-Forwarded-For is trusted.
type Proxies []netip.Prefix

// ParseProxies reads a comma-separated list of at most 256 addresses and prefixes, such as "10.0.0.0/8,::1". It
// returns nil for an empty list.
func ParseProxies(list string) (p Proxies, err error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	for element := range strings.SplitSeq(list, ",") {
		prefix, err := parseProxy(strings.TrimSpace(element))
		if err != nil {
			return nil, err
		}
		if p = append(p, prefix); len(p) > maxProxies {
			return nil, fmt.Errorf("over %d trusted proxies; give prefixes such as 10.0.0.0/8", maxProxies)
		}
	}
	return p, nil
}

func parseProxy(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil || prefix.Addr().Is4In6() || prefix != prefix.Masked() {
		return prefix, fmt.Errorf("%.60q is not an address such as ::1, or a prefix such as 10.0.0.0/8 with only 0 bits after its length", s)
	}
	return prefix, nil
}

// Trusts says whether an address is one of the proxies. The zero address is that of a connection to a Unix socket and always trusted:
// the mode of the socket's file says who may connect.
func (p Proxies) Trusts(addr netip.Addr) bool {
	addr = addr.Unmap()
	return !addr.IsValid() || slices.ContainsFunc(p, func(prefix netip.Prefix) bool { return prefix.Contains(addr) })
}

// ClientAddr returns the address of the client behind trusted proxies. remote is the address of the connection, and list the value of
// X-Forwarded-For, its lines joined by commas. ClientAddr starts with remote. While the current address is a trusted proxy, the next
// element from the right becomes the current address. The first address that is not trusted is the client: the elements further left
// are the client's own and not read. A malformed element, or the 33rd, ends the search: the result is the address before it. An
// element may have a port. The result has no zone, and IPv4 in IPv6 is IPv4. ClientAddr does not keep list. It allocates only for an
// element that consists of the characters of an address and is not an address.
func ClientAddr(remote netip.Addr, list []byte, trusted Proxies) netip.Addr {
	current := remote.WithZone("").Unmap()
	for hops := 0; hops < maxHops && len(list) > 0 && trusted.Trusts(current); hops++ {
		at := bytes.LastIndexByte(list, ',')
		addr, ok := parseElement(list[at+1:])
		if !ok {
			break
		}
		current, list = addr.Unmap(), list[:max(at, 0)]
	}
	return current
}

// parseElement parses an element of X-Forwarded-For: an address, with or without a port and without a zone. An IPv6 address with a port
// is in brackets. text shares the memory of b, because a copy would allocate. No string of that memory outlives the call.
func parseElement(b []byte) (addr netip.Addr, ok bool) {
	text := strings.Trim(unsafe.String(unsafe.SliceData(b), len(b)), " \t") //nolint:gosec // G103: as the comment above says
	if strings.Trim(text, "0123456789abcdefABCDEF.:[]") != "" {
		return addr, false // the parser would allocate an error
	}
	inner, bracketed := strings.CutPrefix(text, "[")
	withPort := strings.Count(text, ":") == 1
	if bracketed {
		inner, ok = strings.CutSuffix(inner, "]")
		withPort = !ok
	}
	if withPort {
		full, err := netip.ParseAddrPort(text)
		return full.Addr(), err == nil
	}
	addr, err := netip.ParseAddr(inner)
	return addr, err == nil && (addr.Is6() || !bracketed)
}
