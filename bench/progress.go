package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress draws one line about a running load, each second.
type progress struct {
	out    io.Writer
	recent tally // since from
	from   time.Duration
}

// progressOn returns the progress on a terminal. On anything else, nothing is drawn.
func progressOn(w io.Writer) *progress {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if about, err := file.Stat(); err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return &progress{out: w, recent: tally{latency: newHistogram(2)}}
}

// add counts a request.
func (p *progress) add(o outcome) {
	if p != nil {
		p.recent.add(o)
	}
}

// draw draws the line if a second has passed. A ramp starts anew with each step.
func (p *progress) draw(now time.Duration) {
	if p == nil {
		return
	}
	if p.from = min(p.from, max(now, 0)); now < p.from+time.Second {
		return
	}
	rate := float64(p.recent.Requests) / (now - p.from).Seconds()
	fmt.Fprintf(p.out, "\r%.0f s: %.0f a second, p99 %s, %d failed\x1b[K", now.Seconds(), rate, duration(at(p.recent.latency, 99)), p.recent.Failed)
	p.recent.latency.Reset()
	p.recent, p.from = tally{latency: p.recent.latency}, now
}

// end removes the line.
func (p *progress) end() {
	if p != nil {
		fmt.Fprintf(p.out, "\r\x1b[K")
	}
}
