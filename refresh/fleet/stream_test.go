package fleet

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// restarted starts a member again that knows what it knew before, as one that was cut off meanwhile.
func restarted(t *testing.T, n *node, change func(*Member)) *node {
	t.Helper()
	was := n.Member
	return start(t, was.cfg.Flags, n.dir, func(m *Member) {
		m.created, m.seen, m.term, m.objects, m.joined = was.created, was.seen, was.term, was.objects, was.joined
		change(m)
	})
}

// A member that was away for two leases gets the files of both, although the stream keeps only the beginning of the second.
func TestAMemberThatMissedTwoLeases(t *testing.T) {
	t.Parallel()
	at := urlOf(startNATS(t, t.TempDir(), 0))
	a, e := pair(t, at)
	e.stop()
	a.stop()
	b := refresher(t, at)
	b.save(pain, `"of b"`, friday)
	c := join(t, at, t.TempDir(), false)
	until(t, "the third member follows", func() bool { return c.shows(pain, `"of b"`) })
	b.stop()
	until(t, "the third member refreshes", c.leads)
	back := restarted(t, e, func(*Member) {})
	c.save(gamma, `"2"`, friday.Add(time.Minute))
	until(t, "the edge has the files of both", func() bool { return back.shows(gamma, `"2"`) && back.shows(pain, `"of b"`) })
	if back.log.has("refused") {
		t.Error("it has refused a good file")
	}
}

// An edge sees that messages which it knows were lost, although others have their numbers by now.
func TestAStreamThatWasSetBackAndGoesOn(t *testing.T) {
	t.Parallel()
	at := urlOf(startNATS(t, t.TempDir(), 0))
	a, e := pair(t, at)
	e.stop()
	a.stop()
	b := refresher(t, at)
	b.save(pain, `"2"`, friday)
	o := newOperator(t, at)
	until(t, "the file is in the stream", func() bool { return o.digest("2026-11-20/spx-max-pain") != "" })
	info, err := o.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back := restarted(t, e, func(m *Member) { m.seen = info.State.LastSeq })
	until(t, "the edge has the file", func() bool { return back.shows(pain, `"2"`) })
}

// behind is a server of a cluster. It knows the sequence number of the newest message of any part of a file, and of its last
// part, 0 says none.
type behind struct {
	nats.JetStreamContext
	newest, lastPart uint64
}

// anyStream is a stream that nothing is asked of but its name.
type anyStream struct{ jetstream.Stream }

func (anyStream) CachedInfo() *jetstream.StreamInfo { return &jetstream.StreamInfo{} }

func (b behind) GetLastMsg(_, subject string, _ ...nats.JSOpt) (*nats.RawStreamMsg, error) {
	seq := b.lastPart
	if strings.HasSuffix(subject, ".*") {
		seq = b.newest
	}
	if seq == 0 {
		return nil, nats.ErrMsgNotFound
	}
	return &nats.RawStreamMsg{Sequence: seq}, nil
}

// A member asks again for an announced file that no server seems to have: a server that has just begun to lead may be behind. It
// forgets one that was replaced at once, and in the end one that was removed.
func TestAServerThatIsBehind(t *testing.T) {
	t.Parallel()
	const path = "2026-11-20/gex-spx"
	for _, c := range []struct {
		what      string
		newest    uint64
		lastPart  uint64
		tries     int
		known     bool
		refused   bool
		asksAgain bool
	}{
		{"it has the file", 7, 7, 0, true, false, true},
		{"it has the file before", 3, 3, 0, true, false, true},
		{"it has none", 0, 0, 0, true, false, true},
		{"the file was replaced", 9, 9, 0, false, false, false},
		{"the last part of what replaces it is not there yet", 9, 7, maxTries - 1, false, false, false},
		{"the file was removed", 0, 0, maxTries - 1, false, false, false},
		{"a part of the file is missing", 7, 7, maxTries - 1, true, true, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			m := New(Config{Source: "simulated", Log: slog.New(slog.DiscardHandler)})
			m.objects[path], m.backlog[path] = object{digest: "x", parts: 1, last: 7, tries: c.tries}, true
			s := &link{m: m, reads: behind{newest: c.newest, lastPart: c.lastPart}, stream: anyStream{}}
			if err := s.settle(t.Context(), path, jetstream.ErrMsgNotFound); err != nil {
				t.Fatal(err)
			}
			o, known := m.objects[path]
			if known != c.known || o.refused != c.refused || m.backlog[path] != c.asksAgain || (s.again != nil) != c.asksAgain {
				t.Errorf("known %v, refused %v, in the backlog %v, asks again %v", known, o.refused, m.backlog[path], s.again != nil)
			}
		})
	}
}

// lateMessage is the second message of a watch.
type lateMessage struct{ jetstream.Msg }

func (lateMessage) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Consumer: 2, Stream: 2}}, nil
}

// A watch whose first message never came is begun again, and gets it then.
func TestALostMessage(t *testing.T) {
	m := New(Config{Source: "simulated", Log: slog.New(slog.DiscardHandler)})
	if err := (&link{m: m}).see(t.Context(), lateMessage{}); err == nil || m.seen != 0 {
		t.Errorf("%v, seen up to %d", err, m.seen)
	}
}

// A file that is not there does not hold up the others: they are tried as often as it before the member waits.
func TestAMissingFileHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	const missing, other = "2026-11-20/gex-spx", "2026-11-19/gex-spx"
	m := New(Config{Source: "simulated", Log: slog.New(slog.DiscardHandler)})
	for _, path := range []string{missing, other} {
		m.objects[path], m.backlog[path] = object{digest: "x", parts: 1, last: 7}, true
	}
	s := &link{m: m, reads: behind{}, stream: anyStream{}}
	for i, want := range []string{missing, other, missing, other} {
		path := m.nextToLoad()
		if err := s.settle(t.Context(), path, jetstream.ErrMsgNotFound); err != nil {
			t.Fatal(err)
		}
		if waits := s.again != nil; path != want || waits != (path == other) {
			t.Errorf("try %d: %s, waits %v", i, path, waits)
		}
		s.again = nil
	}
}

// After an operator has removed all messages, the refresher publishes its files again.
func TestAStreamThatWasPurged(t *testing.T) {
	t.Parallel()
	at := urlOf(startNATS(t, t.TempDir(), 0))
	a := refresher(t, at)
	a.save(gamma, `"1"`, friday)
	o := newOperator(t, at)
	until(t, "the file is in the stream", func() bool { return o.digest("2026-11-20/gex-spx") != "" })
	if err := o.stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := join(t, at, t.TempDir(), true)
	until(t, "a new edge follows", func() bool { return e.shows(gamma, `"1"`) })
}

// A file that the refresher cannot read does not hold up the others.
func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	at := urlOf(startNATS(t, t.TempDir(), 0))
	a := refresher(t, at)
	a.save(gamma, `"1"`, friday)
	a.save(pain, `"1"`, friday)
	e := join(t, at, t.TempDir(), true)
	until(t, "the edge follows", func() bool { return e.shows(gamma, `"1"`) && e.shows(pain, `"1"`) })
	disk := filepath.Join(a.dir, "simulated", "2026-11-20"+"/"+snapshots.FileName(pain))
	b, err := os.ReadFile(disk)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-3] ^= 1
	if err := os.WriteFile(disk, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newOperator(t, at).js.DeleteStream(t.Context(), "strikecache-simulated"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		data := fmt.Sprintf(`"%d"`, i+2)
		a.save(gamma, data, friday.Add(time.Duration(i+1)*time.Minute))
		until(t, "the edge shows the other answer", func() bool { return e.shows(gamma, data) })
	}
	if !a.log.has("file not published") {
		t.Error("the log does not name the file")
	}
}
