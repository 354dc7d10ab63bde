package fleet

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// A member goes on when files were removed from the stream before it got them.
func TestFilesThatAreGone(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	e := start(t, Flags{NATS: at, Edge: true}, t.TempDir(), nil)
	disk := make(chan struct{})
	e.mu.Lock()
	e.hang = disk
	e.mu.Unlock()
	for i := range 10 {
		a.save(gamma, fmt.Sprint(i), friday.AddDate(0, 0, i-10))
	}
	a.save(gamma, `"1"`, friday)
	until(t, "the edge hangs at the first file", e.toldSilent)
	if _, err := a.store.Expire(snapshots.Ages{FilesBefore: "2026-11-20", Products: []string{gamma}}); err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, at)
	until(t, "the files are gone", func() bool { return o.digest("2026-11-19/gex-spx") == "" })
	close(disk)
	until(t, "the edge shows the answer", func() bool { return e.shows(gamma, `"1"`) && e.Status().Err == nil })
	for line := range strings.Lines(e.log.text()) {
		has := func(word string) bool { return strings.Contains(line, word) }
		late := has("timeout") || has("deadline exceeded") // a call that took too long on a slow machine
		if has("refused") || has("not found") || has("gex-spx") && !late {
			t.Errorf("the log names a file that was removed: %s", line)
		}
	}
}

// A file of which a refresher that was killed has replaced the first part is published again, by that refresher or the next one.
func TestAPartOfAFile(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	data, path := noise(2*maxPart), snapshots.CurrentPath(pain)
	a.save(pain, data, friday)
	b := join(t, at, t.TempDir(), false)
	until(t, "another member follows", func() bool { return b.shows(pain, data) })
	o, lease := newOperator(t, at), fmt.Sprint(a.Status().Lease)
	for _, ends := range []bool{false, true} {
		if ends {
			a.stop()
		}
		o.publish("file."+path+".0", lease, []byte("new"), digestHeader, strings.Repeat("0", 64), partsHeader, "2")
		until(t, "the file is whole again", func() bool { return o.digest(path) == b.store.Digest(path) })
		e := join(t, at, t.TempDir(), true)
		until(t, "a new edge follows", func() bool { return e.shows(pain, data) })
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
	s := &link{Member: m}
	if err := s.see(t.Context(), lateMessage{}); err == nil || s.seen != 0 {
		t.Errorf("%v, seen up to %d", err, s.seen)
	}
}

// A stream that is deleted does not end a fleet. A file that the refresher cannot read does not hold up the others.
func TestAFileThatCannotBeRead(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	a.save(pain, `"1"`, friday)
	until(t, "the edge follows", func() bool { return e.shows(pain, `"1"`) })
	disk := filepath.Join(a.dir, "simulated", "2026-11-20"+"/"+snapshots.FileName(pain))
	b, err := os.ReadFile(disk)
	must(t, err)
	b[len(b)-3] ^= 1
	must(t, os.WriteFile(disk, b, 0o600))
	must(t, newOperator(t, at).js.DeleteStream(t.Context(), "strikecache-simulated"))
	for i := range 3 {
		data := fmt.Sprintf(`"%d"`, i+2)
		a.save(gamma, data, friday.Add(time.Duration(i+1)*time.Minute))
		until(t, "the edge shows the other answer", func() bool { return e.shows(gamma, data) })
	}
	until(t, "the log names the file", func() bool { return a.log.has("file not published") })
}
