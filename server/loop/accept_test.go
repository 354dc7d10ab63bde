package loop

import (
	"net/netip"
	"strings"
	"testing"
)

// An IPv4 address, or an IPv6 /64, has at most a quarter of the connections, and an exempt address as many as there are.
func TestQuarterOfTheConnections(t *testing.T) {
	c := Connections{Max: 8, Exempt: func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.9") }}
	var open []netip.Addr
	for step := range strings.FieldsSeq("192.0.2.1 192.0.2.1 !192.0.2.1 !::ffff:192.0.2.1 2001:db8::1 2001:db8::2 !2001:db8::3 2001:db8:0:1::1 192.0.2.9 192.0.2.9 192.0.2.9 !192.0.2.9 !192.0.2.2") {
		from, refused := strings.CutPrefix(step, "!")
		if c.Enter(netip.MustParseAddr(from)) == refused {
			t.Errorf("%s, %d are open", step, len(open))
		}
		if !refused {
			open = append(open, netip.MustParseAddr(from))
		}
	}
	if c.Exit(open[0]); !c.Enter(open[0]) {
		t.Error("a connection that has ended makes no room")
	}
	for _, from := range open {
		c.Exit(from)
	}
	if c.Open.Load() != 0 || len(c.held) != 0 || c.Refused.Load() != 5 {
		t.Errorf("%d open, %d addresses held, %d refused", c.Open.Load(), len(c.held), c.Refused.Load())
	}
}
