//go:build linux

package loop

import (
	"bytes"
	"hash/maphash"
	"time"
)

const (
	memoSlots = 64       // answers of a memo
	memoBody  = 96 << 10 // bytes of the largest body in a memo
)

// memo is a cache of the answers of a loop that repeat (see Answer.Repeats), by the bytes of the request's head. An answer is used
// again in the same second if [Handler.Again] returns true. So the client gets what the handler would answer, without parsing.
type memo struct {
	seed  maphash.Seed
	slots [memoSlots]remembered
}

// remembered is an answer in a memo. The next answer in the slot reuses its memory.
type remembered struct {
	request []byte // the head of the request
	second  int64  // of the answer, in Unix time; -1 for an empty slot
	wire    []byte // Head, Body and Tail of the answer, contiguous
	answer  Answer // without its Head
}

func (m *memo) slot(request []byte) *remembered {
	return &m.slots[maphash.Bytes(m.seed, request)%memoSlots]
}

// find returns the answer to the request at the start of b, nil if it is not in the memo. A head in the memo ends with the first
// "\r\n\r\n", so equal bytes up to there are the same request.
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

// remember puts an answer into the memo and returns its slot. The answer's head is a.Head[start:]. If the body is too large, or the
// slot already has an answer of this second and version, remember returns nil and changes nothing.
func (m *memo) remember(request []byte, a *Answer, start int, now time.Time) *remembered {
	r := m.slot(request)
	if len(a.Body)+len(a.Tail) > memoBody || r.second == now.Unix() && r.answer.Version == a.Version {
		return nil
	}
	r.request, r.second = append(r.request[:0], request...), now.Unix()
	r.wire = append(append(append(r.wire[:0], a.Head[start:]...), a.Body...), a.Tail...)
	r.answer = *a
	r.answer.Head = nil
	return r
}

func (m *memo) expire(now time.Time) {
	for i := range m.slots {
		if r := &m.slots[i]; r.second != now.Unix() {
			r.second, r.answer = -1, Answer{}
		}
	}
}
