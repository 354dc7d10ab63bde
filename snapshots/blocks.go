package snapshots

import (
	"bytes"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/andybalholm/brotli/matchfinder"
	"github.com/klauspost/compress/zstd"
)

// The functions of this file make blocks of compressed bodies that stand at any place of a body, behind any other blocks. Each
// block begins and ends at a byte.

const (
	// minSegment is the least length of a piece that is compressed.
	minSegment = 64
	// maxSegment is the length of a block, at most the least maximum of the codings: 65,535 bytes in gzip.
	maxSegment = 1<<16 - 1
	// minCopy is the least length of a copy. It is the least length whose code zstdCopy can compute.
	minCopy = 131
)

// streamHeads begin a body that is joined of pieces.
var streamHeads = [Codings]string{
	Gzip: "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
	// From the lowest bit: a window of 2^20 bytes (4 bits), then an empty metadata block, which ends at a byte.
	Brotli: "\x67\x00",
	Zstd:   "\x28\xb5\x2f\xfd\x00\x50", // a window of 2^20 bytes, no length and no checksum
}

// appendPlain appends uncompressed blocks, none of which is the last.
func appendPlain(dst []byte, c Coding, b []byte) []byte {
	for len(b) > 0 {
		n := min(len(b), maxSegment)
		switch c {
		case Gzip:
			dst = append(dst, 0, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		case Brotli:
			h := uint32(n-1)<<3 | 1<<19 // as in appendTail
			dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
		case Zstd:
			h := uint32(n) << 3
			dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
		}
		dst, b = append(dst, b[:n]...), b[n:]
	}
	return dst
}

// copyBlocks returns blocks that repeat n bytes from a distance back, nil if a body of the coding cannot have them. Neither
// depends on the blocks before it.
func copyBlocks(c Coding, n, distance int) (dst []byte) {
	if c == Gzip || n < minCopy || distance > 1<<brotliWindow-16 {
		return nil
	}
	for n > 0 {
		part := min(n, maxSegment)
		if rest := n - part; rest > 0 && rest < minCopy {
			part -= minCopy
		}
		if c == Brotli {
			dst = append(dst, brotliBlock(zeros[:part], []matchfinder.Match{{Length: part, Distance: distance}})...)
		} else {
			dst = append(dst, zstdCopy(part, distance)...)
		}
		n -= part
	}
	return dst
}

// zeros stand for a text that is copied, of which only the length matters. They are only read.
var zeros [maxSegment]byte

// zstdCopy returns a compressed block without literals and with one sequence: a match of minCopy to maxSegment bytes.
func zstdCopy(n, distance int) []byte {
	log := func(x int) (n uint) {
		for ; x > 1; x >>= 1 {
			n++
		}
		return n
	}
	lengthBits, offsetBits := log(n-3), log(distance+3)
	extra := uint64(n-3)&(1<<lengthBits-1) | uint64(distance+3)&(1<<offsetBits-1)<<lengthBits | 1<<(lengthBits+offsetBits)
	// No literals, one sequence, each of its three codes is given as the only code of its table: literals 0, offset, match.
	block := []byte{0, 0, 0, 0, 1, 0x54, 0, byte(offsetBits), byte(36 + lengthBits)}
	for ; extra > 0; extra >>= 8 {
		block = append(block, byte(extra))
	}
	h := uint32(len(block)-3)<<3 | 2<<1
	block[0], block[1], block[2] = byte(h), byte(h>>8), byte(h>>16)
	return block
}

// brotliBlocks returns metablocks of at most half of maxSegment. They refer to each other, and to nothing before them: an
// [brotli.Encoder] begins each metablock without the last distances, and it has neither contexts nor the static dictionary.
// Measured on the pieces of one chain's max pain (2026-11): 12 % smaller than br-5, in the same time.
func brotliBlocks(text []byte, finders *idle[matchfinder.MatchFinder]) (out []byte) {
	finder, _ := finders.get() // without an error
	defer finders.put(finder)
	finder.Reset()
	for len(text) > 0 {
		n := min(len(text), (maxSegment+1)/2)
		out = append(out, brotliBlock(text[:n], finder.FindMatches(nil, text[:n]))...)
		text = text[n:]
	}
	return bytes.Clone(out)
}

// The finders for text that is compressed once a day, and for text that is compressed once a refresh. They hold idle finders:
// a new one takes 2 MB or 1.3 MB. Measured on the answers of one chain (2026-11): the first leaves 17.8 KB of gamma, the
// second 18.5 KB in a third of the time, and br-5 19.2 KB in the time of the first.
var (
	smallest = idle[matchfinder.MatchFinder]{make: func() (matchfinder.MatchFinder, error) {
		return &matchfinder.Bargain1{MaxDistance: maxSegment}, nil
	}}
	fast = idle[matchfinder.MatchFinder]{make: func() (matchfinder.MatchFinder, error) {
		return &matchfinder.ZM{MaxDistance: maxSegment}, nil
	}}
)

// brotliBlock returns one metablock and, so that it ends at a byte, an empty metadata block.
func brotliBlock(text []byte, matches []matchfinder.Match) []byte {
	var e brotli.Encoder
	e.Encode(nil, nil, nil, true) // the head of the stream, up to a whole byte
	out := e.Encode(nil, text, matches, true)
	// The end of the stream is the two highest bits that are set. The metadata block, six bits from the lowest: 0, 1, 1, 0, 0,
	// 0, takes their place.
	end := 8*len(out) - bits.LeadingZeros8(out[len(out)-1]) - 2
	out = append(out, 0)
	tail := uint(out[end/8]) | uint(out[end/8+1])<<8
	tail = tail&^(3<<(end%8)) | 6<<(end%8)
	if out = append(out[:end/8], byte(tail)); end%8+6 > 8 {
		out = append(out, byte(tail>>8))
	}
	return out
}

// standAlone says whether compressed blocks of zstd decode to text behind any other blocks. Blocks of a frame of their own
// may repeat one of the three distances with which a frame begins. Here the blocks follow a run of zeros and three matches
// whose distances reach the zeros from every byte of text: what the blocks repeat gives zeros, which no JSON text has.
func standAlone(blocks, text []byte) bool {
	frame := []byte(streamHeads[Zstd])
	before := 0 // zeros
	for ; before < len(text)+4*minCopy; before += maxSegment {
		h := uint32(maxSegment)<<3 | 1<<1 // one byte, repeated
		frame = append(frame, byte(h), byte(h>>8), byte(h>>16), 0)
	}
	if before+len(text) > zstdWindow {
		return false
	}
	for i := range 3 {
		frame = append(frame, zstdCopy(minCopy, len(text)+(i+1)*minCopy)...)
	}
	frame = append(append(frame, blocks...), 1, 0, 0) // last, raw, empty
	out, err := zstdDecoder.DecodeAll(frame, make([]byte, 0, before+3*minCopy+len(text)))
	return err == nil && bytes.Equal(out[min(len(out), before+3*minCopy):], text)
}

var zstdDecoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)) // only a bad option is an error
