package process

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// kind is what a frame tells.
type kind byte

const (
	frameClock    kind = 'c' // a [refresh.Clock]
	frameStatus   kind = 't' // a [Status]
	frameReady    kind = 'r' // the store is open, and what it held has been told
	frameFailed   kind = 'f' // the start failed: a text
	frameObserved kind = 'o' // a run of a job: an observation
	frameDates    kind = 'd' // the stored dates
	frameSnapshot kind = 's' // a snapshot, to which a later frame refers by its number
	frameRenewed  kind = 'h' // a renewal of a date's answer
	frameWritten  kind = 'w' // a date whose file is written at last
	framePublish  kind = 'p' // a publication
)

// A frame is its kind, the lengths of its head and its body in 4 bytes each, the head, which is JSON, and the body.
const (
	frameStart = 9
	maxHead    = 1 << 20
	maxBody    = 256 << 20
)

// observation is a run of a job.
type observation struct {
	Job  string `json:"job"`
	Code string `json:"code"`
	Took int64  `json:"took"` // nanoseconds
}

// renewal is the new answer of a date: the snapshot before it.
type renewal struct {
	Date   string `json:"date"`
	OnDisk bool   `json:"on_disk"`
}

// publication says which of the snapshots before it answer what. It is the end of them.
type publication struct {
	Feed     string                 `json:"feed"`
	Editions map[string]editionRefs `json:"editions"` // by resource
}

// editionRefs is an edition whose snapshots are numbers: of the snapshot frames since the last frame that used some.
type editionRefs struct {
	Default  int            `json:"default"`
	Variants map[string]int `json:"variants,omitempty"`
}

func writeFrame(w *bufio.Writer, k kind, head any, bodies ...[]byte) error {
	encoded, err := json.Marshal(head)
	if err != nil {
		return err
	}
	return writeEncoded(w, k, encoded, bodies...)
}

func writeEncoded(w *bufio.Writer, k kind, head []byte, bodies ...[]byte) error {
	n := 0
	for _, b := range bodies {
		n += len(b)
	}
	if len(head) > maxHead || n > maxBody {
		return fmt.Errorf("frame %c: head of %d bytes and body of %d are over %d and %d", k, len(head), n, maxHead, maxBody)
	}
	var start [frameStart]byte
	start[0] = byte(k)
	binary.LittleEndian.PutUint32(start[1:], uint32(len(head)))
	binary.LittleEndian.PutUint32(start[5:], uint32(n))
	errs := make([]error, 0, 2+len(bodies))
	for _, b := range append([][]byte{start[:], head}, bodies...) {
		_, err := w.Write(b)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readFrame reads a frame. Its memory is the caller's.
func readFrame(r io.Reader) (k kind, head, body []byte, err error) {
	var start [frameStart]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return 0, nil, nil, err
	}
	heads, bodies := binary.LittleEndian.Uint32(start[1:]), binary.LittleEndian.Uint32(start[5:])
	if heads > maxHead || bodies > maxBody {
		return 0, nil, nil, fmt.Errorf("frame %q has a head of %d bytes and a body of %d", start[0], heads, bodies)
	}
	b := make([]byte, heads+bodies)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, nil, nil, err
	}
	return kind(start[0]), b[:heads:heads], b[heads:], nil
}
