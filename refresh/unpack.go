package refresh

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"

	"github.com/klauspost/compress/gzip"

	"strikecache/compute"
	"strikecache/refresh/cboe"
	"strikecache/refresh/upstream"
)

// readPacked decodes a chain of which only the gzip is there, while a second thread unpacks it, if there are two processors: the
// 12 MB of its text are never in memory at once. content is as in [cboe.Quote], digest is the SHA-256 of the text in hex.
// readPacked returns nil if the document has to be unpacked as a whole: it is no chain, it is damaged, it cannot be decoded, or
// [cboe.ReadChain] does not accept its form.
func readPacked(doc *upstream.Document) (chain *compute.Chain, content, digest string) {
	kind, _ := doc.Name.Split()
	z, err := gzip.NewReader(bytes.NewReader(doc.Gzip))
	if kind != upstream.OptionsKind || err != nil {
		return nil, "", ""
	}
	most, hash := kind.MaxBody(), sha256.New()
	says := int64(binary.LittleEndian.Uint32(doc.Gzip[len(doc.Gzip)-4:])) // gzip ends with the size of its text
	text := &io.LimitedReader{R: z, N: most + 1}
	chain, content, err = func() (*compute.Chain, string, error) {
		from, stop := readAhead(text)
		defer stop()
		return cboe.ReadChain(io.TeeReader(from, hash), int(min(says, most)))
	}()
	size := most + 1 - text.N
	if err != nil || size > most || size < int64(len(doc.Gzip)) {
		return nil, "", ""
	}
	return chain, content, hex.EncodeToString(hash.Sum(nil))
}

// readAhead reads on a second thread of low priority what the caller will read; on a machine with one processor it does not.
// The caller must call stop.
func readAhead(from io.Reader) (r io.Reader, stop func()) {
	if background.processors() == 1 {
		return from, func() {}
	}
	const buffers, size = 16, 64 << 10
	a := &ahead{free: make(chan []byte, buffers), full: make(chan []byte, buffers), err: io.ErrUnexpectedEOF}
	for range buffers {
		a.free <- make([]byte, size)
	}
	wait := beside(func() {
		defer close(a.full)
		for b := range a.free {
			n, err := 0, error(nil)
			for n < size && err == nil {
				var more int
				more, err = from.Read(b[n:size])
				n += more
			}
			a.full <- b[:n]
			if err != nil {
				a.err = err
				return
			}
		}
	})
	return a, func() { close(a.free); wait() }
}

// ahead passes buffers from a reading goroutine to its caller and back.
type ahead struct {
	free, full chan []byte
	buf, rest  []byte // of the caller; rest is what it has not read of buf
	err        error  // after the last buffer
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.buf != nil {
			a.free <- a.buf
		}
		var ok bool
		if a.buf, ok = <-a.full; !ok {
			return 0, a.err
		}
		a.rest = a.buf
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
