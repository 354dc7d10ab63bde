package limits

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var portForm = regexp.MustCompile(`^(?:\[([^\]]*)\]|([^:]*))(?::([0-9]{1,5}))?$`)

// plainElement reads an element of X-Forwarded-For by a regular expression.
func plainElement(text string) (netip.Addr, bool) {
	text = strings.Trim(text, " \t")
	bare, err := netip.ParseAddr(text)
	if err == nil {
		return bare, bare.Zone() == ""
	}
	parts := portForm.FindStringSubmatch(text)
	if parts == nil {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(parts[1] + parts[2])
	bracketed := strings.HasPrefix(text, "[")
	return addr, err == nil && addr.Zone() == "" && bracketed == addr.Is6()
}

// FuzzClientAddr: a slow walk over all elements finds the same client: from the right, the first address that is no trusted
// proxy, or the last address before a malformed element.
func FuzzClientAddr(f *testing.F) {
	for _, text := range addressTexts {
		f.Add("10.0.0.1", "198.51.100.7, "+text, "10.0.0.2", "10.0.0.0/8,fd00::/8,::1")
	}
	f.Add("::ffff:10.0.0.1", "[::1]:80,[1.2.3.4]:80,1.2.3.4:80", "", "10.0.0.0/8, ::1")
	f.Add("fe80::1%eth0", strings.Repeat("10.0.0.1,", 40), "x", "fe80::/10,10.0.0.0/8")
	f.Add("10.0.0.1", "198.51.100.7"+strings.Repeat(",10.0.0.1", 31), "10.0.0.2", "10.0.0.0/8") // one more than is followed
	f.Add("192.0.2.1", "::1", "::1", "")
	f.Add("10.0.0.1", "1.2.3.4", ",", "10.0.0.1/33")
	f.Fuzz(func(t *testing.T, remote, first, second, list string) {
		checkParseAddr(t, first)
		trusted, err := ParseProxies(list)
		prefixes, good := plainProxies(list)
		if (err == nil) != good || good && trusted == nil && len(prefixes) > 0 || trusted != nil && !slices.Equal(trusted.prefixes, prefixes) {
			t.Fatalf("%q: %v %v, want %v %v", list, trusted, err, prefixes, good)
		}
		from, err := netip.ParseAddr(remote)
		if err != nil || !good {
			return
		}
		want := from.WithZone("").Unmap()
		elements := strings.Split(first+","+second, ",")
		slices.Reverse(elements)
		for hops, element := range elements {
			addr, ok := plainElement(element)
			believed := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(want) })
			if !ok || !believed || hops == maxHops {
				break
			}
			want = addr.Unmap()
		}
		for _, lines := range [][][]byte{{[]byte(first), []byte(second)}, {[]byte(first + "," + second)}, {[]byte(first + ", " + second)}} {
			if got := ClientAddr(from, lines, trusted); got != want {
				t.Errorf("%q through %q: %v, want %v", lines, list, got, want)
			}
			// What an untrusted client puts to the left of itself changes nothing.
			if !trusted.Trusts(want) {
				forged := append([][]byte{[]byte("203.0.113.1"), []byte("garbage")}, lines...)
				if got := ClientAddr(from, forged, trusted); got != want {
					t.Errorf("%q with a forged header: %v, want %v", lines, got, want)
				}
			}
		}
	})
}

// plainProxies reads a list of trusted proxies.
func plainProxies(list string) (prefixes []netip.Prefix, good bool) {
	if strings.TrimSpace(list) == "" {
		return nil, true
	}
	elements := strings.Split(list, ",")
	for _, element := range elements {
		element = strings.TrimSpace(element)
		if addr, err := netip.ParseAddr(element); err == nil && addr.Zone() == "" {
			prefix, err := addr.Unmap().Prefix(addr.Unmap().BitLen())
			if err != nil {
				return nil, false
			}
			prefixes = append(prefixes, prefix)
			continue
		}
		prefix, err := netip.ParsePrefix(element)
		if err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6() {
			return nil, false
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, len(elements) <= maxProxies
}
