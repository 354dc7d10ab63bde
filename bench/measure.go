package main

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms hold nanoseconds from 100 ns to two minutes with three digits: 180 KB each.
const (
	leastLatency = int64(100)
	mostLatency  = int64(2 * time.Minute)
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(leastLatency, mostLatency, 3) }

// record adds a latency; what lies outside the histogram's range counts at its end.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), leastLatency), mostLatency)) // within range, so never an error
}

// tally is what happened, shared by a few workers: a lock that is nearly always free costs less than a
// histogram for each of a thousand connections.
type tally struct {
	mu      sync.Mutex
	latency *hdrhistogram.Histogram // from the instant at which the request was due
	service *hdrhistogram.Histogram // from the instant at which it was sent
	status  map[int]int64
	errors  map[string]int64
	bytes   int64
	samples []sample
	changes []time.Duration
}

// sample is one request of a workload that tells its instants apart.
type sample struct{ due, latency time.Duration } // due since the start

func newTally() *tally {
	return &tally{latency: newHistogram(), service: newHistogram(), status: map[int]int64{}, errors: map[string]int64{}}
}

// add merges another tally into this one.
func (t *tally) add(o *tally) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.latency.Merge(o.latency)
	t.service.Merge(o.service)
	for k, n := range o.status {
		t.status[k] += n
	}
	for k, n := range o.errors {
		t.errors[k] += n
	}
	t.bytes += o.bytes
	t.samples = append(t.samples, o.samples...)
	t.changes = append(t.changes, o.changes...)
}

// latencies are percentiles in microseconds.
type latencies struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

func micros(ns int64) float64 { return math.Round(float64(ns)/10) / 100 }

func summarize(h *hdrhistogram.Histogram) latencies {
	at := func(p float64) float64 { return micros(h.ValueAtPercentile(p)) }
	mean := 0.0
	if h.TotalCount() > 0 {
		mean = micros(int64(h.Mean()))
	}
	return latencies{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: micros(h.Max()), Mean: mean}
}

// point is a percentile and its latency in microseconds.
type point [2]float64

// curve samples a histogram evenly on the axis 1/(1−p), as far as its count supports.
func curve(h *hdrhistogram.Histogram) []point {
	n := float64(h.TotalCount())
	if n == 0 {
		return nil
	}
	points := []point{{0, micros(h.Min())}}
	for x := 0.05; x <= math.Log10(n)+1e-9; x += 0.05 {
		p := 100 * (1 - math.Pow(10, -x))
		points = append(points, point{math.Round(p*1e6) / 1e6, micros(h.ValueAtPercentile(p))})
	}
	return points
}

// around is how the latencies near a change of the polled document compare with the others.
type around struct {
	Changes int       `json:"changes"`
	During  latencies `json:"during_us"`
	Between latencies `json:"between_us"`
	Ratio   float64   `json:"p99_9_ratio"` // 0: no change was seen, or nothing lies between
}

// A change is seen when the refresh is over; most refreshes are shorter than this.
const (
	beforeChange = time.Second
	afterChange  = 250 * time.Millisecond
)

func splitAround(samples []sample, changes []time.Duration) *around {
	during, between := newHistogram(), newHistogram()
	for _, s := range samples {
		h := between
		for _, c := range changes {
			if s.due > c-beforeChange && s.due < c+afterChange {
				h = during
			}
		}
		record(h, s.latency)
	}
	a := &around{Changes: len(changes), During: summarize(during), Between: summarize(between)}
	if during.TotalCount() > 0 && between.TotalCount() > 0 {
		a.Ratio = math.Round(100*a.During.P999/a.Between.P999) / 100
	}
	return a
}
