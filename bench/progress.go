package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress draws one line about a running load on a terminal, each second. A nil progress draws nothing.
type progress struct {
	recent   tally // of the last second
	answers  int64
	from     time.Duration
	lines    chan string
	finished chan struct{}
}

// progressOn returns the progress on a terminal, or nil if w is something else.
func progressOn(w io.Writer) *progress {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if about, err := file.Stat(); err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	p := &progress{recent: tally{latency: newHistogram(2)}, lines: make(chan string, 1), finished: make(chan struct{})}
	go func() { // a terminal that is slow or stopped must not delay the load
		defer close(p.finished)
		for line := range p.lines {
			fmt.Fprintf(w, "\r%s\x1b[K", line)
		}
	}()
	return p
}

// add counts a request.
func (p *progress) add(o outcome) {
	if p == nil {
		return
	}
	p.recent.add(o)
	if o.err == nil {
		p.answers++
	}
}

// draw draws the line if a second has passed. now is counted from the start of the load.
func (p *progress) draw(now time.Duration) {
	if p == nil {
		return
	}
	if p.from = min(p.from, max(now, 0)); now < p.from+time.Second { // a ramp starts anew with each step
		return
	}
	line := fmt.Sprintf("%.0f s: %.0f answers a second, p99 %s, %d failed", now.Seconds(), float64(p.answers)/(now-p.from).Seconds(), duration(at(p.recent.latency, 99)), p.recent.Failed)
	select {
	case p.lines <- line:
	default: // the terminal is slow
	}
	p.recent.latency.Reset()
	p.recent, p.answers, p.from = tally{latency: p.recent.latency}, 0, now
}

// end removes the line.
func (p *progress) end() {
	if p != nil {
		p.lines <- ""
		close(p.lines)
		<-p.finished
	}
}
