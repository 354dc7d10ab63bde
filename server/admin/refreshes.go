package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Refreshes counts and times the runs of refresh jobs, and counts the documents that they refused. Create it with
// [NewRefreshes].
type Refreshes struct {
	runs    *prometheus.CounterVec
	refused *prometheus.CounterVec
	took    *prometheus.HistogramVec
	success *prometheus.GaugeVec
}

// NewRefreshes returns counts at zero.
func NewRefreshes() *Refreshes {
	return &Refreshes{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strikecache_refreshes_total",
			Help: "Runs of the jobs of the chains (spx, ndx, ...), of sectors and vix, and of freshness, expiry, backfill and track, by outcome: ok, panic, or the reason code that clients see.",
		}, []string{"feed", "code"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strikecache_documents_refused_total",
			Help: "Documents that arrived and were refused, by the job and the reason code. A run can refuse several.",
		}, []string{"feed", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "strikecache_refresh_duration_seconds", Help: "How long a run took, from the fetch to the published answers.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"feed"}),
		success: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "strikecache_refresh_last_success_timestamp_seconds", Help: "When the last run without an error ended, by the machine's clock.",
		}, []string{"feed"}),
	}
}

// Expect lets the counts of panics and of refused documents begin at 0, for each feed and reason: the functions of Prometheus do not
// see a count that begins at 1.
func (r *Refreshes) Expect(feeds, reasons []string) {
	for _, feed := range feeds {
		r.runs.WithLabelValues(feed, "panic")
		for _, reason := range reasons {
			r.refused.WithLabelValues(feed, reason)
		}
	}
}

// Observe counts a run of a feed's job. code is ok, or the reason of the failure. refused has the reason for each document that
// the run refused. took is the duration of the run. Observe is safe for concurrent use.
func (r *Refreshes) Observe(feed, code string, refused []string, took time.Duration) {
	r.runs.WithLabelValues(feed, code).Inc()
	for _, reason := range refused {
		r.refused.WithLabelValues(feed, reason).Inc()
	}
	r.took.WithLabelValues(feed).Observe(took.Seconds())
	if code == "ok" {
		r.success.WithLabelValues(feed).SetToCurrentTime()
	}
}
