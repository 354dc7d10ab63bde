package refresh

import (
	"fmt"
	"strings"
	"time"

	"strikecache/refresh/upstream"
)

// documentsToAgree is how many documents in a row overrule what was accepted before them.
const documentsToAgree = 3

// guard refuses the chains of one symbol that have less than half of the readable rows of the last accepted one
// (shrunk), or an older timestamp (clock_backwards), until three in a row agree: then it is not they that were
// wrong, and the last of them is accepted. Two agree when neither has less than half the rows of the other and the later
// one does not have the older timestamp; the same document again is no further one.
// The zero guard has accepted nothing yet and accepts anything. Only the job of the symbol uses it.
type guard struct {
	off      bool
	accepted *chainMark
	refused  chainMark // the last one
	agree    int       // how many refused ones in a row agree, the last one included
}

// chainMark is what the guard compares of a chain.
type chainMark struct {
	rows     int       // listed and not skipped
	captured time.Time // the document's timestamp
	content  string    // digest without the clocks
}

// newGuard returns the guard of a chain. A market whose clock stands still has one document of each name: nothing it
// shows can be overruled by a third.
func (r *Refresher) newGuard() *guard { return &guard{off: r.cfg.Clock.stands()} }

// check accepts a chain or returns why it is refused.
func (g *guard) check(m chainMark) error {
	why := g.against(m)
	if why == nil || g.off {
		g.accepted, g.agree = &m, 0
		return nil
	}
	switch {
	case g.agree > 0 && m.content == g.refused.content && m.captured.Equal(g.refused.captured):
		return why
	case g.agree > 0 && !m.captured.Before(g.refused.captured) && 2*m.rows >= g.refused.rows && 2*g.refused.rows >= m.rows:
		g.agree++
	default:
		g.agree = 1
	}
	g.refused = m
	if g.agree < documentsToAgree {
		return why
	}
	g.accepted, g.agree = &m, 0
	return nil
}

// against returns what speaks against a chain, nil for nothing.
func (g *guard) against(m chainMark) error {
	switch {
	case g.accepted == nil:
	case m.captured.Before(g.accepted.captured):
		return &refusal{upstream.Backwards, fmt.Errorf("timestamp %s is before %s, which was accepted",
			m.captured.Format(time.RFC3339), g.accepted.captured.Format(time.RFC3339))}
	case 2*m.rows < g.accepted.rows:
		return &refusal{upstream.Shrunk, fmt.Errorf("%d readable rows, under half of the %d accepted before", m.rows, g.accepted.rows)}
	}
	return nil
}

// restore takes up what was accepted before a restart, unless the clock was set back behind it meanwhile.
func (g *guard) restore(s flowSource, now time.Time) {
	if !s.CapturedAt.After(now) {
		g.accepted = &chainMark{rows: s.Listed - s.Skipped, captured: s.CapturedAt, content: s.Content}
	}
}

// plain returns a symbol without the underscore of indices.
func plain(symbol string) string { return strings.TrimPrefix(symbol, "_") }
