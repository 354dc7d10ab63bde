package snapshots

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brotli "github.com/molecule-man/go-brrr"
)

// Coding is a content coding in which a snapshot may be sealed.
type Coding uint8

// The codings, in the order in which files keep them. Every snapshot but a cut is sealed in the first two.
const (
	Identity Coding = iota
	Gzip
	Brotli
	Zstd
	Codings // how many a snapshot may be sealed in
)

// String returns the coding's name in Content-Encoding.
func (c Coding) String() string { return [...]string{"identity", "gzip", "br", "zstd", "dcz"}[c] }

// tagSuffix keeps the entity tags of the codings apart.
func (c Coding) tagSuffix() string { return [...]string{"", "-gz", "-br", "-zs"}[c] }

// go-brrr is the brotli that fasthttp brings: its bytes are those of andybalholm/brotli, which the tests read them with, in about half the time.
//
// The levels trade the time of a refresh for the bandwidth of every client. Measured on the 4.9 MB of answers of one chain
// (2026-11): gzip-6 leaves 14.8 % in 21 ms, br-5 9.7 % in 59 ms, zstd-1 10.4 % in 9 ms. Rejected: br-1 leaves 11.2 % in 13
// ms, but is larger than gzip for gamma and flow. The next level of zstd leaves 10.2 %, but adds 45 ms to a whole refresh.
const (
	gzipLevel   = 6
	brotliLevel = 5
	zstdLevel   = zstd.SpeedFastest
	// A client keeps the window in memory. The largest real body fits into these windows. Browsers accept zstd windows up
	// to 8 MB.
	brotliWindow = 20 // binary logarithm
	zstdWindow   = 1 << 20
)

// compressor writes what it compresses to a buffer that Reset gives it.
type compressor interface {
	io.Writer
	Flush() error
	Reset(io.Writer)
}

// A new compressor takes 1 MB for gzip, 4.5 MB for br and 1.6 MB for zstd. Its settings are constants that are valid.
var compressors = [Codings]sync.Pool{
	Gzip: {New: newGzip(gzipLevel)},
	Brotli: {New: func() any {
		z, _ := brotli.NewWriterOptions(nil, brotliLevel, brotli.WriterOptions{LGWin: brotliWindow})
		return z
	}},
	Zstd: {New: func() any { return newZstd(zstdWindow) }},
}

// rareGzip compresses what is sealed in gzip alone. Measured on max pain of 54 dates of SPX, 4.7 MB (2026-11): gzip-6 leaves 14.1 % in 39 ms,
// gzip-1 15.7 % in 20 ms.
var rareGzip = sync.Pool{New: newGzip(gzip.BestSpeed)}

func newGzip(level int) func() any {
	return func() any {
		z, _ := gzip.NewWriterLevel(nil, level)
		return z
	}
}

// bestBrotli is compress in Brotli for what is sealed once per process. Measured on the script of the page, 189 KB (2026-11): br-10 leaves
// 66 KB in 0.13 s, br-9 70 KB in 0.03 s, br-5 71 KB in 0.01 s.
func bestBrotli(b []byte, room int) ([]byte, error) {
	var out bytes.Buffer
	z, _ := brotli.NewWriterOptions(&out, 10, brotli.WriterOptions{LGWin: brotliWindow})
	_, err := z.Write(b)
	err = errors.Join(err, z.Flush())
	coded := append(make([]byte, 0, out.Len()+room), out.Bytes()...)
	return coded, errors.Join(err, z.Close()) // ends the goroutines of z
}

func newZstd(window int) *zstd.Encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstdLevel),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
	return z
}

// compress returns b in a coding other than Identity, by a compressor of the pool. The compressed bytes end at a whole byte, but the stream is not ended, so
// that a tail of n bytes can follow. The result has capacity for room more bytes.
func compress(c Coding, by *sync.Pool, b []byte, n, room int) (coded []byte, err error) {
	z := by.Get().(compressor)
	defer by.Put(z)
	out := bytes.NewBuffer(make([]byte, 0, len(b)/6)) // a usual body shrinks to less
	z.Reset(out)
	if _, err = z.Write(b); err == nil {
		err = z.Flush()
	}
	packed := out.Bytes()
	coded = make([]byte, 0, len(packed)+zstdStart-zstdUnsized+room)
	if err == nil && c == Zstd {
		coded, packed = appendZstdStart(coded, packed[5], len(b)+n), packed[zstdUnsized:]
	}
	return append(coded, packed...), err
}

const (
	zstdStart   = 10 // bytes of the header of a zstd frame that says its content size in 4 bytes
	zstdUnsized = 6  // bytes of a header without the size, as the encoder writes it
)

// appendZstdStart appends the header of a zstd frame with a window descriptor and a content size. Decoders that are given a whole
// frame use the size, and some refuse a frame without it.
func appendZstdStart(dst []byte, window byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, 0x28, 0xb5, 0x2f, 0xfd, 2<<6, window), uint32(n)) //nolint:gosec // G115: far less
}

// decompress returns the decoded body, or an error if it has more than max bytes.
func decompress(c Coding, body []byte, max int) (out []byte, err error) {
	var r io.Reader = bytes.NewReader(body)
	switch c {
	case Gzip:
		r, err = gzip.NewReader(r)
	case Brotli:
		r = brotli.NewReader(r)
	case Zstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow)); err == nil {
			defer z.Close()
		}
		r = z
	}
	if err != nil {
		return nil, err
	}
	out, err = io.ReadAll(io.LimitReader(r, int64(max)+1))
	if err == nil && len(out) > max {
		err = fmt.Errorf("body is over %d bytes", max)
	}
	return out, err
}
