//go:build linux

package loop

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// answerAll answers the requests at the start of b, with as few writes as possible. It returns how many bytes these requests have.
// It stops when the turn ends, when the kernel does not take all bytes, or when the connection must end.
func (l *loop) answerAll(p *peer, b []byte) (used int) {
	l.out = l.out[:0]
	r := Request{From: p.from, Now: l.now, Stopping: l.server.lifecycle.Stopping.Load()}
	var last *remembered // pipelined requests are often alike
	for used < len(b) && l.sent < maxTurn && !p.closing && p.unsent == nil && p.state != gone {
		window := b[used:min(len(b), used+MaxHead)]
		known, n := last, 0
		if last == nil || !bytes.HasPrefix(window, last.request) {
			known = l.memo.find(window, l.now)
		}
		if known != nil && !r.Stopping && l.handler.Again(&known.answer, l.now) {
			n = len(known.request)
		} else {
			known, l.answer = nil, Answer{Head: l.out}
			if n = l.handler.Answer(window, r, &l.answer); n == 0 {
				break
			}
			if l.answer.Repeats && !r.Stopping {
				known = l.memo.remember(window[:n], &l.answer, len(l.out), l.now)
			}
		}
		if known == nil {
			l.send(p)
			if used+n < len(b) && l.server.cfg.Now().Sub(l.now) > longTurn {
				l.sent = max(l.sent, maxTurn)
			}
		} else {
			l.sendRemembered(p, known, used+n == len(b))
		}
		last = known
		used += n
	}
	if len(l.out) > 0 && p.state != gone {
		l.write(p, l.out, nil, nil)
	}
	return used
}

// send sends l.answer, or collects it in l.out.
func (l *loop) send(p *peer) {
	a := &l.answer
	p.closing, p.linger = a.Close, a.Linger
	if l.out = a.Head; len(l.out)+len(a.Body)+len(a.Tail) <= writeSize {
		l.out = append(append(l.out, a.Body...), a.Tail...)
		return
	}
	l.write(p, l.out, a.Body, a.Tail)
	l.out = l.out[:0]
}

// sendRemembered sends an answer of the memo as send does. alone says that no further request has arrived: then, if nothing is
// collected, it sends the answer with one write. If the kernel does not take all of it, the rest of the body is sent from the
// handler's memory, so slow clients share one copy.
func (l *loop) sendRemembered(p *peer, r *remembered, alone bool) {
	body, tail := r.answer.Body, r.answer.Tail
	head := r.wire[:len(r.wire)-len(body)-len(tail)]
	if !alone || len(l.out) > 0 {
		l.answer = Answer{Head: append(l.out, head...), Body: body, Tail: tail}
		l.send(p)
		return
	}
	if sent := l.transmit(p, r.wire, 0); p.state != gone && sent < len(r.wire) {
		n := min(sent, len(head))
		m := min(sent-n, len(body))
		l.suspend(p, head[n:], body[m:], tail[sent-n-m:])
	}
}

// write sends three parts, one after another, and keeps the bytes that the kernel does not take. The second part must never change.
// After the call, the caller may reuse the memory of the first and the third.
func (l *loop) write(p *peer, first, second, third []byte) {
	parts := remainder{first, second, third}
	if !l.writeAll(p, &parts) && p.state != gone {
		l.suspend(p, parts[0], parts[1], parts[2])
	}
}

// writeAll sends parts and removes the bytes that are sent from parts. It returns whether all bytes are sent.
func (l *loop) writeAll(p *peer, parts *remainder) bool {
	for i := range parts {
		flags := 0
		if i < 2 && len(parts[i+1]) > 0 {
			flags = unix.MSG_MORE
		}
		sent := l.transmit(p, parts[i], flags)
		if parts[i] = parts[i][sent:]; len(parts[i]) > 0 {
			return false
		}
	}
	return true
}

// suspend ends the turn of a connection and keeps the bytes that are not sent, possibly empty, until epoll reports that the kernel
// takes more. epoll first reports the connections that already have events, even if the kernel takes more at once.
func (l *loop) suspend(p *peer, first, second, third []byte) {
	p.unsent = &remainder{bytes.Clone(first), second, bytes.Clone(third)}
	l.server.enter(p, sending, l.now)
	if l.watch(unix.EPOLL_CTL_MOD, p, unix.EPOLLIN|unix.EPOLLOUT) != nil {
		l.close(p)
	}
}

// resume sends the bytes that suspend has kept. It returns whether the loop may read the connection again.
func (l *loop) resume(p *peer) bool {
	if !l.writeAll(p, p.unsent) {
		return false
	}
	if p.unsent = nil; p.closing {
		l.end(p)
		return false
	}
	l.server.enter(p, idle, l.now)
	return true
}
