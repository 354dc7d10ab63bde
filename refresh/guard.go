package refresh

import (
	"fmt"
	"time"

	"strikecache/refresh/upstream"
)

// documentsToAgree is how many documents in a row overrule what was accepted before them.
const documentsToAgree = 3

// guard refuses the chains of one symbol that have less than half of the readable rows of the last accepted one
// (shrunk), or an older timestamp (clock_backwards), until three in a row agree: then the accepted one was wrong, and
// the last of the three is accepted. Two agree when neither has less than half the rows of the other and the later one
// does not have the older timestamp. The same document again does not count as a further one.
// A guard holds refused documents alone: what is accepted is decided by the last step of the document's way. Only the
// job of the symbol uses it.
type guard struct {
	refused chainMark // the last one
	agree   int       // how many refused ones in a row agree, the last one included
}

// chainMark is what the guard compares of a chain.
type chainMark struct {
	rows     int       // listed and not skipped
	captured time.Time // the document's timestamp
	content  string    // digest without the clocks
}

// check returns why a chain is refused beside the one accepted last, nil when it may go on.
func (g *guard) check(m chainMark, accepted *document) error {
	if accepted == nil {
		return nil
	}
	why := m.against(accepted.mark)
	if why == nil {
		g.agree = 0
		return nil
	}
	switch {
	case g.agree > 0 && m.content == g.refused.content && m.captured.Equal(g.refused.captured):
	case g.agree > 0 && !m.captured.Before(g.refused.captured) && 2*m.rows >= g.refused.rows && 2*g.refused.rows >= m.rows:
		g.agree++
	default:
		g.agree = 1
	}
	g.refused = m
	if g.agree >= documentsToAgree {
		return nil
	}
	return why
}

// against returns what speaks against a chain after an accepted one, nil for nothing.
func (m chainMark) against(accepted chainMark) error {
	switch {
	case m.captured.Before(accepted.captured):
		return &refusal{upstream.Backwards, fmt.Errorf("timestamp %s is before %s, which was accepted",
			m.captured.Format(time.RFC3339), accepted.captured.Format(time.RFC3339))}
	case 2*m.rows < accepted.rows:
		return &refusal{upstream.Shrunk, fmt.Errorf("%d readable rows, under half of the %d accepted before", m.rows, accepted.rows)}
	}
	return nil
}
