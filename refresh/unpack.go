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

// readPacked decodes a chain of which only the gzip is there: the 12 MB of its text are never in memory at once. content is as in [cboe.Quote], digest is the SHA-256 of the text in hex.
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

// readAhead returns from.
func readAhead(from io.Reader) (r io.Reader, stop func()) { return from, func() {} }
