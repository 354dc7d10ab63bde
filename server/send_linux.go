package server

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"
)

// answer answers the direct requests at the start of b, with as few writes as possible. It returns how many bytes they have,
// and whether the next request is for fasthttp.
func (l *loop) answer(p *peer, b []byte) (used int, other bool) {
	s := l.server
	l.out, l.whole = l.out[:0], 0
	stopping := s.stopping.Load()
	for used < len(b) && l.sent < maxTurn && !p.ended && p.unsent == nil && !p.gone {
		window, publications := b[used:min(len(b), used+maxHeader)], s.cfg.Finder.Publications()
		var known *remembered
		if !stopping {
			known = l.memo.find(window, l.now, publications)
		}
		if known == nil {
			e := l.head.parse(window)
			if e == incomplete {
				break
			}
			r := s.directRoute(&l.head)
			if other = e != nil || r == nil; other {
				break
			}
			window = window[:l.head.length]
			q := request{head: len(l.head.method) == len("HEAD"), query: l.head.query(), fields: l.head.fields, remote: p.remote}
			s.decide(r, &q, l.now, &l.response)
			l.response.close = l.response.close || l.head.close || stopping
			if s.repeats(&l.response) {
				known = l.memo.keep(s, window, &q, &l.response, l.now, publications)
			}
			if known == nil {
				l.send(p, &q)
				used += len(window)
				continue
			}
		}
		if only := len(l.out) == 0 && used+len(known.request) == len(b); !only && len(l.out)+len(known.wire) <= writeSize {
			l.out = append(l.out, known.wire...)
		} else if l.flush(p); p.unsent == nil && !p.gone {
			l.sendRemembered(p, known)
		} else {
			break
		}
		used += len(known.request)
		known.asked.remote = p.remote
		l.count(&known.response, &known.asked)
	}
	l.flush(p)
	return used, other
}

// count counts a response. If it is one of those that are timed, flush times it; of several in one write, the last one.
func (l *loop) count(rep *response, q *request) {
	l.whole = len(l.out)
	if c := l.server.count(rep, q); c != nil {
		l.timed = c
	}
}

// send sends l.response, or collects it in l.out.
func (l *loop) send(p *peer, q *request) {
	p.ended = l.response.close
	l.out = l.server.appendHead(l.out, &l.response, l.now)
	var body, tail []byte
	if !q.head {
		body, tail = l.response.body()
	}
	if len(l.out)+len(body)+len(tail) <= writeSize {
		l.out = append(append(l.out, body...), tail...)
	} else {
		l.write(p, l.out, body, tail)
		l.out = l.out[:0]
	}
	l.count(&l.response, q)
}

// flush sends what is collected in l.out.
func (l *loop) flush(p *peer) {
	if len(l.out) > 0 && !p.gone {
		l.write(p, l.out, nil, nil)
		l.out, l.whole = l.out[:0], 0
	}
	if l.timed != nil && p.unsent != nil {
		p.unsent.timed, p.unsent.asked = l.timed, l.now
	} else if l.timed != nil {
		l.timed.addDuration(time.Since(l.now))
	}
	l.timed = nil
}

// sendRemembered sends a response in one write. If the client does not take it all, the rest of the body is sent from the
// snapshot, so that clients that do not read share its memory.
func (l *loop) sendRemembered(p *peer, r *remembered) {
	l.memo.prepareFile(r)
	sent := l.transmit(p, r.wire, 0, r.file)
	if p.gone || sent == len(r.wire) {
		return
	}
	head := r.wire[:len(r.wire)-len(r.body)]
	n := min(sent, len(head))
	l.keep(p, head[n:], r.body[sent-n:], nil)
}

// write sends three parts, one after another. What the client does not take is kept in p.unsent. The second part must stay
// as it is; the memory of the others is the caller's again.
func (l *loop) write(p *peer, first, second, third []byte) {
	parts := [3][]byte{first, second, third}
	if !l.writeAll(p, &parts) && !p.gone {
		l.keep(p, parts[0], parts[1], parts[2])
	}
}

// writeAll sends parts and removes what is sent from them. It returns whether all of it is sent.
func (l *loop) writeAll(p *peer, parts *[3][]byte) bool {
	for i := range parts {
		flags := 0
		if i < 2 && len(parts[i+1]) > 0 {
			flags = unix.MSG_MORE
		}
		sent := l.transmit(p, parts[i], flags, 0)
		if parts[i] = parts[i][sent:]; len(parts[i]) > 0 {
			return false
		}
	}
	return true
}

// keep keeps what the client has not taken. It has WriteTimeout to take it.
func (l *loop) keep(p *peer, first, second, third []byte) {
	p.unsent = &remainder{parts: [3][]byte{bytes.Clone(first), second, bytes.Clone(third)}}
	p.due = l.now.Add(l.server.cfg.WriteTimeout)
	if !p.writing {
		p.writing = true
		if l.control(unix.EPOLL_CTL_MOD, p, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP) != nil {
			l.close(p)
		}
	}
}

// resume sends what the client has not taken before. It returns whether all of it is sent.
func (l *loop) resume(p *peer) bool {
	u := p.unsent
	if !l.writeAll(p, &u.parts) {
		return false
	}
	if p.unsent = nil; u.timed != nil {
		u.timed.addDuration(time.Since(u.asked))
	}
	return true
}
