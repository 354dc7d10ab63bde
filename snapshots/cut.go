package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/goccy/go-json"
)

// Cut says what is left of the data of a snapshot: its first bytes, and other bytes in place of the rest.
type Cut struct {
	End  int
	Rest []byte
}

// Cut returns for each cut, whose ends rise, a snapshot of the same answer with less data. It has one coding, Identity, and no other
// form. It shares the first bytes of its body with s: 100 cuts of an answer of 80 KB take 4 MB less than 100 answers. The caller knows
// that the data of a cut is JSON. Cut keeps no memory of the caller.
func (s *Snapshot) Cut(cuts []Cut) (out []*Snapshot, err error) {
	body, sum, at := s.bodies[Identity], sha256.New(), s.data[0]
	for _, c := range cuts {
		end := s.data[0] + c.End
		sum.Write(body[at:end])
		at = end
		digest, err := sum.(hash.Cloner).Clone()
		if err != nil {
			return nil, fmt.Errorf("seal cut: %w", err)
		}
		digest.Write(c.Rest)
		meta := s.Meta
		meta.Receipt.DataSHA256 = hex.EncodeToString(digest.Sum(nil))
		one, err := cutOf(body[:end:end], c.Rest, meta)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// cutOf returns the snapshot whose data begins in head, after the begin of the envelope, and ends with rest. It keeps head.
func cutOf(head, rest []byte, meta Meta) (*Snapshot, error) {
	encoded, err := json.Marshal(&meta)
	if err != nil {
		return nil, fmt.Errorf("seal cut: %w", err)
	}
	s := newSnapshot(meta, len(head)-len(envelopeData)+len(rest))
	s.head = head
	own := slices.Concat(rest, []byte(envelopeMeta), encoded, []byte(envelopeUsage+anonymousUsage+envelopeEnd))
	s.bodies[Identity], s.prefix[Identity] = own, len(own)-len(anonymousUsage+envelopeEnd)
	s.setTags()
	return s, nil
}
