package limits

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync"
)

const (
	// MaxAddresses is the largest number of client addresses that have a bucket at a time.
	MaxAddresses = setSize * addressSets

	// setSize is the number of slots of a set. With 16, a table that is half full has evicted under 1 address in 1,000.
	setSize     = 16
	addressSets = 4096
)

// Addresses keeps a bucket for each client address: an IPv4 address (also one that is mapped into IPv6) or an IPv6
// /64. It always takes 1,081,344 bytes, for at most [MaxAddresses] addresses. The hash of an address determines its set. If
// that set has no free slot, a new address takes the slot with the fullest bucket. No client loses requests by such an eviction: an
// evicted address starts with a full bucket again. Addresses is safe for concurrent use.
type Addresses struct {
	perMinute int
	seed      maphash.Seed // unknown to clients, who could otherwise choose addresses of one set
	sets      []addressSet
}

type addressSet struct {
	mu    sync.Mutex
	slots [setSize]struct {
		client uint64
		bucket bucket // 0 in a slot without an address
	}
}

// NewAddresses returns a table that allows each address a rate from 1 to [MaxPerMinute].
func NewAddresses(perMinute int) *Addresses {
	return &Addresses{perMinute: perMinute, seed: maphash.MakeSeed(), sets: make([]addressSet, addressSets)}
}

// Admit decides about a request of an address at a Unix time in nanoseconds. It never allocates. Invalid addresses
// share one bucket.
func (a *Addresses) Admit(addr netip.Addr, nowNanos int64) Verdict {
	v := Verdict{PerMinute: a.perMinute, Minute: a.take(Client(addr), nowNanos)}
	if !v.Minute.OK {
		v.Outcome = RateLimited
	}
	return v
}

// Held counts the addresses that have a bucket.
func (a *Addresses) Held() (n int) {
	for i := range a.sets {
		set := &a.sets[i]
		set.mu.Lock()
		for j := range set.slots {
			if set.slots[j].bucket != 0 {
				n++
			}
		}
		set.mu.Unlock()
	}
	return n
}

func (a *Addresses) take(client uint64, now int64) Decision {
	set := &a.sets[maphash.Comparable(a.seed, client)%uint64(len(a.sets))]
	set.mu.Lock()
	defer set.mu.Unlock()
	fullest := &set.slots[0]
	for i := range set.slots {
		slot := &set.slots[i]
		if slot.client == client && slot.bucket != 0 {
			return slot.bucket.take(now, a.perMinute, 1)
		}
		if slot.bucket < fullest.bucket {
			fullest = slot
		}
	}
	fullest.client, fullest.bucket = client, 0
	return fullest.bucket.take(now, a.perMinute, 1)
}

// Client returns a number for an address: the upper half of an IPv6 address, which is the /64. The number of an IPv4 address is in
// the range of IPv6 multicast, which is never the source of a request.
func Client(addr netip.Addr) uint64 {
	if addr = addr.Unmap(); addr.Is4() {
		b := addr.As4()
		return 0xFFFF<<48 | uint64(binary.BigEndian.Uint32(b[:]))
	}
	if !addr.IsValid() {
		return 0xFFFE << 48
	}
	b := addr.As16()
	return binary.BigEndian.Uint64(b[:8])
}
