package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strikecache/snapshots"
)

// restarted starts a member again that knows what it knew before, as one that was cut off meanwhile.
func restarted(t *testing.T, at string, n *node, change func(*Member)) *node {
	t.Helper()
	was := n.Member
	return start(t, Flags{NATS: at, NATSReplicas: 1, Edge: true}, n.dir, func(m *Member) {
		m.created, m.seen, m.term, m.objects, m.joined = was.created, was.seen, was.term, was.objects, was.joined
		change(m)
	})
}

// A member that was away for two leases gets the files of both, although the stream keeps only the beginning of the second.
func TestAMemberThatMissedTwoLeases(t *testing.T) {
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
	back := restarted(t, at, e, func(*Member) {})
	c.save(gamma, `"2"`, friday.Add(time.Minute))
	until(t, "the edge has the files of both", func() bool { return back.shows(gamma, `"2"`) && back.shows(pain, `"of b"`) })
	if back.log.has("refused") {
		t.Error("it has refused a good file")
	}
}

// An edge sees that messages which it knows were lost, although others have their numbers by now.
func TestAStreamThatWasSetBackAndGoesOn(t *testing.T) {
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
	back := restarted(t, at, e, func(m *Member) { m.seen = info.State.LastSeq })
	until(t, "the edge has the file", func() bool { return back.shows(pain, `"2"`) })
}

// After an operator has removed all messages, the refresher publishes its files again.
func TestAStreamThatWasPurged(t *testing.T) {
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
	at := urlOf(startNATS(t, t.TempDir(), 0))
	a := refresher(t, at)
	a.save(gamma, `"1"`, friday)
	a.save(pain, `"1"`, friday)
	e := join(t, at, t.TempDir(), true)
	until(t, "the edge follows", func() bool { return e.shows(gamma, `"1"`) && e.shows(pain, `"1"`) })
	disk := filepath.Join(a.dir, "simulated", snapshots.Path(pain, "2026-11-20", false))
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
