//go:build unix

package refresh_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	fastjson "github.com/goccy/go-json"
	"github.com/klauspost/compress/gzip"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/cboe"
	"strikecache/refresh/feed"
	"strikecache/refresh/folder"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// alternating is a source that returns two chains in turn, so that no document repeats the last one.
type alternating struct {
	bodies [2][]byte
	n      int
}

func (s *alternating) Offers(name upstream.Name) bool { return name == upstream.Options("_SPX") }

func (s *alternating) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	s.n++
	return &upstream.Document{Name: upstream.Options("_SPX"), Body: s.bodies[s.n%2], Received: time.Date(2026, 8, 11, 20, 36, 41, 0, time.UTC)}, nil
}

// BenchmarkRefresh takes the full recorded chain of 30,692 contracts from its bytes to published answers of all its
// resources, files written and synced: first with nothing to reuse, as a process does and as a day does once its open interest
// is known, then with other quotes and another spot, as every later refresh of the day. Beside it is the [floor].
func BenchmarkRefresh(b *testing.B) {
	body := recordedSPX(b)
	if body == nil {
		b.Skip("needs the recorded documents: see refresh/product")
	}
	bodies := [2][]byte{body, moved(body, `"current_price":7728.2002`, `"current_price":7731.4102`)}
	start := func(b *testing.B) *rig {
		return newRig(b, b.TempDir(), "2026-08-11 16:37", func(c *refresh.Config) {
			c.Source, c.Underlyings = &alternating{bodies: bodies}, []string{"SPX"}
		})
	}
	b.Run("first", func(b *testing.B) { // of a process, whose compressors are warm from the runs before
		b.SetBytes(int64(len(body)))
		var r *rig
		measure(b, nil, func() { r = start(b) }, func() { r.once() }, func() { r.close() })
	})
	b.Run("later", func(b *testing.B) {
		r, nothing := start(b), func() {}
		r.once()
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		measure(b, body, nothing, r.once, nothing)
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		measure(b, nil, func() {}, func() { floor(b, body) }, func() {})
	})
}

// recordedSPX returns the recorded chain of SPX, nil where the recorded documents are absent.
func recordedSPX(b *testing.B) []byte {
	source, err := folder.NewRecorded(filepath.Join("..", "..", "shared", "recorded", "replay"))
	if err != nil {
		return nil
	}
	doc, err := source.Fetch(b.Context(), spxDocument, nil)
	must(b, err)
	if doc.Body != nil {
		return doc.Body
	}
	body, err := cboe.Unpack(doc)
	must(b, err)
	return body
}

// floor is the least work that an answer of a chain takes: it decodes the document into plain numbers, computes one gamma a contract, and
// encodes, compresses and digests the result.
func floor(b *testing.B, body []byte) {
	type result struct {
		Option string  `json:"option"`
		Gamma  float64 `json:"gamma"`
	}
	var doc struct {
		Data struct {
			Spot    float64 `json:"current_price"`
			Options []struct {
				Option       string  `json:"option"`
				Bid          float64 `json:"bid"`
				Ask          float64 `json:"ask"`
				IV           float64 `json:"iv"`
				OpenInterest float64 `json:"open_interest"`
			} `json:"options"`
		} `json:"data"`
	}
	must(b, fastjson.Unmarshal(body, &doc))
	session, results, digest := compute.NewDate(2026, time.August, 11), make([]result, len(doc.Data.Options)), sha256.New()
	for i, o := range doc.Data.Options {
		n := len(o.Option)
		date, _ := strconv.Atoi(o.Option[n-15 : n-9])
		strike, _ := strconv.Atoi(o.Option[n-8:])
		days := compute.NewDate(2000+date/10000, time.Month(date/100%100), date%100) - session
		if v := o.IV * math.Sqrt(float64(days+1)/365); v > 0 {
			results[i].Gamma = compute.BlackGamma(doc.Data.Spot, doc.Data.Spot, doc.Data.Spot, float64(strike)/1000, v, 1) * o.OpenInterest
		}
		results[i].Option = o.Option
	}
	encoded, err := fastjson.Marshal(results)
	must(b, err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(encoded)
	must(b, err, z.Close())
	digest.Write(body)
	digest.Write(encoded)
	digest.Sum(nil)
}

// moved returns a chain with another spot and with all quotes higher by a tenth.
func moved(body []byte, spot, other string) []byte {
	out := bytes.Replace(body, []byte(spot), []byte(other), 1)
	return regexp.MustCompile(`"(bid|ask)":\d*[1-9.]\d*`).ReplaceAllFunc(out, func(quote []byte) []byte {
		key, number, _ := bytes.Cut(quote, []byte(":"))
		x, err := strconv.ParseFloat(string(number), 64)
		if err != nil || x == 0 {
			return quote
		}
		return fmt.Appendf(nil, "%s:%.2f", key, x+0.1)
	})
}

// cpuTime returns the processor time that this process has used on all cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure measures run alone, which prepare comes before and end after. It reports the processor time, too, and how many times that of the
// [floor] of a document it is, which comes after each run, if there is a document.
func measure(b *testing.B, document []byte, prepare, run, end func()) {
	var cpu, least time.Duration
	for b.Loop() {
		b.StopTimer()
		prepare()
		before := cpuTime()
		b.StartTimer()
		run()
		b.StopTimer()
		cpu += cpuTime() - before
		if document != nil {
			runtime.GC() // what run left
			before = cpuTime()
			floor(b, document)
			least += cpuTime() - before
		}
		end()
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/op")
	if least > 0 {
		b.ReportMetric(cpu.Seconds()/least.Seconds(), "x-floor")
	}
}

// roundSource has the chains of one instant.
type roundSource struct {
	*simulated.Market
	chains map[upstream.Name]*upstream.Document
}

func (s *roundSource) Offers(name upstream.Name) bool { return s.chains[name] != nil }

func (s *roundSource) Fetch(_ context.Context, name upstream.Name, _ *upstream.Document) (*upstream.Document, error) {
	doc := *s.chains[name]
	return &doc, nil
}

// BenchmarkRound refreshes the default underlyings once each, from new chains in gzip to published answers of all their resources,
// files written and synced. Beside it is the [floor] of the recorded chain of SPX alone.
func BenchmarkRound(b *testing.B) {
	at := ny(b, "2026-11-20 10:00")
	source := &roundSource{simulated.New(simulated.Config{Seed: 7, Calendar: calendar, Gzip: true}), map[upstream.Name]*upstream.Document{}}
	next := func() {
		at = at.Add(time.Minute)
		for _, u := range refresh.DefaultUnderlyings {
			name := feed.ChainOf(u)
			doc, err := source.At(name, at)
			must(b, err)
			source.chains[name] = doc
		}
	}
	next()
	r := newRig(b, b.TempDir(), "2026-11-20 15:50", func(c *refresh.Config) { c.Source, c.Underlyings = source, refresh.DefaultUnderlyings })
	r.once()
	measure(b, recordedSPX(b), next, func() {
		for _, u := range refresh.DefaultUnderlyings {
			if !refresh.RunJob(r.Refresher, b.Context(), strings.ToLower(u)) {
				b.Fatal(u)
			}
		}
	}, func() {})
}
