package snapshots

import (
	"encoding/json"
	"fmt"
)

// wireHead is what a snapshot is beside its bodies, for another process of the same binary.
type wireHead struct {
	Meta     Meta            `json:"meta"`
	Lengths  [Codings]int    `json:"lengths"` // of the bodies; 0: not sealed in this coding
	Prefix   [Codings]int    `json:"prefix"`
	CRC      uint32          `json:"crc"`
	Tags     [Codings]string `json:"tags"`
	Modified string          `json:"modified"`
	Data     [2]int          `json:"data"`
}

// Pack returns the snapshot as another process of the same binary takes it with [Unpack]: a head, and the bodies to
// be sent one after another. They share the snapshot's memory and must not be changed.
func (s *Snapshot) Pack() (head []byte, bodies [][]byte, err error) {
	h := wireHead{Meta: s.Meta, Prefix: s.prefix, CRC: s.crc, Tags: s.tags, Modified: s.modified, Data: s.data}
	for c, b := range s.bodies {
		h.Lengths[c] = len(b)
		bodies = append(bodies, b)
	}
	head, err = json.Marshal(h)
	return head, bodies, err
}

// Unpack rebuilds a packed snapshot, whose bodies stand in body without a gap. It keeps the memory of body. It checks
// lengths and no digest: it is for what a process of ours has just written into a pipe.
func Unpack(head, body []byte) (*Snapshot, error) {
	var h wireHead
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	s := &Snapshot{Meta: h.Meta, prefix: h.Prefix, crc: h.CRC, tags: h.Tags, modified: h.Modified, data: h.Data}
	for c, n := range h.Lengths {
		if n < 0 || n > len(body) || h.Prefix[c] < 0 || h.Prefix[c] > n {
			return nil, fmt.Errorf("unpack snapshot: %d bytes are left for %v, which has %d", len(body), Coding(c), n)
		}
		if n > 0 {
			s.bodies[c] = body[:n:n]
		}
		body = body[n:]
	}
	if n := len(s.bodies[Identity]); len(body) > 0 || s.bodies[Gzip] == nil || s.data[0] < 0 || s.data[0] > s.data[1] || s.data[1] > n {
		return nil, fmt.Errorf("unpack snapshot: %d bytes too many, or a body is missing", len(body))
	}
	return s, nil
}
