package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oasdiff/yaml3"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	sample   = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	selector = regexp.MustCompile(`\b(up|(?:strikecache|process|go)_[a-z0-9_]+)\b(?:\{([^}]*)\})?`)
	label    = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
	grouping = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	matching = regexp.MustCompile(`\bon\s*\(([^)]*)\)\s*(strikecache_\w+)`)
	words    = regexp.MustCompile(`[a-z_]+`)
	relabel  = regexp.MustCompile(`label_replace\(\s*(strikecache_\w+)[^"]*(?:"[^"]*"[^"]*?)*?"([a-z]+)", "\$1"`)
)

// scraped is a scrape of the admin listener, without the metrics of the process and of Go.
const scraped = "server/admin/testdata/metrics.txt"

// exposed returns the labels of every metric.
func exposed(t *testing.T) map[string][]string { return exposedBy(t, text(t, scraped)) }

// exposedBy returns the labels of the metrics in a scrape, and of those of the process and of Go.
func exposedBy(t *testing.T, scrape string) map[string][]string {
	t.Helper()
	metrics := map[string][]string{"up": {"instance", "job"}} // of Prometheus itself
	process, err := prometheus.DefaultGatherer.Gather()       // which has the same metrics of the process and of Go as ours
	must(t, err)
	for _, f := range process {
		metrics[f.GetName()] = metrics["up"]
	}
	for _, m := range sample.FindAllStringSubmatch(scrape, -1) {
		labels := []string{"instance", "job"} // of every target
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, l[1])
		}
		metrics[m[1]] = labels
	}
	return metrics
}

// check looks up the metrics and labels of an expression among those that exist, and returns the metrics that it uses. A
// metric that stands after on (…) only selects series: it must have these labels, but not those of by (…). label_replace makes a label.
func check(expr string, metrics map[string][]string) (used []string, err error) {
	var groups []string
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		groups = append(groups, words.FindAllString(m[1], -1)...)
	}
	selects := map[string]bool{}
	for _, m := range matching.FindAllStringSubmatch(expr, -1) {
		selects[m[2]] = true
		for _, l := range words.FindAllString(m[1], -1) {
			if !slices.Contains(metrics[m[2]], l) {
				return nil, fmt.Errorf("%s has no label %s", m[2], l)
			}
		}
	}
	made := map[string][]string{}
	for _, m := range relabel.FindAllStringSubmatch(expr, -1) {
		made[m[1]] = []string{m[2]}
	}
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		labels, ok := metrics[m[1]]
		if !ok {
			return nil, fmt.Errorf("there is no metric %s", m[1])
		}
		used = append(used, m[1])
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, l[1]) {
				return nil, fmt.Errorf("%s has no label %s", m[1], l[1])
			}
		}
		for _, g := range groups {
			if !selects[m[1]] && !slices.Contains(labels, g) && !slices.Contains(made[m[1]], g) {
				return nil, fmt.Errorf("%s has no label %s", m[1], g)
			}
		}
	}
	if len(used) == 0 {
		return nil, fmt.Errorf("there is no metric in %q", expr)
	}
	return used, nil
}

// Every alert uses existing metrics, has a summary, a description and a test, and is in the README.
func TestAlerts(t *testing.T) {
	type rule struct {
		Alert, Expr         string
		Labels, Annotations map[string]string
	}
	var file struct{ Groups []struct{ Rules []rule } }
	must(t, yaml.Unmarshal([]byte(text(t, "server/deploy/alerts.yml")), &file))
	series, tests, readme := text(t, scraped), text(t, "server/deploy/alerts_test.yml"), text(t, "server/deploy/README.md")
	metrics, code := exposed(t), regexp.MustCompile(`strikecache_\w+_total{code="[a-z_]+"`)
	rules := slices.Concat(file.Groups[0].Rules, file.Groups[1].Rules, file.Groups[2].Rules)
	for _, r := range rules {
		if _, err := check(r.Expr, metrics); err != nil {
			t.Errorf("%s: %v", r.Alert, err)
		}
		for _, one := range code.FindAllString(r.Expr, -1) {
			if !strings.Contains(series, one) {
				t.Errorf("%s: there is no %s", r.Alert, one)
			}
		}
		market := slices.ContainsFunc(file.Groups[2].Rules, func(m rule) bool { return m.Alert == r.Alert })
		if s := r.Labels["severity"]; (s == "info") != market || s != "warning" && s != "critical" && !market || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: %q %q", r.Alert, r.Labels, r.Annotations)
		}
		if !strings.Contains(tests, "alertname: "+r.Alert+",") || !strings.Contains(tests, "name: "+r.Alert+" fires") {
			t.Errorf("alerts_test.yml does not test %s", r.Alert)
		}
		if !strings.Contains(readme, "| `"+r.Alert+"` |") {
			t.Errorf("README.md does not name %s", r.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?:Impaired\(|Degraded, )"(\w+)"`).FindAllStringSubmatch(text(t, "main.go"), -1) {
		degraded := rules[slices.IndexFunc(rules, func(r rule) bool { return r.Alert == "StrikecacheDegraded" })].Annotations["description"]
		if code := m[1]; !strings.Contains(readme, "| `"+code+"` |") || !strings.Contains(degraded, code) || !strings.Contains(text(t, "server/openapi/openapi.yaml"), "`"+code+"`,") {
			t.Errorf("README.md, alerts.yml or openapi.yaml lacks the code %s of degraded", code)
		}
	}
	if n := strings.Count(readme, "| `Strikecache"); n != len(rules) || n < 10 {
		t.Errorf("%d alerts, %d in README.md", len(rules), n)
	}
}

type panel struct {
	ID          int
	Type, Title string
	Targets     []struct{ Expr string }
}

func dashboard(t *testing.T) []panel {
	t.Helper()
	var d struct{ Panels []panel }
	must(t, json.Unmarshal([]byte(text(t, "server/deploy/grafana.json")), &d))
	return d.Panels
}

// Every panel shows existing metrics, and the panels and the README have every metric of ours.
func TestDashboard(t *testing.T) {
	metrics, shown := exposed(t), map[string]bool{}
	for _, p := range dashboard(t) {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s is empty", p.Title)
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
	readme := text(t, "server/deploy/README.md")
	for name := range metrics {
		base := regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(name, "")
		short, ours := strings.CutPrefix(base, "strikecache_")
		if ours && !shown[name] && !shown[base+"_bucket"] {
			t.Errorf("%s is shown nowhere", name)
		}
		if ours && !strings.Contains(short, "_cache_") && !strings.Contains(readme, "`"+short+"`") {
			t.Errorf("README.md does not name %s", name)
		}
	}
}

// promtool accepts the rules, the dashboard's expressions and the configuration of Prometheus.
func TestPromtool(t *testing.T) {
	promtool := installed(t, "promtool")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, p := range dashboard(t) {
		for i, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".+", "$underlying", ".+").Replace(target.Expr)
			fmt.Fprintf(&rules, "  - {record: 'panel:%d:%d', expr: '%s'}\n", p.ID, i, expr)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"dashboard.yml": rules.String(), "alerts.yml": text(t, "server/deploy/alerts.yml"),
		"prometheus.yml": compose(t, "compose.yaml").Configs["prometheus"].Content, "single.yml": compose(t, "compose-single.yaml").Configs["prometheus"].Content,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	prints(t, promtool, "check", "rules", filepath.Join(dir, "alerts.yml"), filepath.Join(dir, "dashboard.yml"))
	prints(t, promtool, "test", "rules", filepath.Join(root, "server", "deploy", "alerts_test.yml"))
	prints(t, promtool, "check", "config", filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "single.yml"))
}
