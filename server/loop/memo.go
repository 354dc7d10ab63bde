//go:build linux

package loop

import (
	"bytes"
	"hash/maphash"
	"time"
)

const (
	memoSlots = 64 // answers of a memo
	memoBody  = 96 << 10
)

// memo remembers the last answers of a loop that repeat, by the bytes of the request's head. An answer is used again in the same
// second, as long as [Handler.Again] says so. So it is what the handler would answer, and it costs no parsing.
type memo struct {
	seed  maphash.Seed
	slots [memoSlots]remembered
}

// remembered is an answer that a memo remembers. Its memory is used again for the next one.
type remembered struct {
	request []byte // the head of the request
	second  int64  // of the answer, in Unix time; -1 for an empty slot
	wire    []byte // Head and Body of the answer, contiguous
	answer  Answer // without its Head
}

func (m *memo) slot(request []byte) *remembered {
	return &m.slots[maphash.Bytes(m.seed, request)%memoSlots]
}

// find returns the answer to the request at the start of b, nil if the memo does not have it. A head that was answered ends
// with the first empty line, so equal bytes up to there are the same request.
func (m *memo) find(b []byte, now time.Time) *remembered {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return nil
	}
	request := b[:end+4]
	if r := m.slot(request); r.second == now.Unix() && bytes.Equal(r.request, request) {
		return r
	}
	return nil
}

// remember remembers the answer whose head begins at start of a.Head. It returns nil, and does not, if the body is too large, or
// the slot has an answer of this second and version.
func (m *memo) remember(request []byte, a *Answer, start int, now time.Time) *remembered {
	r := m.slot(request)
	if len(a.Body) > memoBody || r.second == now.Unix() && r.answer.Version == a.Version {
		return nil
	}
	r.request, r.second = append(r.request[:0], request...), now.Unix()
	r.wire = append(append(r.wire[:0], a.Head[start:]...), a.Body...)
	r.answer = *a
	r.answer.Head = nil
	return r
}

// expire drops the answers of other seconds.
func (m *memo) expire(now time.Time) {
	for i := range m.slots {
		if r := &m.slots[i]; r.second != now.Unix() {
			r.second, r.answer = -1, Answer{}
		}
	}
}
