//go:build linux

package loop

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// answerAll answers the requests at the start of b, with as few writes as possible. It returns how many bytes they have.
// It answers none while the client has not taken the answers before, or after the last answer.
func (l *loop) answerAll(p *peer, b []byte) (used int) {
	l.out = l.out[:0]
	r := Request{From: p.from, Now: l.now, Last: l.server.life.Stopping.Load()}
	for used < len(b) && l.sent < maxTurn && !p.last && p.unsent == nil && p.state != gone {
		window := b[used:min(len(b), used+MaxHead)]
		var known *remembered
		if !r.Last {
			known = l.memo.find(window, l.now)
		}
		if known != nil && !l.handler.Again(&known.answer, l.now) {
			known = nil
		}
		n := 0
		if known != nil {
			n = len(known.request)
		} else {
			l.answer = Answer{Head: l.out}
			if n = l.handler.Answer(window, r, &l.answer); n == 0 {
				break
			}
			if l.answer.Repeats && !r.Last {
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
		used += n
	}
	l.flush(p)
	return used
}

// send sends l.answer, or collects it in l.out.
func (l *loop) send(p *peer) {
	a := &l.answer
	p.last, p.linger = a.Last, a.Linger
	if l.out = a.Head; len(l.out)+len(a.Body)+len(a.Tail) <= writeSize {
		l.out = append(append(l.out, a.Body...), a.Tail...)
		return
	}
	l.write(p, l.out, a.Body, a.Tail)
	l.out = l.out[:0]
}

// sendRemembered sends an answer as send does, and with one write if it is alone: nothing is collected, and it answers the last
// request that has arrived. If the client does not take it all, the rest of the body is sent from the handler's memory, which
// clients that do not read share.
func (l *loop) sendRemembered(p *peer, r *remembered, alone bool) {
	head := r.wire[:len(r.wire)-len(r.answer.Body)]
	if !alone || len(l.out) > 0 {
		l.answer = Answer{Head: append(l.out, head...), Body: r.answer.Body}
		l.send(p)
		return
	}
	if sent := l.transmit(p, r.wire, 0); p.state != gone && sent < len(r.wire) {
		n := min(sent, len(head))
		l.putOff(p, head[n:], r.answer.Body[sent-n:], nil)
	}
}

// flush sends what is collected in l.out.
func (l *loop) flush(p *peer) {
	if len(l.out) > 0 && p.state != gone {
		l.write(p, l.out, nil, nil)
	}
	l.out = l.out[:0]
}

// write sends three parts, one after another, and keeps what the client does not take. The second part must stay as it is.
// The memory of the others is the caller's again.
func (l *loop) write(p *peer, first, second, third []byte) {
	parts := remainder{first, second, third}
	if !l.writeAll(p, &parts) && p.state != gone {
		l.putOff(p, parts[0], parts[1], parts[2])
	}
}

// writeAll sends parts and removes what is sent from them. It returns whether all of it is sent.
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

// putOff keeps what the client has not taken, maybe nothing, until epoll reports that the connection takes bytes. epoll reports
// this after the connections that have events by now, even if the connection takes bytes already.
func (l *loop) putOff(p *peer, first, second, third []byte) {
	p.unsent = &remainder{bytes.Clone(first), second, bytes.Clone(third)}
	l.server.enter(p, sending, l.now)
	if l.watch(unix.EPOLL_CTL_MOD, p, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP) != nil {
		l.close(p)
	}
}

// resume sends what the client has not taken before. It returns whether the connection can be read again.
func (l *loop) resume(p *peer) bool {
	if !l.writeAll(p, p.unsent) {
		return false
	}
	if p.unsent = nil; p.last {
		l.end(p)
		return false
	}
	l.server.enter(p, idle, l.now)
	return true
}
