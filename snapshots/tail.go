package snapshots

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	// MaxUsage bounds the usage of a tail, in bytes.
	MaxUsage = 4096
	// MaxTail is how many bytes a tail takes at most beyond those of its usage: of gzip, 5 before, the closing
	// brace and 8 behind.
	MaxTail = 14
)

// AppendTail appends to dst what continues [Snapshot.Prefix] into a whole body with the given usage, one JSON value,
// and returns the extended buffer. It keeps neither argument, allocates nothing when dst has room for len(usage) +
// [MaxTail] bytes, and may be called by any number of goroutines. A usage that is empty or over MaxUsage bytes
// becomes null. Nothing is appended when the snapshot is not sealed in the coding.
//
// Every tail carries its bytes uncompressed: gzip in a stored final block, before the checksum and the length of the
// whole; br in an uncompressed metablock, before an empty last one; zstd in a raw last block.
func (s *Snapshot) AppendTail(dst []byte, c Coding, usage []byte) []byte {
	if !s.Has(c) {
		return dst
	}
	if len(usage) == 0 || len(usage) > MaxUsage {
		usage = null
	}
	n := len(usage) + len(envelopeEnd)
	switch c {
	case Gzip:
		dst = append(dst, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8)) // final, stored; length and its complement
	case Brotli:
		// From the lowest bit: not the last (1 bit), length in 16 bits (2 bits), length - 1, uncompressed (1 bit).
		h := uint32(n-1)<<3 | 1<<19
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	case Zstd:
		h := uint32(n)<<3 | 1 // from the lowest bit: last (1 bit), raw (2 bits), length
		dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
	}
	start := len(dst)
	dst = append(append(dst, usage...), envelopeEnd...)
	switch c {
	case Gzip:
		crc := crc32.Update(s.crc, crc32.IEEETable, dst[start:])
		dst = binary.LittleEndian.AppendUint32(dst, crc)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(s.prefix[Identity]+n))
	case Brotli:
		dst = append(dst, 3) // last, empty
	}
	return dst
}

var null = []byte("null")
