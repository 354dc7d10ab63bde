package refresh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"strikecache/refresh"
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
// resources, files written and synced. Its rival only decodes the chain with encoding/json.
func BenchmarkRefresh(b *testing.B) {
	body := recordedBody(b, recordedSPX)
	other := bytes.Replace(body, []byte(`"current_price":7728.2002`), []byte(`"current_price":7728.2102`), 1)
	b.Run("decode-to-published", func(b *testing.B) {
		r := newRig(b, b.TempDir(), "2026-08-11 16:37", func(c *refresh.Config) {
			c.Source, c.FlowSymbols = &alternating{bodies: [2][]byte{body, other}}, nil
		})
		defer r.close()
		peak := peakHeap(func() { r.once() })
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		before := cpuTime()
		for b.Loop() {
			r.once()
		}
		b.ReportMetric(float64((cpuTime()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	})
	b.Run("encoding-json-decode-alone", func(b *testing.B) {
		decode := func() {
			var v any
			if err := json.Unmarshal(body, &v); err != nil {
				b.Fatal(err)
			}
		}
		peak := peakHeap(decode)
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			decode()
		}
		b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	})
}

// peakHeap returns by how many bytes the heap in use grows at most while f runs.
func peakHeap(f func()) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapInuse, uint64(0)
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return peak - min(before, peak)
}
