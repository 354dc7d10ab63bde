package fleet

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
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

// A member that alone was cut off has the freshness of the fleet again as soon as it hears of it, also if nothing was published meanwhile.
func TestCutOffAlone(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	a.stop()
	until(t, "the edge hears of no refresher", e.toldSilent)
	e.mu.Lock()
	e.followed = nil
	e.mu.Unlock()
	o := newOperator(t, at)
	p := o.now()
	p.Released = false
	o.write(p)
	until(t, "the edge applies the manifest again", func() bool { return e.shows(gamma, `"1"`) && !e.toldSilent() })
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

// NATS has lost blobs, as a server that lost its power does: the fleet goes on from the files of the members.
func TestLostBlobs(t *testing.T) {
	at := ownNATS(t)
	a, _ := pair(t, at)
	a.save(pain, noise(300_000), friday)
	o := newOperator(t, at)
	a.stop()
	must(t, o.remove(o.now().Manifest))
	must(t, o.stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+o.files.Bucket()+".*.0"))) // as a put into a full bucket leaves the others
	a = start(t, Flags{NATS: at}, a.dir, func(m *Member) { m.surveyEvery = 2 * time.Second })
	until(t, "the member refreshes", a.refreshes)
	a.save(gamma, `"1"`, friday) // it has not followed, so it serves nothing yet
	a.save(pain, noise(300_000), friday)
	js, err := jetstream.New(o.conn)
	must(t, err)
	for what, lose := range map[string]func() error{
		"one": func() error { return o.remove(a.store.Digest(snapshots.CurrentPath(pain))) },
		"all": func() error { return js.DeleteStream(t.Context(), "KV_"+o.files.Bucket()) },
	} {
		must(t, lose())
		e := join(t, at, t.TempDir(), true)
		until(t, "a new edge has all after the loss of "+what, func() bool { return e.shows(pain, noise(300_000)) && e.shows(gamma, `"1"`) })
		until(t, "the member refreshes", a.refreshes)
	}
}

// Nonsense in the bucket does not end a fleet, nor does an operator who deletes the bucket: the next refresher fills it again. A file that it
// cannot read holds up no other.
func TestABucketThatIsBroken(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	a.save(pain, `"1"`, friday)
	until(t, "the edge follows", func() bool { return e.shows(pain, `"1"`) })
	o := newOperator(t, at)
	o.write(pointer{Holder: "nobody", Term: 7, Manifest: "{{{"})
	until(t, "the member has lost the lease", func() bool { return a.log.has("no longer holds") })
	o.write(pointer{})
	until(t, "the member refreshes again", a.refreshes)
	if a.Status().Lease < 8 {
		t.Errorf("lease %d after lease 7", a.Status().Lease)
	}
	a.save(gamma, `"2"`, friday.Add(time.Minute))
	until(t, "the edge shows the next answer", func() bool { return e.shows(gamma, `"2"`) })
	disk := filepath.Join(a.dir, "simulated", "2026-11-20", snapshots.FileName(pain))
	b, err := os.ReadFile(disk)
	must(t, err)
	b[len(b)-3] ^= 1
	must(t, os.WriteFile(disk, b, 0o600))
	js, err := jetstream.New(o.conn)
	must(t, err)
	must(t, errors.Join(js.DeleteStream(t.Context(), "KV_strikecache-simulated"), js.DeleteStream(t.Context(), "KV_strikecache-simulated-files")))
	until(t, "the log names the file", func() bool { return a.log.has("file not published") })
	fresh := join(t, at, t.TempDir(), true)
	until(t, "a new edge follows", func() bool { return fresh.shows(gamma, `"2"`) && fresh.Complete() })
}

// A NATS server that lost its last messages in a power failure does not end a fleet.
func TestAServerThatWasSetBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nats := startNATS(t, dir, 0)
	at, port := urlOf(nats), portOf(nats)
	a, e := pair(t, at)
	stopNATS(nats)
	before := t.TempDir()
	must(t, os.CopyFS(before, os.DirFS(dir)))
	nats = startNATS(t, dir, port)
	for i := range 10 {
		a.save(pain, fmt.Sprint(i), friday.Add(time.Duration(i)*time.Second))
	}
	until(t, "the edge has the last", func() bool { return e.shows(pain, "9") })
	stopNATS(nats)
	must(t, errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(before))))
	startNATS(t, dir, port)
	a.save(gamma, `"2"`, friday.Add(time.Minute))
	until(t, "the edge shows the next answer", func() bool { return e.shows(gamma, `"2"`) })
	fresh := join(t, at, t.TempDir(), true)
	until(t, "a new edge has all files", func() bool { return maps.Equal(fresh.files(), a.files()) && fresh.shows(pain, "9") })
}

// When NATS comes back empty, the members whose answers are newer lead: a member that was emptied or restored waits for them. An answer that lost
// rows replaces none that has them.
func TestTheMemberWithMoreLeads(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, t.TempDir(), 0)
	at, port := urlOf(nats), portOf(nats)
	a, e := pair(t, at)
	stopNATS(nats)
	until(t, "the lease is lost", func() bool { return !a.refreshes() })
	restored := t.TempDir()
	late := start(t, Flags{NATS: at}, restored, func(m *Member) {
		m.cfg.Process.(*node).behind, m.heard = 24*time.Hour, time.Now().Add(-time.Hour) // as if it had waited for NATS
	})
	startNATS(t, t.TempDir(), port)
	until(t, "the member that has the answers leads", func() bool { return a.refreshes() })
	if late.refreshes() || late.log.has("holds the lease") {
		t.Error("the member without answers has led")
	}
	until(t, "the restored member has all", func() bool { return late.shows(gamma, `"1"`) })
	a.save(gamma, `"a track that has many rows"`, friday.Add(time.Minute))
	until(t, "the edge follows", func() bool { return e.shows(gamma, `"a track that has many rows"`) })
	a.save(gamma, `"short"`, friday.Add(2*time.Minute))
	until(t, "the edge refuses it and says so", func() bool {
		err := e.Status().Err
		return e.Status().Refused["older"] > 0 && err != nil && strings.Contains(err.Error(), "stop the refresher")
	})
	if f, err := e.store.LoadCurrent(gamma); err != nil || string(f.Edition.Default.Data()) != `"a track that has many rows"` {
		t.Error("the edge has lost the rows")
	}
}

// A full bucket is told, and the fleet goes on when there is room.
func TestAFullBucket(t *testing.T) {
	at := ownNATS(t)
	a, e := start(t, Flags{NATS: at}, t.TempDir(), func(m *Member) { m.surveyEvery = 2 * time.Second }), join(t, at, t.TempDir(), true)
	until(t, "the member refreshes", a.refreshes)
	a.save(gamma, `"1"`, friday)
	until(t, "the edge follows", func() bool { return e.shows(gamma, `"1"`) })
	o := newOperator(t, at)
	js, err := jetstream.New(o.conn)
	must(t, err)
	limit := func(bytes int64) {
		cfg := o.stream.CachedInfo().Config
		cfg.MaxBytes = bytes
		_, err := js.UpdateStream(t.Context(), cfg)
		must(t, err)
	}
	limit(10_000)
	var saving sync.WaitGroup
	saving.Go(func() { a.save(pain, noise(50_000), friday) })
	until(t, "the refresher says that the bucket is full", func() bool {
		err := a.Status().Err
		return err != nil && strings.Contains(err.Error(), "the bucket is full")
	})
	if !e.shows(gamma, `"1"`) || !a.Holds() {
		t.Error("the edge has lost its answer, or the refresher its lease")
	}
	if d := a.store.Digest("2026-11-20/" + pain); d != "" {
		t.Error("the refresher has stored what the fleet does not get")
	}
	limit(maxBucketBytes)
	saving.Wait()
	until(t, "the edge shows what had no room", func() bool { return e.shows(pain, noise(50_000)) && a.Status().Err == nil })
	a.save(pain, `"short"`, friday.Add(time.Minute))
	info, err := o.stream.Info(t.Context())
	must(t, err)
	limit(int64(info.State.Bytes) - 1)
	a.save(pain, noise(40_000), friday.Add(2*time.Minute)) // when the blob that nothing names any more is gone
	a.stop()
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
func TestFilesOfManySizes(t *testing.T) {
	at := ownNATS(t)
	a := refresher(t, at)
	e := join(t, at, t.TempDir(), true)
	for i, size := range []int{10, 128 << 10, 1_000_000, 10} {
		a.save(pain, noise(size), friday.Add(time.Duration(i)*time.Minute))
		until(t, "the edge follows", func() bool { return e.shows(pain, noise(size)) })
	}
	if e.log.has("refused") {
		t.Errorf("the edge has refused a file:\n%s", e.log.text())
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
