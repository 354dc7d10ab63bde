package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"github.com/klauspost/compress/flate"
)

// Piece is a part of a JSON text that may stand in the data of many snapshots. It is immutable and may be shared by any
// number of goroutines.
type Piece struct {
	text []byte
	// coded decodes to text at any place of a body of the coding, or, if after is not nil, only behind after. It begins and
	// ends at a byte. nil: a body has the text uncompressed.
	coded [Codings][]byte
	after *Piece
}

// Text is a JSON value in pieces. The bytes between the pieces of one value and another may differ in each snapshot.
type Text []*Piece

// Plain returns a piece that bodies have uncompressed. The piece keeps text.
func Plain(text []byte) *Piece { return &Piece{text: text} }

// Compress returns a piece that is compressed once, in every coding, for all bodies that it stands in. It keeps text.
func Compress(text []byte) (*Piece, error) {
	p := &Piece{text: text}
	if len(text) < minSegment {
		return p, nil
	}
	z, err := compress(Gzip, text, 0)
	if err != nil {
		return nil, err
	}
	p.coded[Gzip] = z[len(streamHeads[Gzip]):]
	p.coded[Brotli] = brotliBlocks(text, &smallest)
	if z, err = compress(Zstd, text, 0); err != nil {
		return nil, err
	}
	if blocks := z[len(streamHeads[Zstd]):]; standAlone(blocks, text) {
		p.coded[Zstd] = blocks
	}
	return p, nil
}

// Prefixes returns the first text, the first two texts, and so on, up to all texts, each as a JSON text whose pieces are
// compressed for Identity and Gzip alone, and shared as far as possible. They are a few percent larger than texts that are
// compressed on their own. Prefixes keeps no text.
func Prefixes(texts ...[]byte) ([]Text, error) {
	const (
		group  = 8       // texts to a shared piece
		window = 8 << 10 // that flate.StatelessDeflate refers back to
	)
	z, err := borrow(Gzip)
	if err != nil {
		return nil, err
	}
	defer compressors[Gzip].put(z)
	var shared Text
	var last *Piece // of shared
	out, all := make([]Text, len(texts)), bytes.Join(texts, nil)
	done, end, from := 0, 0, len(streamHeads[Gzip])
	for i, text := range texts {
		end += len(text)
		p := &Piece{text: all[done:end], after: last}
		if (i+1)%group > 0 {
			var coded bytes.Buffer
			if err := flate.StatelessDeflate(&coded, p.text, false, all[max(0, done-window):done]); err != nil {
				return nil, err
			}
			p.coded[Gzip] = coded.Bytes()
			out[i] = append(slices.Clone(shared), p)
			continue
		}
		if _, err := z.Write(p.text); err != nil {
			return nil, err
		}
		if err := z.Flush(); err != nil {
			return nil, err
		}
		p.coded[Gzip] = bytes.Clone(z.out.Bytes()[from:])
		done, from, last = end, z.out.Len(), p
		shared = append(shared, p)
		out[i] = slices.Clone(shared)
	}
	return out, nil
}

// Bytes returns the whole text. The caller must not change it.
func (t Text) Bytes() []byte {
	if len(t) == 1 {
		return t[0].text
	}
	out := make([]byte, 0, t.len())
	for _, p := range t {
		out = append(out, p.text...)
	}
	return out
}

// Equal says whether the whole text is b.
func (t Text) Equal(b []byte) bool {
	for _, p := range t {
		var ok bool
		if b, ok = bytes.CutPrefix(b, p.text); !ok {
			return false
		}
	}
	return len(b) == 0
}

func (t Text) len() (n int) {
	for _, p := range t {
		n += len(p.text)
	}
	return n
}

// Sealer seals many data with one meta, which it encodes and compresses once. One goroutine may use it at a time.
type Sealer struct {
	meta          Meta
	before, after *Piece               // of the digest of data in meta
	sums          map[*Piece]hash.Hash // SHA-256 of a text up to a piece that stands only behind the pieces before it
}

// NewSealer returns a Sealer. It keeps the memory of meta as [Seal] does.
func NewSealer(meta Meta) (*Sealer, error) {
	meta.Receipt.DataSHA256 = hex.EncodeToString(make([]byte, sha256.Size))
	encoded, err := encodeMeta(&meta)
	if err != nil {
		return nil, err
	}
	mark := []byte(`"data_sha256":"`)
	at := bytes.Index(encoded, append(mark, meta.Receipt.DataSHA256...)) + len(mark)
	z := &Sealer{meta: meta, sums: map[*Piece]hash.Hash{}}
	if z.before, err = Compress(append([]byte(envelopeMeta), encoded[:at]...)); err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	if z.after, err = Compress(append(encoded[at+2*sha256.Size:], envelopeUsage...)); err != nil {
		return nil, fmt.Errorf("seal snapshot: %w", err)
	}
	return z, nil
}

// Seal returns the snapshot that [SealIn] returns for the bytes of data, but in other compressed bytes: those of the pieces.
// The caller has made sure that data is a JSON value on one line.
func (z *Sealer) Seal(data Text, codings ...Coding) *Snapshot {
	meta := z.meta
	digest := hex.AppendEncode(nil, z.sum(data))
	meta.Receipt.DataSHA256 = string(digest)
	body := make(Text, 0, len(data)+4)
	body = append(append(body, Plain([]byte(envelopeData))), data...)
	body = append(body, z.before, Plain(digest), z.after)
	prefix := make([]byte, 0, body.len()+len(anonymousUsage+envelopeEnd))
	for _, p := range body {
		prefix = append(prefix, p.text...)
	}
	s := newSnapshot(meta, data.len())
	s.setIdentity(prefix)
	for _, c := range append([]Coding{Identity, Gzip}, codings...) {
		coded := prefix
		if c != Identity {
			coded = body.join(c, prefix)
		}
		s.prefix[c] = len(coded)
		s.bodies[c] = s.appendTail(coded, c, []byte(anonymousUsage+envelopeEnd), "")
	}
	s.setTags()
	return s
}

// sum returns the SHA-256 of data. Pieces that begin several of [Prefixes] are hashed once.
func (z *Sealer) sum(data Text) []byte {
	var before *Piece
	sum, begins := sha256.New(), true
	for _, p := range data {
		if begins = begins && p.after == before; begins && z.sums[p] != nil {
			sum, _ = z.sums[p].(hash.Cloner).Clone()
		} else {
			sum.Write(p.text)
			if c, ok := sum.(hash.Cloner); ok && begins {
				z.sums[p], _ = c.Clone()
			}
		}
		before = p
	}
	return sum.Sum(nil)
}

// join returns the text, whose bytes are plain, in a coding. A piece that stands in the text a second time is copied from its
// first place, where the coding can.
func (t Text) join(c Coding, plain []byte) []byte {
	room, first := len(streamHeads[c])+MaxTail+len(anonymousUsage+envelopeEnd), make(map[*Piece]int, len(t))
	for _, p := range t {
		if _, again := first[p]; p.coded[c] == nil {
			room += len(p.text) + 5 // the head of a block
		} else if !again || c == Gzip {
			room += len(p.coded[c])
		} else {
			room += 64
		}
		first[p] = 0
	}
	clear(first)
	dst := append(make([]byte, 0, room), streamHeads[c]...)
	var before *Piece // the piece whose coded bytes end dst
	done, at := 0, 0  // plain[:done] is in dst
	for _, p := range t {
		end, coded := at+len(p.text), p.coded[c]
		if place, again := first[p]; !again {
			first[p] = at
		} else if block := copyBlocks(c, len(p.text), at-place); block != nil && coded != nil {
			coded = block
		}
		if coded != nil && (p.after == nil || p.after == before && done == at) {
			dst = append(appendPlain(dst, c, plain[done:at]), coded...)
			before, done = p, end
		}
		at = end
	}
	return appendPlain(dst, c, plain[done:])
}
