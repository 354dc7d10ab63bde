package snapshots

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// SealPage seals bytes that are no envelope, such as a page for people, in every coding. modified is what
// LastModified says. The result has no data, meta or prefix: only its bodies and their tags mean anything. It keeps
// body, which must not be changed afterwards.
func SealPage(body []byte, modified time.Time) (*Snapshot, error) {
	s := &Snapshot{modified: modified.UTC().Format(http.TimeFormat)}
	s.bodies[Identity] = body
	for c := Identity + 1; c < Codings; c++ {
		coded, err := compressWhole(c, body)
		if err != nil {
			return nil, fmt.Errorf("seal page in %v: %w", c, err)
		}
		s.bodies[c] = coded
	}
	s.setTags()
	return s, nil
}

// compressWhole returns b in a coding, ended.
func compressWhole(c Coding, b []byte) ([]byte, error) {
	w, err := newCompressor(c)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if closer, ok := w.(io.Closer); ok {
		err = closer.Close()
	}
	return out.Bytes(), err
}
