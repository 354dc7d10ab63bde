package fleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A member that has lost NATS keeps what it has, and is current soon after NATS is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nats := startNATS(t, dir, 0)
	at := urlOf(nats)
	port := portOf(nats)
	a, e := pair(t, at)

	stopNATS(nats)
	until(t, "the edge knows", func() bool { return !e.Status().Connected && !e.Complete() })
	a.save(gamma, `"2"`, friday.Add(time.Minute)) // the refresher may go on while its lease lasts
	until(t, "no refresher is heard of", func() bool { return !e.Status().SilentSince.IsZero() })
	until(t, "the lease expires", func() bool { return !a.refreshes() && !a.Holds() })
	if !e.shows(gamma, `"1"`) {
		t.Error("the edge has lost its answer")
	}
	startNATS(t, dir, port)
	until(t, "the member refreshes again", a.refreshes)
	until(t, "the edge has what was stored meanwhile", func() bool { return e.shows(gamma, `"2"`) && e.Status().SilentSince.IsZero() })
	a.save(gamma, `"3"`, friday.Add(2*time.Minute))
	until(t, "the edge follows again", func() bool { return e.shows(gamma, `"3"`) })
	until(t, "the edge has reconnected", func() bool { return e.Status().Reconnects > 0 && e.Status().Err == nil })
}

// A member that was away for a whole lease gets the files of that lease, also while nobody holds it, and before it refreshes.
func TestAMemberThatWasAway(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	a.save(gamma, `"1"`, friday)
	away := join(t, at, t.TempDir(), false)
	until(t, "the other follows", func() bool { return away.shows(gamma, `"1"`) })
	away.stop()
	a.stop()
	b := refresher(t, at)
	b.save(gamma, `"2"`, friday.Add(time.Minute))
	b.stop()
	back := join(t, at, away.dir, false)
	until(t, "the member that was away refreshes", back.refreshes)
	if f, err := back.store.LoadCurrent(gamma); err != nil || string(f.Edition.Default.Data()) != `"2"` {
		t.Errorf("it refreshes without the file of the lease that it has missed: %v\n%s", err, back.log.lines.String())
	}
}

// Nonsense in the stream does not end a fleet. After an operator has removed all messages, the refresher publishes its files again.
func TestNonsenseInTheStream(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	o := newOperator(t, at)
	o.publish(currentSubject, "1", []byte("{{{"))
	o.publish(leaseSubject, "1", []byte("{{{"))
	o.publish(aliveSubject, "1", []byte("{{{"))
	until(t, "the member has lost the lease", func() bool { return a.log.has("no longer holds") })
	until(t, "the member refreshes again", a.refreshes)
	a.save(gamma, `"2"`, friday.Add(time.Minute))
	until(t, "the edge shows the next answer", func() bool { return e.shows(gamma, `"2"`) })
	until(t, "the file is in the stream", func() bool { return o.digest("2026-11-20/gex-spx") == a.store.Digest("2026-11-20/gex-spx") })
	must(t, o.stream.Purge(t.Context()))
	fresh := join(t, at, t.TempDir(), true)
	until(t, "a new edge follows", func() bool { return fresh.shows(gamma, `"2"`) })
}

// A full stream is told, and the fleet goes on when there is room.
func TestAFullStream(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	o := newOperator(t, at)
	cfg := o.stream.CachedInfo().Config
	room := cfg.MaxBytes
	cfg.MaxBytes = 10_000
	if _, err := o.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	var saving sync.WaitGroup
	saving.Go(func() { a.save(pain, noise(50_000), friday) })
	until(t, "the refresher says that the stream is full", func() bool {
		err := a.Status().Err
		return err != nil && strings.Contains(err.Error(), "maximum bytes exceeded")
	})
	if !e.shows(gamma, `"1"`) {
		t.Error("the edge has lost its answer")
	}
	if d := a.store.Digest("2026-11-20/" + pain); d != "" {
		t.Error("the refresher has stored what the fleet does not get")
	}
	cfg.MaxBytes = room
	if _, err := o.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	saving.Wait()
	until(t, "the edge shows what had no room", func() bool { return e.shows(pain, noise(50_000)) })
	info, err := o.stream.Info(t.Context())
	if err != nil || a.log.has("over 80 % full") {
		t.Fatalf("%v, or the log says of a stream with room that it is full", err)
	}
	cfg.MaxBytes = int64(info.State.Bytes) * 10 / 9
	if _, err := o.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	until(t, "the log says that the stream is nearly full", func() bool { return a.log.has("over 80 % full") })
}

// noise returns JSON text of n bytes that does not compress well.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[random.IntN(64)]
	}
	return fmt.Sprintf("%q", text)
}

// A file of several messages stays whole while it grows and shrinks.
func TestPartsOfAFile(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	e := join(t, at, t.TempDir(), true)
	for i, size := range []int{10, 3 * maxPart, 10, maxPart, 2 * maxPart, 10} {
		data := noise(size)
		a.save(pain, data, friday.Add(time.Duration(i)*time.Minute))
		until(t, "the edge follows", func() bool { return e.shows(pain, data) })
		fresh := join(t, at, t.TempDir(), true)
		until(t, "a new edge follows", func() bool { return fresh.shows(pain, data) && maps.Equal(fresh.files(), a.files()) })
		for name, member := range map[string]*node{"edge": e, "new edge": fresh} {
			if member.log.has("refused") {
				t.Errorf("the %s has refused a file of %d bytes:\n%s", name, size, member.log.lines.String())
			}
		}
		fresh.stop()
	}
}

// The age of the answers is judged although the disk hangs, and although the NATS server says nothing.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	alone := join(t, "nats://"+silent.Addr().String(), t.TempDir(), true)
	until(t, "a member that was never connected judges its answers", func() bool { return alone.toldSilent() })
	alone.stop()

	nats := startNATS(t, t.TempDir(), 0)
	a := refresher(t, urlOf(nats))
	hang := make(chan struct{})
	e := join(t, urlOf(nats), t.TempDir(), true)
	e.mu.Lock()
	e.hang = hang
	e.mu.Unlock()
	a.save(gamma, `"1"`, friday)
	until(t, "a member whose disk hangs judges its answers", func() bool { return e.toldSilent() })
	close(hang)
	until(t, "it follows when the disk works", func() bool { return e.shows(gamma, `"1"`) && !e.toldSilent() })
}
