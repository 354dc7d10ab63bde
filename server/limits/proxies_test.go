package limits

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParseProxies(t *testing.T) {
	for list, want := range map[string]string{
		"":                          "",
		" ":                         "",
		"10.0.0.0/8, ::1":           "10.0.0.0/8 ::1/128",
		"::ffff:192.0.2.1":          "192.0.2.1/32",
		"0.0.0.0/0,::/0":            "0.0.0.0/0 ::/0",
		"10.0.0.1":                  "10.0.0.1/32",
		"10.0.0.0/8,":               `error: "" is not an address`,
		"10.0.0.0/33":               `error: "10.0.0.0/33" is not an address such as ::1, or a prefix such as 10.0.0.0/8`,
		"10.1.2.3/8":                `error: "10.1.2.3/8" is not an address such as ::1, or a prefix`,
		"::ffff:10.0.0.0/104":       "error: ",
		"localhost":                 `error: "localhost" is not`,
		"fe80::1%eth0":              "error: ",
		strings.Repeat("::1,", 257): "error: over 256",
	} {
		p, err := ParseProxies(list)
		var got string
		if err != nil {
			got = "error: " + err.Error()
		} else if p != nil {
			got = strings.Trim(fmt.Sprint(p), "[]")
		}
		if got != want && (!strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%.40q: %s, want %s", list, got, want)
		}
	}
}

var addressTexts = []string{
	"1.2.3.4", "255.255.255.255", "256.1.1.1", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1..2.3", "", ".", ":", "::", "::1",
	"1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8", "1:2:3:4::5:6:7:8",
	"::1::", ":::", "1:::2", "12345::", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:1.2.3.4",
	"::1.2.3.4:5", "::1.2.3", "1.2.3.4::", "fe80::1%eth0", "G::", "2001:DB8::aBcD", "::1.2.3.4.5", "1:2:3:4:5:6:7:", ":1:2:3:4:5:6:7",
	"::1:2:3:4:5:6:1.2.3.4", "::2:3:4:5:6:1.2.3.4", "1::5:6:1.2.3.4", "0000:00000::", "::12345.1.1.1", "1 .2.3.4",
	"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "0ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "@::", "::`", "/.1.1.1",
}

var portForm = regexp.MustCompile(`^(?:\[([^\]]*)\]|([^:]*))(?::([0-9]+))?$`)

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
	if port, err := strconv.Atoi(parts[3]); parts[3] != "" && (err != nil || port > 65535) {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(parts[1] + parts[2])
	bracketed := strings.HasPrefix(text, "[")
	return addr, err == nil && addr.Zone() == "" && bracketed == addr.Is6()
}

// FuzzClientAddr: parseElement agrees with the regular expression. A slow search through all elements finds the same client:
// from the right, the first address that is not a trusted proxy, or the last address before a malformed element.
func FuzzClientAddr(f *testing.F) {
	const proxies = "10.0.0.0/8,fd00::/8,127.0.0.1"
	for _, text := range addressTexts {
		for _, form := range []string{text, "[" + text + "]", text + ":80", "[" + text + "]:80", "[" + text + "]:123456", text + ":x"} {
			f.Add("10.0.0.1", "198.51.100.7, "+form, proxies)
		}
	}
	for _, list := range []string{
		"", ",", " \t198.51.100.7\t ", "1.1.1.1, 198.51.100.7, 10.2.3.4,fd00::9", "10.0.0.1, 10.0.0.2", "[2001:db8::1]:1234,10.0.0.1:80", "::ffff:198.51.100.7",
		"198.51.100.7, unknown", "198.51.100.7,,10.0.0.1", ",10.0.0.1", "[2001:db8::1", strings.Repeat("10.0.0.1,", 40) + "10.0.0.2",
		"198.51.100.7" + strings.Repeat(",10.0.0.1", 32), // one more than are read
	} {
		for _, remote := range []string{"127.0.0.1", "192.0.2.1", "::ffff:127.0.0.1", "fe80::1%eth0"} {
			f.Add(remote, list, proxies)
		}
	}
	f.Add("fe80::1%eth0", strings.Repeat("10.0.0.1,", 40)+"x", "fe80::/10,10.0.0.0/8")
	f.Add("10.0.0.1", "1.2.3.4", "10.0.0.1/33")
	f.Fuzz(func(t *testing.T, remote, list, proxies string) {
		elements := strings.Split(list, ",")
		for _, text := range elements {
			want, wantOK := plainElement(text)
			if got, ok := parseElement([]byte(text)); ok != wantOK || ok && got != want {
				t.Errorf("%q: %v %v, want %v %v", text, got, ok, want, wantOK)
			}
		}
		trusted, err := ParseProxies(proxies)
		if err != nil {
			return
		}
		for _, p := range trusted {
			if again, err := ParseProxies(p.String()); err != nil || again[0] != p || !trusted.Trusts(p.Addr()) {
				t.Fatalf("%q: %v is not what was listed: %v", proxies, p, err)
			}
		}
		from, err := netip.ParseAddr(remote)
		if err != nil {
			return
		}
		want := from.WithZone("").Unmap()
		slices.Reverse(elements)
		for hops, element := range elements {
			addr, ok := plainElement(element)
			believed := slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(want) })
			if !ok || !believed || hops == maxHops {
				break
			}
			want = addr.Unmap()
		}
		if got := ClientAddr(from, []byte(list), trusted); got != want {
			t.Errorf("%q through %q: %v, want %v", list, proxies, got, want)
		}
		// Elements that an untrusted client adds on the left change nothing.
		if got := ClientAddr(from, []byte("203.0.113.1,garbage,"+list), trusted); !trusted.Trusts(want) && got != want {
			t.Errorf("%q with forged elements: %v, want %v", list, got, want)
		}
	})
}
