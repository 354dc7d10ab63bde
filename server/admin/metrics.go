package admin

import (
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"strikecache/server"
	"strikecache/snapshots"
)

// Sources has the functions that give the values of the metrics. Each scrape calls all of them. Scrapes may be concurrent.
type Sources struct {
	Version   string           // of the build
	Now       func() time.Time // the market's clock, for the age of snapshots
	Current   func(resource string) *snapshots.Edition
	Readiness func() server.Readiness
	Resources []string // the names of the public resources
	// CertificateExpires returns when the TLS certificate expires, the zero time without TLS.
	CertificateExpires func() time.Time
	Server             func() server.Stats
	LogLinesLost       func() int64
	Store              func() snapshots.Stats
	Refreshes          *Refreshes
	// Fleet returns the state of this process in its fleet; nil outside a fleet.
	Fleet func() Fleet
}

// Fleet is the state of a member of a fleet, and its counts since the start.
type Fleet struct {
	Role        string
	Connected   bool
	Lease       uint64           // number of the newest lease that the member knows
	SilentSince time.Time        // when a message of a refresher last arrived; the zero time: messages are arriving
	Lag         time.Duration    // from the publication of the last answers by the refresher until this member served them
	Put         int64            // files that the member published
	Applied     int64            // files of other members that the member stored
	Refused     map[string]int64 // files and other messages that the member refused, by reason
	Reconnects  int64            // to a NATS server
}

// NewRegistry returns all metrics, including those of the process and of the Go runtime.
func NewRegistry(from Sources) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		from.Refreshes.runs, from.Refreshes.refused, from.Refreshes.took, from.Refreshes.success, (*collector)(&from),
	)
	return r
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("strikecache_"+name, help, labels, nil)
}

// collector is the prometheus.Collector of all metrics of strikecache except those of refreshes.
type collector Sources

// Describe describes nothing, because the set of metrics depends on what is served.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics for one scrape.
func (s *collector) Collect(ch chan<- prometheus.Metric) {
	gauge(ch, desc("build_info", "Always 1; the build is in the labels.", "version", "goversion"), 1, s.Version, runtime.Version())
	count(ch, desc("log_lines_lost_total", "Lines of the log that could not be written."), s.LogLinesLost())
	s.server(ch)
	s.answers(ch)
	s.levels(ch)
	s.underlyings(ch)
	s.store(ch)
	if s.Fleet != nil {
		fleet(ch, s.Fleet())
	}
}

func count[N int64 | uint64](ch chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// countEach sends a count for each value of the label of d.
func countEach[N int64 | uint64](ch chan<- prometheus.Metric, d *prometheus.Desc, by map[string]N) {
	for value, n := range by {
		count(ch, d, n, value)
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s *collector) server(ch chan<- prometheus.Metric) {
	stats := s.Server()
	requests := desc("http_requests_total", "Responses sent, by resource, status and content coding. "+
		"An error has coding identity, a 304 the coding that the full answer would have.", "resource", "code", "coding")
	for _, r := range stats.Responses {
		count(ch, requests, r.Count, r.Resource, strconv.Itoa(r.Status), r.Coding)
	}
	responseBytes := desc("http_response_bytes_total", "Bytes of response bodies as sent, in their content coding.", "resource", "coding")
	for _, b := range stats.Bytes {
		count(ch, responseBytes, b.Count, b.Resource, b.Coding)
	}
	requestDuration := desc("http_request_duration_seconds", "Time from the end of a request head until its response is made. "+
		"A sample: the first request of every resource, status and coding, then one in 64.", "resource")
	for _, d := range stats.Durations {
		ch <- prometheus.MustNewConstHistogram(requestDuration, d.Count, d.Sum, d.Buckets, d.Resource)
	}
	countEach(ch, desc("api_errors_total", "Error answers, by the error code of the interface; rate_limited and quota_exceeded are refusals by a limit.", "code"), stats.Errors)
	gauge(ch, desc("connections_open", "Open connections of the public listener."), float64(stats.ConnectionsOpen))
	count(ch, desc("connections_accepted_total", "Connections that the public listener accepted and served."), stats.ConnectionsAccepted)
	count(ch, desc("connections_refused_total", "Connections refused, because --max-connections were open, or a quarter of them from one address."), stats.ConnectionsRefused)
	count(ch, desc("tls_handshakes_failed_total", "TLS handshakes of the public listener that failed."), stats.TLSHandshakesFailed)
	gauge(ch, desc("rate_limit_addresses", "Client addresses that have a bucket of --anonymous-rate."), float64(stats.AddressesHeld))
	countEach(ch, desc("key_requests_refused_total", "Requests with a key that were refused, over a limit, expired or revoked, by the id of the key.", "key"), stats.KeysRefused)
	gauge(ch, desc("api_keys", "Keys in the key file in force, including revoked and expired keys."), float64(stats.KeysKnown))
}

func (s *collector) answers(ch chan<- prometheus.Metric) {
	if until := s.CertificateExpires(); !until.IsZero() {
		gauge(ch, desc("tls_certificate_expiry_timestamp_seconds", "When the TLS certificate in force expires; absent without TLS."), float64(until.Unix()))
	}
	r := s.Readiness()
	gauge(ch, desc("ready", "Whether every resource that the source can feed has an answer, 0 or 1."), truth(len(r.Waiting) == 0))
	gauge(ch, desc("resources_waiting", "Resources that the source can feed and that have no answer yet."), float64(len(r.Waiting)))
	degraded := desc("degraded", "1 for each part that is impaired, by the code that /readyz shows.", "code")
	for _, code := range r.Degraded {
		gauge(ch, degraded, 1, code)
	}
	snapshotAge := desc("snapshot_age_seconds", "Time since the instant that the current answer describes (as_of), by the market's clock.", "resource")
	snapshotStale := desc("snapshot_stale", "Whether the current answer's freshness is stale, 0 or 1.", "resource")
	snapshotAsOf := desc("snapshot_as_of_timestamp_seconds", "The instant that the current answer describes (as_of).", "resource")
	snapshotETag := desc("snapshot_etag", "The first 13 hexadecimal digits of the ETag of the current default answer without coding, as a number. Equal on every member of a fleet.", "resource")
	snapshotBytes := desc("snapshot_size_bytes", "Size of the current default answer.", "resource", "coding")
	now := s.Now()
	for _, resource := range s.Resources {
		e := s.Current(resource)
		if e == nil {
			continue
		}
		gauge(ch, snapshotAge, now.Sub(e.Default.Meta.AsOf).Seconds(), resource)
		gauge(ch, snapshotStale, truth(e.Default.Meta.Freshness.Stale()), resource)
		gauge(ch, snapshotAsOf, float64(e.Default.Meta.AsOf.UnixMilli())/1000, resource)
		gauge(ch, snapshotETag, tagNumber(e.Default.ETag(snapshots.Identity)), resource)
		for coding := range snapshots.Codings {
			if e.Default.Has(coding) {
				gauge(ch, snapshotBytes, float64(len(e.Default.Body(coding))), resource, coding.String())
			}
		}
	}
}

// levels reports the spot and the levels of each gex/{u}/levels. A level that the answer does not contain has no metric.
func (s *collector) levels(ch chan<- prometheus.Metric) {
	spot := desc("spot", "Published price of the underlying (spot), in USD or index points.", "underlying")
	effective := desc("effective_spot", "Spot that the levels of the underlying belong to (effective_spot), in USD or index points.", "underlying")
	level := desc("level", "Prices of gex/{u}/levels by their names there, in USD or index points; absent while unknown.", "underlying", "name")
	for _, resource := range s.Resources {
		var data struct {
			Symbol        string
			Spot          float64
			EffectiveSpot float64 `json:"effective_spot"`
			Levels        []struct {
				Name  string
				Price float64
			}
		}
		if !strings.HasSuffix(resource, "/levels") || !s.decode(resource, &data) {
			continue
		}
		underlying := strings.ToLower(strings.ReplaceAll(data.Symbol, ".", ""))
		gauge(ch, spot, data.Spot, underlying)
		gauge(ch, effective, data.EffectiveSpot, underlying)
		for _, l := range data.Levels {
			gauge(ch, level, l.Price, underlying, l.Name)
		}
	}
}

// underlyings reports the numbers in the answer of underlyings that are not prices. A null has no metric.
func (s *collector) underlyings(ch chan<- prometheus.Metric) {
	net := desc("net_gex_dollars", "Net gamma exposure (net_gex_dollars), in USD per 1 % move of the underlying; absent while unknown.", "underlying")
	regime := desc("gamma_regime", "Sign of net gamma exposure (gamma_regime): 1 positive, -1 negative, 0 neutral; absent while unknown.", "underlying")
	volatility := desc("atm_volatility_ratio", "At-the-money volatility of the next 30 days (atm_30d): 0.2 is 20 %; absent while unknown.", "underlying")
	var data struct {
		Rows []struct {
			Symbol string
			Net    *float64 `json:"net_gex_dollars"`
			Regime *string  `json:"gamma_regime"`
			ATM    *float64 `json:"atm_30d"`
		}
	}
	if !s.decode("underlyings", &data) {
		return
	}
	for _, r := range data.Rows {
		underlying := strings.ToLower(strings.ReplaceAll(r.Symbol, ".", ""))
		if r.Net != nil {
			gauge(ch, net, *r.Net, underlying)
		}
		if r.Regime != nil {
			gauge(ch, regime, truth(*r.Regime == "positive")-truth(*r.Regime == "negative"), underlying)
		}
		if r.ATM != nil {
			gauge(ch, volatility, *r.ATM/100, underlying)
		}
	}
}

// decode decodes the data of the current answer of a resource into v. It returns false if the resource has no answer. Nothing is
// cached between scrapes: decoding takes 0.3 ms a scrape for 15 underlyings (25 kB, measured).
func (s *collector) decode(resource string, v any) bool {
	e := s.Current(resource)
	return e != nil && json.Unmarshal(e.Default.Data(), v) == nil
}

func (s *collector) store(ch chan<- prometheus.Metric) {
	stats := s.Store()
	count(ch, desc("files_written_total", "Files written durably: documents, states and answers."), stats.FilesWritten)
	count(ch, desc("file_bytes_written_total", "Bytes of these files."), stats.BytesWritten)
	count(ch, desc("bad_files_total", "Stored files found torn, altered, misplaced or of a newer format."), stats.BadFiles)
	gauge(ch, desc("files_waiting", "Files whose last write failed. They are served from memory and written again until it succeeds."), float64(stats.FilesWaiting))
	countEach(ch, desc("disk_errors_total", "Failed writes, retries included, by the step that failed.", "step"), stats.DiskErrors)
	count(ch, desc("history_cache_rejected_sets_total", "Past answers that the cache refused: each is read from disk when a client asks for it."), stats.HistoryRejected)
	count(ch, desc("history_cache_dropped_sets_total", "Past answers that the cache dropped for a full buffer."), stats.HistoryDropped)
	count(ch, desc("history_cache_evictions_total", "Past answers that the cache evicted."), stats.HistoryEvicted)
}

func fleet(ch chan<- prometheus.Metric, f Fleet) {
	gauge(ch, desc("fleet_role", "Always 1; the role of this member is in the label: refresher, follower or edge.", "role"), 1, f.Role)
	gauge(ch, desc("fleet_connected", "Whether this member is connected to a NATS server, 0 or 1."), truth(f.Connected))
	gauge(ch, desc("fleet_lease", "Number of the newest lease that this member knows. Each refresher that takes over has a higher one."), float64(f.Lease))
	var silent time.Duration
	if !f.SilentSince.IsZero() {
		silent = time.Since(f.SilentSince)
	}
	gauge(ch, desc("fleet_refresher_silent_seconds", "Time since this member has heard of a refresher, 0 while it hears of one."), silent.Seconds())
	gauge(ch, desc("fleet_lag_seconds", "Time from the publication of the last answers by the refresher until this member served them, by the clocks of both machines. A member that joins finds answers that may be old."), f.Lag.Seconds())
	count(ch, desc("fleet_objects_put_total", "Files that this member published to the fleet."), f.Put)
	count(ch, desc("fleet_objects_applied_total", "Files of the fleet that this member stored."), f.Applied)
	countEach(ch, desc("fleet_objects_refused_total", "Files and other messages of the fleet that this member refused, by reason.", "reason"), f.Refused)
	count(ch, desc("fleet_reconnects_total", "Connections to a NATS server that were made again after a loss."), f.Reconnects)
}

// tagNumber returns the first 52 bits of a tag such as "0f02c8b1c1ff22c111926774e4c5c9a4" as a number. A float64 holds them
// exactly.
func tagNumber(tag string) float64 {
	const digits = 13
	n, _ := strconv.ParseUint(tag[1:1+digits], 16, 64) // the tag is made of a digest
	return float64(n)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
