package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// slack is how much a latency may grow beyond its share before it counts: at a few tens of microseconds a
// machine's own unrest is larger than any percentage.
const slack = 20 // microseconds

// change is one figure that stands in both reports.
type change struct {
	what, figure string
	old, new     float64
	higherBetter bool
	regressed    bool
}

// compare returns the figures of every workload and mode that both reports have.
func compare(old, now *report, threshold float64) []change {
	before := map[string]*outcome{}
	for i := range old.Outcomes {
		before[old.Outcomes[i].key()] = &old.Outcomes[i]
	}
	var changes []change
	for i := range now.Outcomes {
		n := &now.Outcomes[i]
		o := before[n.key()]
		if o == nil || o.Connections != n.Connections || o.Rate != n.Rate {
			continue
		}
		worse := func(old, new, absolute float64) bool { return new > old*(1+threshold) && new-old > absolute }
		add := func(c change) { c.what = n.key(); changes = append(changes, c) }
		add(change{figure: "p50 µs", old: o.Latency.P50, new: n.Latency.P50, regressed: worse(o.Latency.P50, n.Latency.P50, slack)})
		add(change{figure: "p99 µs", old: o.Latency.P99, new: n.Latency.P99, regressed: worse(o.Latency.P99, n.Latency.P99, slack)})
		add(change{figure: "req/s", old: o.PerSecond, new: n.PerSecond, higherBetter: true, regressed: n.PerSecond < o.PerSecond*(1-threshold)})
		add(change{figure: "failed", old: float64(o.Failed()), new: float64(n.Failed()), regressed: n.Failed() > o.Failed()})
		if o.ServerNs > 0 && n.ServerNs > 0 {
			add(change{figure: "CPU ns/req", old: o.ServerNs, new: n.ServerNs, regressed: worse(o.ServerNs, n.ServerNs, 0)})
		}
	}
	return changes
}

// printChanges prints the comparison and returns how many figures regressed.
func printChanges(w io.Writer, changes []change, threshold float64) (regressions int, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tfigure\told\tnew\tchange\t\t")
	for _, c := range changes {
		percent := "–"
		if c.old != 0 {
			percent = fmt.Sprintf("%+.1f %%", 100*(c.new/c.old-1))
		}
		verdict := ""
		if c.regressed {
			verdict = "REGRESSION"
			regressions++
		}
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f\t%s\t%s\t\n", c.what, c.figure, c.old, c.new, percent, verdict)
	}
	if err := t.Flush(); err != nil {
		return 0, err
	}
	fmt.Fprintf(w, "%d of %d figures regressed by more than %.0f %% (latencies also by more than %d µs). One run is one sample: repeat before believing it.\n",
		regressions, len(changes), 100*threshold, slack)
	return regressions, nil
}
