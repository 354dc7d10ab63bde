package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const delta = "options/flow/unusual"

func openWithDeltas(t testing.TB) *Store {
	t.Helper()
	s, err := Open(Options{Dir: t.TempDir(), Source: "simulated", Deltas: map[string][]string{delta: {"", "100"}}, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// answerOf returns the n-th of a row of answers, of which each differs a little from the one before.
func answerOf(t testing.TB, n, size int) *Snapshot {
	t.Helper()
	return sealed(t, fmt.Sprintf(`{"n":%d,"document":%s}`, n, document(size)))
}

// publishOne publishes an answer of a resource and returns what the store serves.
func (s *Store) publishOne(t testing.TB, resource string, answer *Snapshot) *Snapshot {
	t.Helper()
	must(t, s.Publish(map[string]*Edition{resource: {Default: answer, Variants: map[string]*Snapshot{"20": answer}}}))
	return s.Current(resource).Default
}

// announced returns the Available-Dictionary of a client that has an answer.
func announced(s *Snapshot) []byte {
	sum := sha256.Sum256(s.Body(Identity))
	return []byte(":" + base64.StdEncoding.EncodeToString(sum[:]) + ":")
}

// checkDelta checks a delta against an earlier answer: the form of RFC 9842, the tag, and that it decodes to the answer.
func checkDelta(t *testing.T, d *Delta, answer, earlier *Snapshot) {
	t.Helper()
	sum := sha256.Sum256(earlier.Body(Identity))
	if d == nil {
		t.Errorf("no delta of %.30s against %.30s", answer.Data(), earlier.Data())
		return
	}
	frame, ok := bytes.CutPrefix(d.Body, append([]byte{0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0}, sum[:]...))
	if !ok {
		t.Fatalf("the delta begins with %x", d.Body[:min(40, len(d.Body))])
	}
	var header zstd.Header
	if err := header.Decode(frame); err != nil || header.DictionaryID != 0 || max(header.WindowSize, header.FrameContentSize) > 8<<20 {
		t.Errorf("%v: zstd frame %+v", err, header)
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, earlier.Body(Identity)))
	must(t, err)
	defer z.Close()
	if got, err := z.DecodeAll(frame, nil); err != nil || !bytes.Equal(got, answer.Body(Identity)) {
		t.Errorf("the delta of %.30s against %.30s decodes to %.60q, %v", answer.Data(), earlier.Data(), got, err)
	}
	want := strings.TrimSuffix(answer.ETag(Identity), `"`) + "-dcz-" + hex.EncodeToString(sum[:8]) + `"`
	failIf(t, d.ETag != want || !answer.Matches([]byte(d.ETag)) || earlier.Matches([]byte(d.ETag)), "tag %s, want %s", d.ETag, want)
}

// An answer comes with deltas against the last four answers before it, whatever their size, and against no other. One that is
// published again, as after a start, counts once.
func TestDeltas(t *testing.T) {
	for _, c := range []struct{ size, answers int }{{30, 7}, {3 << 10, 7}, {300 << 10, 2}, {3 << 20, 2}} { // the last is over the window of the encoder
		s, size := openWithDeltas(t), c.size
		var all []*Snapshot
		for n := range c.answers {
			all = append(all, answerOf(t, n, size+n*size/20))
			got := s.publishOne(t, delta, all[n])
			sameSnapshot(t, "published", got, all[n])
			failIf(t, !got.IsDictionary(), "no dictionary")
			for m, earlier := range all {
				if m < n-4 || m == n {
					failIf(t, got.Delta(announced(earlier)) != nil, "answer %d has a delta against answer %d", n, m)
					continue
				}
				d := got.Delta(announced(earlier))
				checkDelta(t, d, all[n], earlier)
				failIf(t, d != nil && size == 3<<10 && m == n-1 && len(d.Body) > len(all[n].Body(Zstd))/2, "%d bytes, without a base %d", len(d.Body), len(all[n].Body(Zstd)))
			}
			for _, unknown := range []string{"", "::", ":AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:", string(announced(all[n]))[1:]} {
				failIf(t, got.Delta([]byte(unknown)) != nil, "a delta against %q", unknown)
			}
			s.publishOne(t, delta, all[n])
		}
	}
}

// Only the answers in Options.Deltas are dictionaries, each for its own parameter value. What the caller published stays as it
// is.
func TestDeltasOfKinds(t *testing.T) {
	s := openWithDeltas(t)
	first, large := answerOf(t, 0, 1<<10), answerOf(t, 0, 2<<10)
	s.publishOne(t, delta, first)
	must(t, s.Publish(map[string]*Edition{delta: {Default: first, Variants: map[string]*Snapshot{"100": large}}}))
	e := &Edition{Default: answerOf(t, 1, 1<<10)}
	e.Variants = map[string]*Snapshot{"1": answerOf(t, 1, 10), "20": e.Default, "100": answerOf(t, 1, 2<<10)}
	must(t, s.Publish(map[string]*Edition{delta: e, gamma: e}))
	now := s.Current(delta)
	checkDelta(t, now.Default.Delta(announced(first)), e.Default, first)
	checkDelta(t, now.Variants["100"].Delta(announced(large)), e.Variants["100"], large)
	failIf(t, now.Default.Delta(announced(large)) != nil || now.Variants["100"].Delta(announced(first)) != nil, "a delta against an answer to another parameter value")
	failIf(t, now.Default != now.Variants["20"] || e.Default != e.Variants["20"], "the default is not one of the variants")
	failIf(t, now.Default.Variant() != "" || now.Variants["100"].Variant() != "100", "dictionaries of %q and %q", now.Default.Variant(), now.Variants["100"].Variant())
	for name, other := range map[string]*Snapshot{
		"published": e.Default, "published variant": e.Variants["100"], "another variant": now.Variants["1"], "another resource": s.Current(gamma).Default,
	} {
		failIf(t, other.IsDictionary() || other.Delta(announced(first)) != nil, "%s: a dictionary", name)
	}
	failIf(t, s.Current(gamma) != e, "the edition of another resource was copied")
}

// Servers of a fleet make their deltas themselves. The same answer and base give the same bytes under the same tag, from a new
// encoder and from an encoder that was used before.
func TestDeltasAreDeterministic(t *testing.T) {
	for _, size := range []int{1 << 10, 60 << 10, 400 << 10} {
		answer, earlier := answerOf(t, 1, size), answerOf(t, 0, size+size/10)
		from := base{sha256.Sum256(earlier.Body(Identity)), earlier.Body(Identity)}
		deltaEncoders = sync.Pool{New: deltaEncoders.New} // the next encoder is new
		want, err := newDelta(answer, from)
		must(t, err)
		for i := range 3 {
			_, err := newDelta(answerOf(t, 10+i, size/2), base{body: answerOf(t, 20+i, size).Body(Identity)})
			must(t, err)
			got, err := newDelta(answer, from)
			must(t, err)
			if got.ETag != want.ETag || !bytes.Equal(got.Body, want.Body) {
				t.Errorf("size %d, use %d: %d bytes from a used encoder, %d from a new one", size, i, len(got.Body), len(want.Body))
			}
		}
	}
}
