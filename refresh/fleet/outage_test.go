package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// A member that has lost NATS keeps what it has, and is current soon after NATS is back. When NATS comes back empty, the members whose answers are
// newer lead: a member that was emptied or restored waits for them. An answer that lost rows replaces none that has them.
func TestOutage(t *testing.T) {
	t.Parallel()
	nats := startNATS(t, t.TempDir(), 0)
	at, port := urlOf(nats), portOf(nats)
	a, e := pair(t, at)
	stopNATS(nats)
	until(t, "the edge knows", func() bool { return !e.Status().Connected && !e.Complete() })
	a.save(gamma, `"2"`, friday.Add(time.Minute)) // the refresher may go on while its lease lasts
	until(t, "no refresher is heard of", func() bool { return !e.Status().SilentSince.IsZero() })
	until(t, "the lease expires", func() bool { return !a.refreshes() && !a.Holds() })
	if !e.shows(gamma, `"1"`) {
		t.Error("the edge has lost its answer")
	}
	late := start(t, Flags{NATS: at}, t.TempDir(), func(m *Member) {
		m.cfg.Process.(*node).behind, m.heard = 24*time.Hour, time.Now().Add(-time.Hour) // as if it had waited for NATS
	})
	startNATS(t, t.TempDir(), port)
	until(t, "the member that has the answers leads", a.refreshes)
	if late.refreshes() || late.log.has("holds the lease") {
		t.Error("the member without answers has led")
	}
	until(t, "the others have what was stored meanwhile", func() bool {
		return e.shows(gamma, `"2"`) && e.Status().SilentSince.IsZero() && late.shows(gamma, `"2"`)
	})
	a.save(gamma, `"a track that has many rows"`, friday.Add(2*time.Minute))
	until(t, "the edge follows again", func() bool {
		s := e.Status()
		return e.shows(gamma, `"a track that has many rows"`) && s.Reconnects > 0 && s.Err == nil
	})
	a.save(gamma, `"short"`, friday.Add(3*time.Minute))
	until(t, "the edge refuses it and says so", func() bool {
		err := e.Status().Err
		return e.Status().Refused["older"] > 0 && err != nil && strings.Contains(err.Error(), "stop the refresher")
	})
	if f, err := e.store.LoadCurrent(gamma); err != nil || string(f.Edition.Default.Data()) != `"a track that has many rows"` {
		t.Error("the edge has lost the rows")
	}
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
	o.write(o.now())
	until(t, "the edge applies the manifest again", func() bool { return e.shows(gamma, `"1"`) && !e.toldSilent() })
}

// Whatever NATS loses, and whatever stands in the bucket, the fleet goes on from the files of its members, and a new edge gets all of them. A file
// that cannot be read holds up no other.
func TestWhatNATSLoses(t *testing.T) {
	t.Parallel()
	type rig struct {
		t    *testing.T
		dir  string // of the NATS server
		nats *server.Server
		a    *node
		o    operator
		torn bool // the refresher cannot read a file
	}
	restart := func(r *rig, meanwhile func()) {
		port := portOf(r.nats)
		stopNATS(r.nats)
		meanwhile()
		r.nats = startNATS(r.t, r.dir, port)
	}
	drop := func(r *rig, streams ...string) {
		js, err := jetstream.New(r.o.conn)
		must(r.t, err)
		for _, name := range streams {
			must(r.t, js.DeleteStream(r.t.Context(), name))
		}
	}
	often := func(m *Member) { m.surveyEvery = 2 * time.Second }
	for what, harm := range map[string]func(*rig){
		"one blob":  func(r *rig) { must(r.t, r.o.remove(r.a.store.Digest(snapshots.CurrentPath(pain)))) },
		"all blobs": func(r *rig) { drop(r, "KV_"+r.o.files.Bucket()) },
		"the first chunk of each blob, while nobody leads": func(r *rig) { // as a put into a full bucket leaves them
			r.a.stop()
			must(r.t, r.o.stream.Purge(r.t.Context(), jetstream.WithPurgeSubject("$KV."+r.o.files.Bucket()+".*.0")))
			r.a = start(r.t, Flags{NATS: urlOf(r.nats)}, r.a.dir, often)
			until(r.t, "the member refreshes", r.a.refreshes)
			r.a.save(pain, noise(300_000), friday) // it has not followed, so it serves nothing yet
		},
		"all, and a file of the refresher is damaged": func(r *rig) {
			disk := filepath.Join(r.a.dir, "simulated", "2026-11-20", snapshots.FileName(pain))
			b, err := os.ReadFile(disk)
			must(r.t, err)
			b[len(b)-3] ^= 1
			r.torn = true
			must(r.t, os.WriteFile(disk, b, 0o600))
			drop(r, "KV_"+r.o.name, "KV_"+r.o.files.Bucket())
			until(r.t, "the log names the file", func() bool { return r.a.log.has("file not published") })
		},
		"the pointer to nonsense": func(r *rig) {
			r.o.write(pointer{})
			until(r.t, "the member has lost the lease", func() bool { return r.a.log.has("no longer holds") })
			r.o.write(pointer{Holder: "nobody", Term: 7, Manifest: "{{{"})
			until(r.t, "the member has a higher lease", func() bool { return r.a.refreshes() && r.a.Status().Lease == 8 })
		},
		"the last messages": func(r *rig) {
			before := r.t.TempDir()
			restart(r, func() { must(r.t, os.CopyFS(before, os.DirFS(r.dir))) })
			for i := range 10 {
				r.a.save(pain, fmt.Sprint(i), friday.Add(time.Duration(i)*time.Second))
			}
			r.a.save(pain, noise(300_000), friday.Add(time.Minute))
			restart(r, func() { must(r.t, errors.Join(os.RemoveAll(r.dir), os.CopyFS(r.dir, os.DirFS(before)))) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, dir: t.TempDir()}
			r.nats = startNATS(t, r.dir, 0)
			at := urlOf(r.nats)
			r.a = start(t, Flags{NATS: at}, t.TempDir(), often)
			until(t, "the member refreshes", r.a.refreshes)
			r.a.save(gamma, `"1"`, friday)
			r.a.save(pain, noise(300_000), friday)
			e := join(t, at, t.TempDir(), true)
			until(t, "an edge follows", func() bool { return e.shows(gamma, `"1"`) && e.shows(pain, noise(300_000)) })
			r.o = newOperator(t, at)
			harm(r)
			r.a.save(gamma, `"2"`, friday.Add(time.Minute))
			fresh := join(t, at, t.TempDir(), true)
			until(t, "the edge and a new one have all", func() bool {
				return e.shows(gamma, `"2"`) && fresh.shows(gamma, `"2"`) && (r.torn || fresh.shows(pain, noise(300_000))) && fresh.Complete() && r.a.refreshes()
			})
		})
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
