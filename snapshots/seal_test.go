package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-json"
)

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// The whole body, as server/API.md has it: success, data, meta, and usage last. What is absent is null, never left out.
func TestSealedBody(t *testing.T) {
	data, reason := []byte(`{"spot":7000.25,"flips":[]}`), "upstream_lag"
	bare := meta()
	bare.CapturedAt, bare.Quality, bare.Freshness.Reason = nil, nil, &reason
	for captured, m := range map[string]Meta{`"2026-11-20T20:15:00Z"`: meta(), `null`: bare} {
		reason, quality := `null`, `{"used":1}`
		if captured == `null` {
			reason, quality = `"upstream_lag"`, `null`
		}
		want := `{"success":true,"data":` + string(data) + `,"meta":{"endpoint":"gex/spx","source":"simulated",` +
			`"as_of":"2026-11-20T20:00:00Z","captured_at":` + captured + `,"computed_at":"2026-11-20T20:15:01Z",` +
			`"session_date":"2026-11-20","delay_minutes":15,"refresh_seconds":25,` +
			`"freshness":{"state":"fresh","reason":` + reason + `,"since":"2026-11-20T20:00:00Z"},` +
			`"receipt":{"method":"gex/1","parameters":{"rate":0.04},"inputs":[{"name":"options/_SPX.json","sha256":"00ff"},` +
			`{"name":"state/x","sha256":"11"}],"input_sha256":["00ff","11"],"data_sha256":"` + sha(data) + `"},` +
			`"quality":` + quality + `,"notice":"delayed"},"usage":{"tier":"anonymous"}}`
		given := bytes.Clone(data)
		s, err := Seal(given, m, Brotli, Zstd)
		must(t, err)
		clear(given) // the snapshot has its own
		equal(t, string(s.Body(Identity)), want, "body")
		equal(t, string(s.Data()), string(data), "data")
		equal(t, s.cost(), int64(len(s.Body(Identity))+len(s.Body(Gzip))+len(s.Body(Brotli))+len(s.Body(Zstd))), "cost()")
		equal(t, m.Receipt.DataSHA256, "", "digest in the caller's meta")
	}
}

func TestSealPage(t *testing.T) {
	body := bytes.Repeat([]byte("<p>a page</p>\n"), 100)
	failIf(t, second(SealPage(body[:1], time.Time{}, false)) == nil, "a page of one byte was sealed")
	for i, body := range [][]byte{body, body[:2], body, body[:2]} {
		s, err := SealPage(body, time.Date(2026, 11, 20, 15, 0, 0, 999, time.UTC), i > 1)
		must(t, err)
		tags := map[string]bool{}
		for c := range Codings {
			sameBytes(t, unpack(t, c, s.Body(c)), body, "%v", c)
			tags[s.ETag(c)] = true
		}
		failIf(t, len(tags) != int(Codings) || s.LastModified() != "Fri, 20 Nov 2026 15:00:00 GMT", "%v %s", tags, s.LastModified())
	}
}

// Seal refuses meta that is not valid JSON.
func TestSealRefusesMeta(t *testing.T) {
	for _, quality := range []string{"", "{", "{}x", `{"a":NaN}`, `{"a":Infinity}`, `{},"notice":"x"`} {
		m := meta()
		m.Quality = json.RawMessage(quality)
		failIf(t, second(Seal([]byte(`1`), m)) == nil, "quality %q was sealed", quality)
	}
	m := meta()
	m.AsOf = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) // RFC 3339 has four digits
	failIf(t, second(Seal([]byte(`1`), m)) == nil, "the year 10000 was sealed")
	m = meta()
	m.Notice = "</script>\xff\x00\u2028\""
	body := sealedWith(t, `1`, m).Body(Identity)
	failIf(t, !json.Valid(body), "notice breaks the body: %s", body)
}

// A compressor that many goroutines have used gives the same bytes as a new one.
func TestSealFromManyGoroutines(t *testing.T) {
	docs, want := make([][]byte, 20), make([]*Snapshot, 20)
	for i := range docs {
		docs[i] = bytes.Replace(document(100+i*i*20), []byte("3000"), fmt.Append(nil, 3000+i), 1)
		want[i] = sealed(t, string(docs[i]))
		for c := Gzip; c < Codings; c++ {
			z, out := compressors[c].New().(compressor), new(bytes.Buffer)
			z.Reset(out)
			z.Write(want[i].Prefix(Identity))
			z.Flush()
			if !bytes.HasSuffix(out.Bytes(), want[i].Prefix(c)[zstdStart:]) { // after the header of a frame
				t.Fatalf("document %d in %v differs from what a new compressor gives", i, c)
			}
		}
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range docs {
				n := (i*7 + g) % len(docs)
				s, err := Seal(docs[n], meta(), Brotli, Zstd)
				if err != nil {
					t.Error(err)
					return
				}
				sameSnapshot(t, fmt.Sprint("document ", n), s, want[n])
			}
		})
	}
	wg.Wait()
}
