package limits

import (
	"fmt"
	"net/netip"
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

// An element of X-Forwarded-For is an address as package netip reads it, without a zone. It may have a port, in IPv6 only behind brackets.
func TestParseElement(t *testing.T) {
	for _, text := range addressTexts {
		addr, err := netip.ParseAddr(text)
		good := err == nil && addr.Zone() == ""
		for form, want := range map[string]bool{
			text: good, " \t" + text + "\t ": good, "[" + text + "]": good && addr.Is6(), "[" + text + "]:80": good && addr.Is6(), text + ":80": good && addr.Is4(),
			text + ":65536": false, "[" + text + "]:123456": false, text + ":x": false, "[" + text: false, text + "]": false,
		} {
			addr := addr
			if longer, err := netip.ParseAddr(form); err == nil && longer.Zone() == "" { // with :80 behind it, :: is another address
				addr, want = longer, true
			}
			if got, ok := parseElement([]byte(form)); ok != want || ok && got != addr {
				t.Errorf("%q: %v %v, want %v %v", form, got, ok, addr, want)
			}
		}
	}
}

// The client is, from the right, the first address that is not a trusted proxy, or the last address before a malformed element.
func TestClientAddr(t *testing.T) {
	trusted, err := ParseProxies("10.0.0.0/8,fd00::/8,127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ remote, list, want string }{
		{"127.0.0.1", "", "127.0.0.1"}, {"127.0.0.1", ",", "127.0.0.1"}, {"::ffff:127.0.0.1", "198.51.100.7", "198.51.100.7"},
		{"127.0.0.1", " \t198.51.100.7\t ", "198.51.100.7"}, {"127.0.0.1", "1.1.1.1, 198.51.100.7, 10.2.3.4,fd00::9", "198.51.100.7"},
		{"127.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0.1"}, {"127.0.0.1", "[2001:db8::1]:1234,10.0.0.1:80", "2001:db8::1"}, {"127.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"},
		{"127.0.0.1", "198.51.100.7, unknown", "127.0.0.1"}, {"127.0.0.1", "198.51.100.7,,10.0.0.1", "10.0.0.1"}, {"127.0.0.1", ",10.0.0.1", "10.0.0.1"},
		{"127.0.0.1", "[2001:db8::1", "127.0.0.1"}, {"127.0.0.1", "198.51.100.7, fe80::1%eth0", "127.0.0.1"}, {"fd00::1", "198.51.100.7, 10.0.0.1:x", "fd00::1"},
		{"192.0.2.1", "198.51.100.7", "192.0.2.1"}, {"fe80::1%eth0", "198.51.100.7", "fe80::1"}, {"::ffff:192.0.2.1", "198.51.100.7", "192.0.2.1"}, // no proxy
		{"127.0.0.1", "198.51.100.7" + strings.Repeat(",10.0.0.1", maxHops-1), "198.51.100.7"},
		{"127.0.0.1", "198.51.100.7" + strings.Repeat(",10.0.0.1", maxHops), "10.0.0.1"}, // one more than are read
	} {
		for _, forged := range []string{"", "203.0.113.1,garbage,"} { // elements that an untrusted client adds on the left change nothing
			list := forged + c.list
			if want := netip.MustParseAddr(c.want); forged != "" && (trusted.Trusts(want) || c.list == "") {
				continue
			}
			if got := ClientAddr(netip.MustParseAddr(c.remote), []byte(list), trusted); got != netip.MustParseAddr(c.want) {
				t.Errorf("%q through %s: %v, want %s", list, c.remote, got, c.want)
			}
		}
	}
}
