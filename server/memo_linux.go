package server

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	memoSlots = 64 // responses of a memo
	memoBody  = 96 << 10
	// fileAfter is how often a large response is sent from memory before it is sent from a file. To make the file costs as
	// much as to send the response a few times.
	fileAfter = 8
)

// memo remembers the responses to the last anonymous requests of a loop, by the bytes of the request's head. A response is
// used again in the same second, as long as no answer was published meanwhile. So it is what [Server.decide] would decide
// again, and it costs no parsing.
type memo struct {
	seed  maphash.Seed
	slots [memoSlots]remembered
	files *atomic.Int32 // of the server
}

// remembered is a response that a memo remembers. Its memory is used again for the next one.
type remembered struct {
	request      []byte // its head
	second       int64  // of the response, in Unix time
	publications uint64
	wire         []byte // the head of the response and its body, contiguous
	body         []byte // the body, as the snapshot has it; empty for a 304 and for HEAD
	response     response
	asked        request // its slices point into request
	sent         int     // how often
	file         int     // descriptor of a file in memory that has wire; 0: none
}

func newMemo(files *atomic.Int32) memo { return memo{seed: maphash.MakeSeed(), files: files} }

// repeats says whether the same bytes get the same response in the same second, while no answer is published.
func (s *Server) repeats(rep *response) bool {
	return rep.err == nil && !rep.past && !rep.close && rep.entry == nil && s.cfg.Addresses == nil
}

func (m *memo) slot(request []byte) *remembered {
	return &m.slots[maphash.Bytes(m.seed, request)%memoSlots]
}

// find returns the response to the request at the start of b, nil if the memo does not have it. A head that was parsed ends
// with the first empty line, so equal bytes up to there are the same request.
func (m *memo) find(b []byte, now time.Time, publications uint64) *remembered {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return nil
	}
	request := b[:end+4]
	if r := m.slot(request); r.valid(now, publications) && bytes.Equal(r.request, request) {
		return r
	}
	return nil
}

func (r *remembered) valid(now time.Time, publications uint64) bool {
	return r.second == now.Unix() && r.publications == publications
}

// expire lets go of the snapshots and files of responses that are not of the current second. They are not valid again if the
// clock is set back. The zero time lets go of all.
func (m *memo) expire(now time.Time) {
	for i := range m.slots {
		if r := &m.slots[i]; r.second != now.Unix() {
			r.second, r.response, r.body = -1, response{}, nil
			m.dropFile(r)
		}
	}
}

// prepareFile puts a large response that is sent often into a file in memory, because the kernel sends a file without a copy:
// to 16 connections or more, 60 KB take 0.7 to 0.85 of the processor time (2026-11).
func (m *memo) prepareFile(r *remembered) {
	if r.sent++; r.sent != fileAfter || len(r.wire) <= writeSize {
		return
	}
	if m.files.Add(1) > maxFiles {
		m.files.Add(-1)
		return
	}
	name := [...]byte{'r', 'e', 's', 'p', 'o', 'n', 's', 'e', 0}
	fd, _, errno := syscall.RawSyscall(unix.SYS_MEMFD_CREATE, uintptr(unsafe.Pointer(&name)), unix.MFD_CLOEXEC, 0)
	if errno != 0 { // such as no free descriptor: it is sent from memory
		m.files.Add(-1)
		return
	}
	r.file = int(fd)
	if n, _, _ := syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&r.wire[0])), uintptr(len(r.wire))); int(n) != len(r.wire) {
		m.dropFile(r) // there is no memory
	}
}

// dropFile closes the file. What is on its way to clients stays as it is: the kernel keeps the memory until it is sent.
func (m *memo) dropFile(r *remembered) {
	if r.file != 0 {
		_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, uintptr(r.file), 0, 0) // nothing more can be done
		m.files.Add(-1)
	}
	r.sent, r.file = 0, 0
}

// keep remembers a response and returns it, nil if it does not: the body is too large, or the place has a response that is
// still of use.
func (m *memo) keep(s *Server, window []byte, q *request, rep *response, now time.Time, publications uint64) *remembered {
	var body []byte
	if !q.head {
		body, _ = rep.body()
	}
	r := m.slot(window)
	if len(body) > memoBody || publications%2 == 1 || r.valid(now, publications) {
		return nil
	}
	r.request = append(r.request[:0], window...)
	r.second, r.publications = now.Unix(), publications
	r.response, r.body = *rep, body
	r.response.usage, r.response.tail = nil, nil
	m.dropFile(r)
	r.wire = append(s.appendHead(r.wire[:0], rep, now), body...)
	var h head
	h.parse(r.request) // without an error, as before
	r.asked = request{head: q.head, query: h.query(), fields: h.fields}
	return r
}
