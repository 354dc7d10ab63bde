package feed

import (
	"context"
	"errors"
	"testing"
	"time"

	"strikecache/refresh/upstream"
)

// upstreamOf is a source that answers as the test says, and counts the requests.
type upstreamOf struct {
	err   error
	asked int
}

func (s *upstreamOf) Offers(upstream.Name) bool { return true }

func (s *upstreamOf) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	s.asked++
	return nil, s.err
}

// moving is a clock that shows what the test says.
type moving struct{ Clock }

func newMoving(t *testing.T, text string) moving { return moving{NewClock(ny(t, text), 0)} }

func (m moving) show(t *testing.T, text string) {
	t.Helper()
	m.Set(Hands{ny(t, text), time.Now(), 0})
}

// A polite source asks the upstream only for what may have changed, and not too often.
func TestPolite(t *testing.T) {
	made := func(text string) *upstream.Document { return &upstream.Document{Generated: ny(t, text)} }
	dated := func(date string) *upstream.Document { return &upstream.Document{FileDate: date} }
	until := func(date string) *upstream.Document { return made(date + " 00:00:00") }
	failed, refused := &upstream.Error{Reason: upstream.TimedOut, Err: errors.New("x")}, &upstream.Error{Reason: upstream.Refused, Err: errors.New("x")}
	type request struct {
		at    string
		since *upstream.Document // that the caller has
		err   error              // of the upstream, if it is asked
		asked bool
	}
	final, xlk, nothing := made("2026-11-19 16:45:00"), upstream.History("XLK"), (*upstream.Document)(nil)
	for _, c := range []struct {
		what     string
		name     upstream.Name
		requests []request
	}{
		{"a chain in the window", ChainOf("XLF"), []request{
			{"2026-11-19 11:00:00", nothing, nil, true}, {"2026-11-19 11:00:01", made("2026-11-19 10:59:00"), nil, true}, {"2026-11-19 16:31:59", final, nil, true},
		}},
		{"a chain between two windows: its quotes are final", ChainOf("XLF"), []request{
			{"2026-11-19 16:45:00", made("2026-11-19 16:31:59"), nil, true}, {"2026-11-19 16:46:00", made("2026-11-19 16:32:00"), nil, false},
			{"2026-11-20 08:00:00", final, nil, false}, {"2026-11-20 09:44:59", final, nil, false}, {"2026-11-20 09:44:59", nothing, nil, true}, {"2026-11-20 09:45:00", final, nil, true},
		}},
		{"a chain over a weekend", ChainOf("XLF"), []request{{"2026-11-22 12:00:00", made("2026-11-20 16:45:00"), nil, false}}},
		{"a chain whose options trade at night", ChainOf("SPX"), []request{{"2026-11-19 20:30:00", final, nil, true}, {"2026-11-20 08:00:00", final, nil, true}}},
		{"the quote of an index: each ten minutes, also after a failure", upstream.Quotes("_VIX9D"), []request{
			{"2026-11-20 11:00:00", nothing, failed, true}, {"2026-11-20 11:09:59", nothing, nil, false}, {"2026-11-20 11:10:00", nothing, nil, true},
			{"2026-11-20 11:19:59", made("2026-11-20 11:10:00"), nil, false}, {"2026-11-20 11:20:00", made("2026-11-20 11:10:00"), upstream.ErrNotModified, true},
			{"2026-11-20 11:29:59", made("2026-11-20 11:10:00"), nil, false},
		}},
		{"the quote of a fund", upstream.Quotes("XLK"), []request{{"2026-11-20 11:00:00", nothing, nil, true}, {"2026-11-20 11:00:00", made("2026-11-20 11:00:00"), nil, true}}},
		{"a history: each five minutes while there is none, then each hour until it is complete", xlk, []request{
			{"2026-11-20 11:00:00", nothing, failed, true}, {"2026-11-20 11:04:59", nothing, nil, false}, {"2026-11-20 11:05:00", nothing, nil, true},
			{"2026-11-20 12:04:59", until("2026-11-18"), nil, false}, {"2026-11-20 12:05:00", until("2026-11-18"), nil, true},
			{"2026-11-20 14:00:00", until("2026-11-19"), nil, false}, {"2026-11-22 14:00:00", until("2026-11-19"), nil, false}, {"2026-11-23 09:30:00", until("2026-11-19"), nil, true},
		}},
		{"the history of an index, which the job asks for when it lacks a close", upstream.History("_VIX"), []request{
			{"2026-11-20 12:00:00", until("2026-11-19"), nil, true}, {"2026-11-20 12:59:59", until("2026-11-19"), nil, false}, {"2026-11-20 13:00:00", until("2026-11-19"), nil, true},
		}},
		{"settlements: at each run until the file of the date is there", upstream.Settlement("2026-11-20"), []request{
			{"2026-11-20 18:30:00", nothing, failed, true}, {"2026-11-20 18:30:02", dated("2026-11-19"), nil, true},
			{"2026-11-20 18:35:00", dated("2026-11-19"), upstream.ErrNotModified, true}, {"2026-11-22 19:00:00", dated("2026-11-20"), nil, false},
		}},
		{"a quote that is refused: after an hour", upstream.Quotes("XLK"), []request{
			{"2026-11-20 11:00:00", nothing, refused, true}, {"2026-11-20 11:59:59", nothing, refused, false}, {"2026-11-20 12:00:00", nothing, refused, true},
			{"2026-11-20 12:59:59", nothing, refused, false}, {"2026-11-20 13:00:00", nothing, nil, true}, {"2026-11-20 13:00:01", nothing, nil, true},
		}},
		{"the first chain, also when it is refused", ChainOf("SPX"), []request{{"2026-11-20 11:00:00", nothing, refused, true}, {"2026-11-20 11:00:01", nothing, nil, true}}},
		{"settlements that are refused", upstream.Settlement("2026-11-20"), []request{
			{"2026-11-20 18:30:00", nothing, refused, true}, {"2026-11-20 18:35:00", nothing, refused, false}, {"2026-11-20 19:30:00", nothing, nil, true},
		}},
		{"a clock that was ahead does not delay the next request", xlk, []request{{"2026-11-21 11:00:00", nothing, nil, true}, {"2026-11-20 11:00:00", nothing, nil, true}, {"2026-11-20 11:01:00", nothing, nil, false}}},
	} {
		clock, source := newMoving(t, "2026-11-19 09:00:00"), &upstreamOf{}
		p := NewPolite(source, clock.Clock, cal, ChainOf("SPX"))
		for _, r := range c.requests {
			clock.show(t, r.at)
			before := source.asked
			source.err = r.err
			want := r.err
			if !r.asked && r.err == nil {
				want = upstream.ErrNotModified
			}
			if _, err := p.Fetch(t.Context(), c.name, r.since); (source.asked > before) != r.asked || !errors.Is(err, want) {
				t.Errorf("%s: at %s: asked %v, want %v: %v", c.what, r.at, !r.asked, r.asked, err)
			}
		}
	}
}

// A refusal is of one document: settlements of another date are asked for.
func TestPoliteOfAnotherDate(t *testing.T) {
	source := &upstreamOf{err: &upstream.Error{Reason: upstream.Refused}}
	p := NewPolite(source, newMoving(t, "2026-11-20 18:30:00").Clock, cal, ChainOf("SPX"))
	for _, date := range []string{"2026-11-20", "2026-11-19", "2026-11-20"} {
		_, _ = p.Fetch(t.Context(), upstream.Settlement(date), nil)
	}
	if source.asked != 2 {
		t.Errorf("%d requests", source.asked)
	}
}

// A chain that the upstream does not have, unless it is the first, is not offered until the upstream has it again, for which it is asked after an hour.
func TestPoliteOfAnUnknownChain(t *testing.T) {
	for _, c := range []struct {
		name  upstream.Name
		err   error
		taken bool // from those that are offered
	}{
		{ChainOf("XLF"), &upstream.Error{Reason: upstream.Missing}, true}, {ChainOf("XLF"), &upstream.Error{Reason: upstream.Refused}, true},
		{ChainOf("XLF"), &upstream.Error{Reason: upstream.TimedOut}, false}, {ChainOf("XLF"), nil, false},
		{ChainOf("SPX"), &upstream.Error{Reason: upstream.Missing}, false}, {upstream.Quotes("XLK"), &upstream.Error{Reason: upstream.Missing}, false},
	} {
		clock := newMoving(t, "2026-11-20 11:00:00")
		p := NewPolite(&upstreamOf{err: c.err}, clock.Clock, cal, ChainOf("SPX"))
		ended, end := context.WithCancel(t.Context())
		end()
		_, _ = p.Fetch(ended, c.name, nil) // says nothing of the upstream
		if !p.Offers(c.name) {
			t.Errorf("%s is not offered before the first request", c.name)
		}
		_, _ = p.Fetch(t.Context(), c.name, nil)
		for at, want := range map[string]bool{"11:00:00": !c.taken, "11:59:59": !c.taken, "12:00:00": true, "10:59:59": true} {
			if clock.show(t, "2026-11-20 "+at); p.Asks(c.name) != want || p.Offers(c.name) != (!c.taken || at < "11") {
				t.Errorf("%s, %v: asked at %s: %v, offered: %v", c.name, c.err, at, !want, p.Offers(c.name))
			}
		}
		clock.show(t, "2026-11-20 12:00:00")
		p.Source.(*upstreamOf).err = nil
		if _, err := p.Fetch(t.Context(), c.name, nil); err != nil || !p.Offers(c.name) {
			t.Errorf("%s: not offered when it is there again: %v", c.name, err)
		}
	}
}
