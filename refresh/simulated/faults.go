package simulated

import (
	"errors"
	"time"

	"strikecache/refresh/upstream"
)

// Fault is a way in which an upstream fails.
type Fault uint8

// The faults, each with what [Market.Fetch] then returns. A fault that alters the document leaves one that it
// does not apply to as it is.
const (
	NoFault         Fault = iota
	Refuse                // connection refused: Unreachable
	Stall                 // no answer until the context ends: TimedOut
	Reset                 // broken in the middle of the body: Truncated
	Forbidden             // 403: Refused
	Throttle              // 429: Throttled, with RetryAfter
	RedirectLoop          // Redirects
	TruncatedGzip         // the compressed body ends early: Truncated
	HugeBody              // TooLarge
	HTMLPage              // a page instead of the document
	EmptyOptions          // no rows: an empty options or data array, a settlement file of a header alone
	StaleSettlement       // the settlement file of the session before, whose FileDate says so
	GarbageNumbers        // strings, nulls and absurd values in the numbers of many rows; still valid JSON
	BackwardClock         // a chain or quote with a top-level timestamp an hour older
	Shrink                // the first tenth of the rows
	GarbagePrice          // a chain or quote whose underlying has garbage for prices
)

// RetryAfter is what a [Throttle] asks the client to wait.
const RetryAfter = 30 * time.Second

// failure is a fault that was set for a name.
type failure struct {
	fault Fault
	times int // fetches it lasts, negative for ever
}

// Fail makes the next fetches of a document fail: as many as times says, or all if it is negative. It replaces an
// earlier fault of the name; [NoFault] or no times take that away. The name "" stands for all documents that have
// no fault of their own. [Market.At] never fails.
func (m *Market) Fail(name upstream.Name, f Fault, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f == NoFault || times == 0 {
		delete(m.faults, name)
		return
	}
	m.faults[name] = &failure{f, times}
}

// ClearFaults takes all faults away. Fetches that stall go on stalling until their contexts end.
func (m *Market) ClearFaults() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.faults)
}

// due returns the fault of this fetch and counts it.
func (m *Market) due(name upstream.Name) Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, own := m.faults[name]; !own {
		name = ""
	}
	f, ok := m.faults[name]
	if !ok {
		return NoFault
	}
	if f.times > 0 {
		if f.times--; f.times == 0 {
			delete(m.faults, name)
		}
	}
	return f.fault
}

// err returns the error of a fault that lets no document through, else nil.
func (f Fault) err(name upstream.Name) error {
	e := &upstream.Error{Name: name}
	switch f {
	case Refuse:
		e.Reason, e.Err = upstream.Unreachable, errors.New("connection refused")
	case Reset:
		e.Reason, e.Err = upstream.Truncated, errors.New("connection reset by peer")
	case Forbidden:
		e.Reason, e.Err = upstream.Refused, errors.New("status 403")
	case Throttle:
		e.Reason, e.RetryAfter, e.Err = upstream.Throttled, RetryAfter, errors.New("status 429")
	case RedirectLoop:
		e.Reason, e.Err = upstream.Redirects, errors.New("more than 5 redirects")
	case TruncatedGzip:
		e.Reason, e.Err = upstream.Truncated, errors.New("unexpected end of compressed body")
	case HugeBody:
		e.Reason, e.Err = upstream.TooLarge, errors.New("body is too large")
	default:
		return nil
	}
	return e
}
