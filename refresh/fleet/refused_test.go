package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"strikecache/snapshots"
)

// TestRefusedObjects puts objects that no member may accept. Each is refused, named and counted, and nothing of it is written.
func TestRefusedObjects(t *testing.T) {
	at := ownNATS(t)
	a, e := pair(t, at)
	o := newOperator(t, at)
	lease := fmt.Sprint(a.Status().Lease)
	a.stop() // else it puts its own files in the place of the bad ones
	until(t, "the lease is free", func() bool {
		msg, err := o.stream.GetLastMsgForSubject(t.Context(), "strikecache.simulated."+aliveSubject)
		return err == nil && len(msg.Data) == 0
	})
	until(t, "the edge is at rest", func() bool { return e.files()["2026-11-20/gex-spx"] != "" })

	const date = "2026-11-20"
	good := body(t, pain, sealed(t, "simulated", pain, `"new"`, friday.Add(time.Hour)))
	path := date + "/" + snapshots.FileName(pain)
	altered := bytes.Clone(good)
	altered[len(altered)/2] ^= 1
	for _, c := range []struct {
		what, name, reason string
		put                func(name string)
	}{
		{"altered", path, reasonCorrupt, func(name string) { o.put(name, altered, lease, "") }},
		{"truncated", path, reasonCorrupt, func(name string) { o.put(name, good[:len(good)-1], lease, "") }},
		{"empty", path, reasonCorrupt, func(name string) { o.put(name, nil, lease, strings.Repeat("0", 64)) }},
		{"no file", path, reasonCorrupt, func(name string) { o.put(name, []byte("hello\n"), lease, "x") }},
		{"another file than announced", path, reasonCorrupt, func(name string) { o.put(name, good, lease, strings.Repeat("0", 64)) }},
		{"under another date", "2026-11-19/" + pain, reasonCorrupt, func(name string) { o.put(name, good, lease, "") }},
		{"under another product", date + "/gex-spx", reasonCorrupt, func(name string) { o.put(name, good, lease, "") }},
		{"newer format", path, reasonFormat, func(name string) {
			o.put(name, bytes.Replace(good, []byte(`"format":1`), []byte(`"format":9`), 1), lease, "")
		}},
		{"other source", path, reasonForeign, func(name string) {
			o.put(name, body(t, pain, sealed(t, "cboe", pain, `1`, friday)), lease, "")
		}},
		{"unknown product", date + "/new-product", reasonForeign, func(name string) {
			o.put(name, body(t, "new/product", sealed(t, "simulated", "new/product", `1`, friday)), lease, "")
		}},
		{"of another resource", path, reasonForeign, func(name string) {
			o.put(name, body(t, pain, sealed(t, "simulated", gamma, `1`, friday)), lease, "")
		}},
		{"older", date + "/gex-spx", reasonOlder, func(name string) {
			o.put(name, body(t, gamma, sealed(t, "simulated", gamma, `"old"`, friday.Add(-time.Minute))), lease, "")
		}},
		{"of the year 2099", "2099-11-20/" + pain, reasonForeign, func(name string) {
			o.put(name, body(t, pain, sealed(t, "simulated", pain, `"never replaced"`, time.Date(2099, 11, 20, 15, 0, 0, 0, time.UTC))), lease, "")
		}},
		{"absolute", "/etc/passwd", reasonPath, func(name string) { o.put(name, good, lease, "") }},
		{"temporary", date + "/.tmp-x-1", reasonPath, func(name string) { o.put(name, good, lease, "") }},
		{"no date", "identity", reasonPath, func(name string) { o.put(name, good, lease, "") }},
		{"no lease", path, reasonLease, func(name string) { o.put(name, good, "", "") }},
		{"a lease that nobody took", path, reasonLease, func(name string) { o.put(name, good, "99999999", "") }},
		{"100 MB", path, reasonSize, func(name string) { o.put(name, make([]byte, 100_000_000), lease, "x") }},
		{"parts are missing", path, reasonCorrupt, func(name string) {
			o.publish("file."+name+".2", lease, good, digestHeader, strings.Repeat("1", 64), partsHeader, "3")
		}},
		{"a part of no file", path, reasonCorrupt, func(name string) { o.publish("file."+name+".0", lease, good) }},
		{"current answers of a lease that nobody took", currentSubject, reasonLease, func(name string) {
			o.publish(name, "99999999", []byte(`{"resources":{}}`))
		}},
		{"no part", date + "/no-part", reasonCorrupt, func(name string) { o.publish("file."+name, lease, good, partsHeader, "1") }},
		{"too many parts", path, reasonCorrupt, func(name string) { o.publish("file."+name+".9", lease, good, partsHeader, "10") }},
	} {
		t.Run(c.what, func(t *testing.T) {
			before, files := e.Status().Refused, e.files()
			c.put(c.name)
			if c.reason == reasonSize {
				defer func() {
					if !e.log.has("100000000 bytes, the limit is") {
						t.Error("it was loaded before it was refused")
					}
				}()
			}
			until(t, "refused as "+c.reason, func() bool { return e.Status().Refused[c.reason] > before[c.reason] })
			if !e.log.has("object=" + c.name + " ") {
				t.Errorf("the log does not name %s", c.name)
			}
			if now := e.files(); !maps.Equal(now, files) {
				t.Errorf("files changed: %d, before %d", len(now), len(files))
			}
		})
	}
	for _, name := range []string{"../" + pain, date + "/../../x"} { // it leaves the directory
		if _, err := o.js.Publish(t.Context(), "strikecache.simulated.file."+name+".0", good); err == nil {
			t.Errorf("JetStream takes a message of %s", name)
		}
	}
	o.put(path, good, lease, "")
	until(t, "a good object is stored", func() bool { return e.files()[path] == string(good) })

	// Another lease begins. What was put under the one before arrives late.
	o.publish(leaseSubject, lease, nil)
	files, before := e.files(), e.Status().Refused[reasonLease]
	o.put(path, body(t, pain, sealed(t, "simulated", pain, `"late"`, friday.Add(2*time.Hour))), lease, "")
	o.publish(currentSubject, lease, []byte(`{"resources":{}}`))
	until(t, "both are refused", func() bool { return e.Status().Refused[reasonLease] == before+2 })
	if !maps.Equal(e.files(), files) || !e.shows(gamma, `"1"`) {
		t.Error("what arrived late changed the edge")
	}
}
