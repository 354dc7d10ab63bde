package refresh

import (
	"fmt"
	"time"

	"strikecache/refresh/upstream"
)

// documentsToAgree is how many refused documents in a row must agree before the last of them is accepted.
const documentsToAgree = 3

// guard compares each new chain of one symbol with the accepted chain of that symbol. It refuses a new chain that has less
// than half of the accepted chain's readable rows (shrunk) or an older timestamp (clock_backwards).
//
// If three refused chains in a row agree, the accepted chain was wrong, and the guard lets the third one pass. Two chains
// agree when neither has less than half of the rows of the other and the later one does not have the older timestamp. The
// same document fetched twice counts once.
//
// A chain that passes is not yet accepted: a later step may fail. [Refresher.accept] decides. Only the job that fetches the
// symbol calls the guard.
type guard struct {
	refused chainMark // the last refused chain
	agree   int       // how many refused chains in a row agree, the last one included
}

// chainMark is the part of a chain that the guard compares.
type chainMark struct {
	rows     int       // listed and not skipped
	captured time.Time // the document's timestamp
	content  string    // digest of the document without its timestamps
}

// check compares a new chain with the accepted document, which is nil before the first. It returns nil when the chain
// passes, else a refusal.
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

// against returns why the chain cannot follow an accepted chain, nil when it can.
func (m chainMark) against(accepted chainMark) error {
	switch {
	case m.captured.Before(accepted.captured):
		return &refusal{upstream.Backwards, fmt.Errorf("timestamp %s is before %s of the accepted document",
			m.captured.Format(time.RFC3339), accepted.captured.Format(time.RFC3339))}
	case 2*m.rows < accepted.rows:
		return &refusal{upstream.Shrunk, fmt.Errorf("%d readable rows, under half of the %d of the accepted document", m.rows, accepted.rows)}
	}
	return nil
}
