package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oasdiff/yaml3"

	"strikecache/bench/need"
	"strikecache/server"
	"strikecache/server/admin"
	"strikecache/snapshots"
)

// scrape returns what /metrics says when everything that is counted has happened.
func scrape(t *testing.T) string {
	t.Helper()
	now := time.Now()
	snapshot, err := snapshots.Seal([]byte(`{"x":1}`), snapshots.Meta{
		Endpoint: "gex/spx", Source: "simulated", AsOf: now, Quality: json.RawMessage("{}"), Receipt: snapshots.Receipt{InputSHA256: []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := server.New(server.Config{Log: slog.New(slog.DiscardHandler), Now: time.Now})
	refreshes := admin.NewRefreshes()
	refreshes.Observe("spx", "ok", time.Second)
	registry, err := admin.NewRegistry(admin.Sources{
		Now: time.Now, Current: func(string) *snapshots.Edition { return &snapshots.Edition{Default: snapshot} }, Refreshes: refreshes,
		Readiness:          func() server.Readiness { return server.Readiness{Degraded: []string{"disk"}} },
		CertificateExpires: time.Now, Store: func() snapshots.Stats { return snapshots.Stats{} },
		Server: func() server.Stats {
			stats := web.Stats() // it knows the codes of all errors
			stats.Responses = []server.Responses{{Resource: "gex/spx", Status: 200, Coding: "gzip", Count: 1}}
			stats.Bytes = []server.Bytes{{Resource: "gex/spx", Coding: "gzip", Count: 1}}
			stats.Durations = []server.Durations{{Resource: "gex/spx", Buckets: map[float64]uint64{1: 1}, Count: 1}}
			return stats
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := admin.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := admin.New(admin.Config{Metrics: registry, Log: slog.New(slog.DiscardHandler)})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	defer func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	resp, err := http.Get("http://" + ln.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, err)
	}
	return string(b)
}

var label = regexp.MustCompile(`([a-zA-Z_]+)="([^"]*)"`)

// exposed returns the labels of every metric of a scrape, and their values.
func exposed(text string) map[string]map[string][]string {
	metrics := map[string]map[string][]string{"up": {}} // of Prometheus itself
	for line := range strings.Lines(text) {
		name := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`).FindString(line)
		if name == "" {
			continue
		}
		if metrics[name] == nil {
			metrics[name] = map[string][]string{}
		}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			metrics[name][m[1]] = append(metrics[name][m[1]], m[2])
		}
	}
	for _, labels := range metrics { // those of every target
		labels["instance"], labels["job"] = nil, []string{"strikecache"}
	}
	return metrics
}

var (
	selector = regexp.MustCompile(`([a-z_][a-z0-9_]*)(?:\{([^}]*)\})?(?:\[[^\]]*\])?`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	function = regexp.MustCompile(`\b[a-z_]+\s*\(`)
	word     = regexp.MustCompile(`\b(?:or|and|unless|bool)\b`)
	matcher  = regexp.MustCompile(`^([a-z_]+)(=~|!~|!=|=)"([^"]*)"$`)
)

// check holds an expression against the metrics that there are, and returns the names it uses.
func check(expr string, metrics map[string]map[string][]string) (used []string, err error) {
	var groups []string
	rest := grouping.ReplaceAllStringFunc(expr, func(s string) string {
		groups = append(groups, strings.Split(grouping.FindStringSubmatch(s)[1], ",")...)
		return " "
	})
	rest = word.ReplaceAllString(function.ReplaceAllString(rest, "("), " ")
	for _, m := range selector.FindAllStringSubmatch(rest, -1) {
		labels, ok := metrics[m[1]]
		if !ok {
			return nil, fmt.Errorf("there is no metric %s", m[1])
		}
		used = append(used, m[1])
		for _, g := range groups {
			if _, ok := labels[strings.TrimSpace(g)]; !ok {
				return nil, fmt.Errorf("%s has no label %s", m[1], g)
			}
		}
		for _, one := range strings.Split(m[2], ",") {
			parts := matcher.FindStringSubmatch(strings.TrimSpace(one))
			if one == "" {
				continue
			}
			if parts == nil {
				return nil, fmt.Errorf("%q is no matcher", one)
			}
			values, ok := labels[parts[1]]
			// Only of the error codes does a scrape have all values from the start.
			if !ok || parts[2] == "=" && m[1] == "strikecache_api_errors_total" && !slices.Contains(values, parts[3]) {
				return nil, fmt.Errorf("%s has no %s", m[1], one)
			}
		}
	}
	if len(used) == 0 {
		return nil, fmt.Errorf("there is no metric in %q", expr)
	}
	return used, nil
}

// The check finds what it is for.
func TestCheck(t *testing.T) {
	metrics := exposed(scrape(t))
	for expr, want := range map[string]string{
		`sum by (code) (rate(strikecache_http_requests_total{instance=~"$instance",code=~"5.."}[$__rate_interval])) > 0`: "",
		`histogram_quantile(0.5, sum by (le) (rate(strikecache_http_request_duration_seconds_bucket[5m])))`:              "",
		`up{job="strikecache"} == 0 or strikecache_ready == 0`:                                                           "",
		`strikecache_readiness == 0`:                                    "no metric strikecache_readiness",
		`rate(strikecache_http_request_duration_seconds[5m])`:           "no metric strikecache_http_request_duration_seconds",
		`sum by (le) (strikecache_ready)`:                               "no label le",
		`strikecache_ready{resource="x"}`:                               "has no resource",
		`increase(strikecache_api_errors_total{code="internal"}[5m])`:   "has no code",
		`sum(rate(strikecache_ready{instance="a"}[5m])) / up{feed="b"}`: "up has no feed",
		`time() - 5`: "there is no metric in",
	} {
		if _, err := check(expr, metrics); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	b, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestAlerts(t *testing.T) {
	metrics := exposed(scrape(t))
	tests, err := os.ReadFile("alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := alerts(t)
	for _, r := range all {
		if _, err := check(r.Expr, metrics); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s says too little", r.Alert)
		}
		for _, want := range []string{"alertname: " + r.Alert + ",", "name: " + r.Alert + " fires"} {
			if !strings.Contains(string(tests), want) {
				t.Errorf("alerts_test.yml has no %s", want)
			}
		}
	}
	if len(all) < 10 {
		t.Errorf("%d alerts", len(all))
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ Expr string }
}

func dashboard(t *testing.T) (panels []panel) {
	t.Helper()
	b, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels []panel }
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// Every panel shows metrics that there are, every metric of ours is shown, and no panel lies on another.
func TestDashboard(t *testing.T) {
	metrics := exposed(scrape(t))
	shown, ids := map[string]bool{}, map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range dashboard(t) {
		if ids[p.ID] || p.Type != "row" && (p.Datasource.UID != "${datasource}" || len(p.Targets) == 0) {
			t.Errorf("%s: id %d, data source %q, %d targets", p.Title, p.ID, p.Datasource.UID, len(p.Targets))
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x > 23 {
					t.Fatalf("%s at %d, %d lies on %q", p.Title, x, y, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			used, err := check(target.Expr, metrics)
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			for _, name := range used {
				shown[name] = true
			}
		}
	}
	for name := range metrics {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); strings.HasPrefix(name, "strikecache_") && !shown[name] && !shown[base+"_bucket"] {
			t.Errorf("%s is shown nowhere", name)
		}
	}
}

// What Prometheus itself says of the rules, of the metrics, and of the dashboard's expressions.
func TestPromtool(t *testing.T) {
	promtool := need.Program(t, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, p := range dashboard(t) {
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".+").Replace(target.Expr)
			fmt.Fprintf(&rules, "  - {record: 'panel:%d:%d', expr: '%s'}\n", p.ID, i, expr)
		}
	}
	path := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(path, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		input string
	}{
		{[]string{"check", "rules", "alerts.yml"}, ""}, {[]string{"test", "rules", "alerts_test.yml"}, ""},
		{[]string{"check", "rules", path}, ""}, {[]string{"check", "metrics"}, scrape(t)},
	} {
		cmd := exec.Command(promtool, c.args...)
		cmd.Stdin = strings.NewReader(c.input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", c.args, err, out)
		}
	}
}
