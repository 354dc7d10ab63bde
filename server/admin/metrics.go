package admin

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"strikecache/server"
	"strikecache/snapshots"
)

// Sources are what the metrics are read from. Every function is called for each scrape.
type Sources struct {
	Version   string // of the build
	GoVersion string
	Now       func() time.Time // the market's clock, by which snapshots have an age
	Current   func(resource string) *snapshots.Edition
	Readiness func() server.Readiness
	// CertificateExpires returns until when the TLS certificate is valid, the zero time without TLS.
	CertificateExpires func() time.Time
	Server             func() server.Stats
	Store              func() snapshots.Stats
	// Refresher returns what the process that refreshes uses, and how often one was started.
	Refresher func() (cpuSeconds float64, residentBytes int64, starts int)
	Refreshes *Refreshes
}

// NewRegistry returns all metrics, of the process and the runtime too.
func NewRegistry(from Sources) (*prometheus.Registry, error) {
	r := prometheus.NewPedanticRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		from.Refreshes, &collector{from},
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Refreshes counts and times the runs of refresh jobs. Create it with [NewRefreshes].
type Refreshes struct {
	runs    *prometheus.CounterVec
	took    *prometheus.HistogramVec
	success *prometheus.GaugeVec
}

// NewRefreshes returns counts at zero.
func NewRefreshes() *Refreshes {
	return &Refreshes{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "strikecache_refreshes_total",
			Help: "Runs of a feed's job, and of the jobs freshness, expiry and backfill, by outcome: ok, panic, or the reason code that clients see.",
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

// Observe notes a run: its feed, the code of its outcome, ok for success, and how long it took.
func (r *Refreshes) Observe(feed, code string, took time.Duration) {
	r.runs.WithLabelValues(feed, code).Inc()
	r.took.WithLabelValues(feed).Observe(took.Seconds())
	if code == "ok" {
		r.success.WithLabelValues(feed).SetToCurrentTime()
	}
}

// Describe implements prometheus.Collector.
func (r *Refreshes) Describe(ch chan<- *prometheus.Desc) {
	r.runs.Describe(ch)
	r.took.Describe(ch)
	r.success.Describe(ch)
}

// Collect implements prometheus.Collector.
func (r *Refreshes) Collect(ch chan<- prometheus.Metric) {
	r.runs.Collect(ch)
	r.took.Collect(ch)
	r.success.Collect(ch)
}

// collector reads everything else when it is asked.
type collector struct{ from Sources }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("strikecache_"+name, help, labels, nil)
}

var (
	buildInfo = desc("build_info", "Always 1; the build is in the labels.", "version", "goversion")

	requests = desc("http_requests_total", "Responses sent, by name of the route table, status (0: a rare one) and content coding (of an error identity, of a 304 that of the answer it stands for).",
		"resource", "code", "coding")
	responseBytes   = desc("http_response_bytes_total", "Bytes of response bodies, as they are coded.", "resource", "coding")
	requestDuration = desc("http_request_duration_seconds",
		"Time from a whole request head to its response in the kernel's hands. A sample: of every resource, status and coding the first and then one in 64; requests that the general path answers, as repeated fields or HTTP/1.0 are, are not timed.",
		"resource")
	apiErrors           = desc("api_errors_total", "Error answers, by the error code of the interface; rate_limited and quota_exceeded are the limits.", "code")
	connectionsOpen     = desc("connections_open", "Open connections of the public listener.")
	connectionsAccepted = desc("connections_accepted_total", "Connections that the public listener accepted and served.")
	connectionsRefused  = desc("connections_refused_total", "Connections refused, as --max-connections were open.")
	handshakesFailed    = desc("tls_handshakes_failed_total", "TLS handshakes of the public listener that clients broke off or did wrong.")
	certificateExpires  = desc("tls_certificate_expiry_timestamp_seconds", "Until when the TLS certificate in force is valid; absent without TLS.")
	rateAddresses       = desc("rate_limit_addresses", "Client addresses that have a bucket of --anonymous-rate.")
	apiKeys             = desc("api_keys", "Keys in force, the revoked and expired ones in the file included.")
	logSamples          = desc("log_samples_dropped_total", "Sampled requests that the log had no time for.")

	ready            = desc("ready", "Whether every resource that the source can feed has an answer, 0 or 1.")
	degraded         = desc("degraded", "1 for each reason code of what is impaired, as /readyz says.", "code")
	resourcesWaiting = desc("resources_waiting", "Resources that the source can feed and that have no answer yet.")
	snapshotAge      = desc("snapshot_age_seconds", "Time since the instant that the current answer describes (as_of), by the market's clock.", "resource")
	snapshotStale    = desc("snapshot_stale", "Whether the current answer's freshness is stale, 0 or 1.", "resource")
	snapshotBytes    = desc("snapshot_size_bytes", "Size of the current default answer.", "resource", "coding")

	filesWritten    = desc("files_written_total", "Dated files written durably.")
	bytesWritten    = desc("file_bytes_written_total", "Bytes of the dated files written.")
	filesWaiting    = desc("files_waiting", "Files that the disk refused last and that are served from memory until it takes them.")
	badFiles        = desc("bad_files_total", "Stored files found torn, altered, foreign or of a newer format.")
	diskErrors      = desc("disk_errors_total", "Failed writes, retries included, by the step that failed.", "step")
	latestRejected  = desc("latest_cache_rejected_sets_total", "Current answers that the cache refused: must stay 0.")
	latestDropped   = desc("latest_cache_dropped_sets_total", "Current answers that the cache dropped for a full buffer: must stay 0.")
	latestEvicted   = desc("latest_cache_evictions_total", "Current answers that the cache evicted: must stay 0.")
	historyRejected = desc("history_cache_rejected_sets_total", "Past answers that the cache refused: read again from disk when asked for.")
	historyDropped  = desc("history_cache_dropped_sets_total", "Past answers that the cache dropped for a full buffer.")
	historyEvicted  = desc("history_cache_evictions_total", "Past answers that the cache evicted.")

	refresherCPU      = desc("refresher_cpu_seconds_total", "CPU time of the process that refreshes, since it was started.")
	refresherResident = desc("refresher_resident_memory_bytes", "Resident memory of the process that refreshes; process_ metrics are of the one that serves.")
	refresherStarts   = desc("refresher_starts_total", "How often a process that refreshes was started.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		buildInfo, requests, responseBytes, requestDuration, apiErrors, connectionsOpen, connectionsAccepted,
		connectionsRefused, handshakesFailed, certificateExpires, rateAddresses, apiKeys, logSamples, ready, degraded, resourcesWaiting, snapshotAge,
		snapshotStale, snapshotBytes, filesWritten, bytesWritten, filesWaiting, badFiles, diskErrors, latestRejected,
		latestDropped, latestEvicted, historyRejected, historyDropped, historyEvicted,
		refresherCPU, refresherResident, refresherStarts,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge(ch, buildInfo, 1, c.from.Version, c.from.GoVersion)
	c.server(ch)
	c.answers(ch)
	c.store(ch)
}

func count[N int64 | uint64](ch chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (c *collector) server(ch chan<- prometheus.Metric) {
	s := c.from.Server()
	for _, r := range s.Responses {
		count(ch, requests, r.Count, r.Resource, strconv.Itoa(r.Status), r.Coding)
	}
	for _, b := range s.Bytes {
		count(ch, responseBytes, b.Count, b.Resource, b.Coding)
	}
	for _, d := range s.Durations {
		ch <- prometheus.MustNewConstHistogram(requestDuration, d.Count, d.Sum, d.Buckets, d.Resource)
	}
	for code, n := range s.Errors {
		count(ch, apiErrors, n, code)
	}
	gauge(ch, connectionsOpen, float64(s.ConnectionsOpen))
	count(ch, connectionsAccepted, s.ConnectionsAccepted)
	count(ch, connectionsRefused, s.ConnectionsRefused)
	count(ch, handshakesFailed, s.TLSHandshakesFailed)
	gauge(ch, rateAddresses, float64(s.AddressesHeld))
	gauge(ch, apiKeys, float64(s.KeysKnown))
	count(ch, logSamples, s.LogSamplesDropped)
}

func (c *collector) answers(ch chan<- prometheus.Metric) {
	if until := c.from.CertificateExpires(); !until.IsZero() {
		gauge(ch, certificateExpires, float64(until.Unix()))
	}
	r := c.from.Readiness()
	gauge(ch, ready, truth(len(r.Waiting) == 0))
	gauge(ch, resourcesWaiting, float64(len(r.Waiting)))
	slices.Sort(r.Degraded)
	for _, code := range slices.Compact(r.Degraded) {
		gauge(ch, degraded, 1, code)
	}
	now := c.from.Now()
	for _, resource := range server.Resources() {
		e := c.from.Current(resource)
		if e == nil {
			continue
		}
		gauge(ch, snapshotAge, now.Sub(e.Default.Meta.AsOf).Seconds(), resource)
		gauge(ch, snapshotStale, truth(e.Default.Meta.Freshness.Stale()), resource)
		for coding := range snapshots.Codings {
			if e.Default.Has(coding) {
				gauge(ch, snapshotBytes, float64(len(e.Default.Body(coding))), resource, coding.String())
			}
		}
	}
}

func (c *collector) store(ch chan<- prometheus.Metric) {
	s := c.from.Store()
	count(ch, filesWritten, s.FilesWritten)
	count(ch, bytesWritten, s.BytesWritten)
	count(ch, badFiles, s.BadFiles)
	gauge(ch, filesWaiting, float64(s.FilesWaiting))
	d := s.DiskErrors
	for step, n := range map[string]int64{"create": d.Create, "write": d.Write, "sync": d.Sync, "rename": d.Rename, "sync_dir": d.SyncDir} {
		count(ch, diskErrors, n, step)
	}
	count(ch, latestRejected, s.Latest.SetsRejected)
	count(ch, latestDropped, s.Latest.SetsDropped)
	count(ch, latestEvicted, s.Latest.Evictions)
	count(ch, historyRejected, s.History.SetsRejected)
	count(ch, historyDropped, s.History.SetsDropped)
	count(ch, historyEvicted, s.History.Evictions)
	cpu, resident, starts := c.from.Refresher()
	ch <- prometheus.MustNewConstMetric(refresherCPU, prometheus.CounterValue, cpu)
	gauge(ch, refresherResident, float64(resident))
	count(ch, refresherStarts, int64(starts))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
