package limits

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestAddressesShareABucket(t *testing.T) {
	cases := []struct {
		a, b   string
		shared bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::2%eth1", true},
		{"::1", "0.0.0.0", false},
		{"::1", "::2", true},
	}
	for _, c := range cases {
		table := NewAddresses(1)
		if v := table.Admit(netip.MustParseAddr(c.a), noon); v.Outcome != Allowed || v.RetryAfter() != 0 {
			t.Errorf("%s: %+v", c.a, v)
		}
		v := table.Admit(netip.MustParseAddr(c.b), noon)
		if shared := v.Outcome == RateLimited; shared != c.shared || shared && v.RetryAfter() != 60 {
			t.Errorf("%s and %s: %+v", c.a, c.b, v)
		}
	}
	table := NewAddresses(1)
	table.Admit(netip.Addr{}, noon)
	if v := table.Admit(netip.Addr{}, noon); v.Outcome != RateLimited {
		t.Errorf("invalid address: %+v", v)
	}
}

func v4(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}

// A new address takes the slot of the fullest bucket: addresses that have used more stay limited.
func TestAddressesEvictTheFullest(t *testing.T) {
	table := NewAddresses(10)
	table.sets = table.sets[:1]
	for n := range uint32(setSize) {
		for range n + 1 { // the nth client has used n+1 of its 10
			table.Admit(v4(n), noon)
		}
	}
	table.Admit(v4(1000), noon) // takes the place of client 0
	for n := uint32(1); n < setSize; n++ {
		if got, want := table.Admit(v4(n), noon).Minute.Remaining, max(10-int64(n)-2, 0); got != want {
			t.Errorf("client %d: %d remain, want %d", n, got, want)
		}
	}
	if got := table.Admit(v4(0), noon); got.Outcome != Allowed || got.Minute.Remaining != 9 {
		t.Errorf("the evicted client is not forgiven: %+v", got)
	}
}

// With half as many clients as slots, nearly every client is limited exactly.
func TestAddressesHalfFull(t *testing.T) {
	table := NewAddresses(1)
	for n := range uint32(MaxAddresses / 2) {
		table.Admit(v4(n), noon)
	}
	forgiven := 0
	for n := range uint32(MaxAddresses / 2) {
		if table.Admit(v4(n), noon).Outcome == Allowed {
			forgiven++
		}
	}
	if forgiven > MaxAddresses/2/100 { // 24 when it was measured; the seed is random
		t.Errorf("%d of %d clients forgiven", forgiven, MaxAddresses/2)
	}
	t.Logf("%d of %d clients forgiven", forgiven, MaxAddresses/2)
}
