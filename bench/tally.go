package main

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histograms hold nanoseconds from 100 ns to twenty minutes: the longest wait is the longest load and its timeout.
const (
	leastLatency = int64(100)
	mostLatency  = int64(20 * time.Minute)
)

// newHistogram returns a histogram of latencies with so many significant digits.
func newHistogram(digits int) *hdrhistogram.Histogram {
	return hdrhistogram.New(leastLatency, mostLatency, digits)
}

// record adds a latency. One outside the histogram's range counts at the end of the range.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), leastLatency), mostLatency)) // within the range, so never an error
}

// outcome is what became of one request.
type outcome struct {
	due     time.Duration // since the start
	latency time.Duration // since due
	service time.Duration // since the request was sent; 0 when it was not
	status  int
	bytes   int   // of the body
	err     error // instead of a status
}

// tally counts outcomes. Add may be called by many goroutines; all else waits until they are done.
type tally struct {
	mu               sync.Mutex
	latency, service *hdrhistogram.Histogram
	status           map[int]int64
	errors           map[string]int64
	failed, bytes    int64
	seconds          []second // by the second in which a request was due
	took             time.Duration
	cpu              time.Duration // of the server meanwhile; 0: not known
}

// second is one second of the time line.
type second struct {
	latency *hdrhistogram.Histogram
	failed  int64
}

func newTally() *tally {
	return &tally{latency: newHistogram(3), service: newHistogram(3), status: map[int]int64{}, errors: map[string]int64{}}
}

func (t *tally) requests() int64 { return t.latency.TotalCount() }

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := int(o.due / time.Second)
	for len(t.seconds) <= at {
		t.seconds = append(t.seconds, second{latency: newHistogram(2)})
	}
	record(t.latency, o.latency)
	record(t.seconds[at].latency, o.latency)
	if o.service > 0 {
		record(t.service, o.service)
	}
	if o.err != nil || o.status >= 400 {
		t.failed++
		t.seconds[at].failed++
	}
	if o.err != nil {
		t.errors[rootCause(o.err)]++
		return
	}
	t.status[o.status]++
	t.bytes += int64(o.bytes)
}

// rootCause is an error without what differs from connection to connection.
func rootCause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// percentiles are latencies in microseconds.
type percentiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	return percentiles{at(h, 50), at(h, 90), at(h, 99), at(h, 99.9), at(h, 100)}
}

// at returns a percentile in microseconds, 0 of an empty histogram.
func at(h *hdrhistogram.Histogram, percentile float64) float64 {
	return math.Round(float64(h.ValueAtPercentile(percentile))/10) / 100
}
