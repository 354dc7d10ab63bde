package e2e

import (
	"encoding/csv"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// infinity is a query of Grafana's Infinity data source.
type infinity struct {
	Type, Parser, Source, URL string
	Root                      string `json:"root_selector"`
	Columns                   []struct{ Selector, Type string }
}

// rows returns the rows that the data source makes of an answer: of CSV the lines after the header, of JSON what the root selector
// finds, which is a path, or a program of jq with the parser jq-backend.
func (q infinity) rows(t *testing.T, answer string) (rows []map[string]any) {
	t.Helper()
	filter := "[" + q.Root + "] | flatten(1)"
	switch {
	case q.Type == "csv":
		lines, err := csv.NewReader(strings.NewReader(answer)).ReadAll()
		must(t, err)
		for _, line := range lines[1:] {
			row := map[string]any{}
			for i, name := range lines[0] {
				if row[name] = line[i]; line[i] == "" {
					row[name] = nil
				}
			}
			rows = append(rows, row)
		}
		return rows
	case q.Parser == "backend":
		filter = "." + q.Root
	case q.Parser != "jq-backend":
		t.Fatalf("parser %q", q.Parser)
	}
	cmd := exec.Command(installed(t, "jq"), "-c", filter)
	cmd.Stdin = strings.NewReader(answer)
	found, err := cmd.Output()
	if err != nil {
		t.Fatalf("jq %s: %v", filter, err)
	}
	if err := json.Unmarshal(found, &rows); err != nil {
		t.Fatalf("jq %s: %v: %s", filter, err, found)
	}
	return rows
}

// Every query of grafana-levels.json has its rows and columns on a running server, for each underlying that its variable offers. A
// value that needs more sessions than the market of this test has may be unknown everywhere.
func TestLevelsDashboard(t *testing.T) {
	t.Parallel()
	var d struct {
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
		Panels []struct {
			Title   string
			Targets []infinity
		}
	}
	must(t, json.Unmarshal([]byte(text(t, "server/deploy/grafana-levels.json")), &d))
	var variable struct{ InfinityQuery infinity }
	if err := json.Unmarshal(d.Templating.List[1].Query, &variable); err != nil || d.Templating.List[1].Name != "u" {
		t.Fatalf("%v: %+v", err, d.Templating.List)
	}
	p := shared(t)
	fetched := func(path string) string {
		resp, body := p.get(path)
		equal(t, resp.StatusCode, 200, "status of %s", path)
		return string(body)
	}
	var symbols []string
	for _, row := range variable.InfinityQuery.rows(t, fetched(variable.InfinityQuery.URL)) {
		symbols = append(symbols, row["__text"].(string)+"="+row["__value"].(string))
	}
	if !slices.Equal(symbols, []string{"SPX=spx", "SPY=spy", "XLF=xlf", "NDX=ndx", "AAPL=aapl"}) {
		t.Fatalf("the variable offers %q", symbols)
	}
	many := []string{"rank_1y", "realised_20d"}
	for _, u := range []string{"spx", "spy"} {
		for _, panel := range d.Panels {
			for _, q := range panel.Targets {
				of := strings.NewReplacer("${u}", u)
				q.URL, q.Root = of.Replace(q.URL), of.Replace(q.Root)
				rows := q.rows(t, fetched(q.URL))
				if len(rows) == 0 || len(q.Columns) == 0 || q.Source != "url" {
					t.Errorf("%s of %s: %d rows, %d columns, source %s", panel.Title, u, len(rows), len(q.Columns), q.Source)
					continue
				}
				for _, c := range q.Columns {
					if _, there := rows[0][c.Selector]; !there {
						t.Errorf("%s of %s: no %s", panel.Title, u, c.Selector)
					}
					known := slices.ContainsFunc(rows, func(row map[string]any) bool { return row[c.Selector] != nil })
					if !known && !slices.Contains(many, c.Selector) {
						t.Errorf("%s of %s: no row knows %s", panel.Title, u, c.Selector)
					}
				}
			}
		}
	}
}

// A running server exposes every metric with the labels that the alerts and the operator's dashboard use, but for those of a fleet,
// of TLS, of a fault, and of keys. The series of what has not happened yet are there: increase and rate do not see a first 1.
func TestMetricsOfARunningServer(t *testing.T) {
	t.Parallel()
	server := shared(t)
	server.get(gammaPath)
	scrape := server.operator("/metrics")
	if strings.Contains(scrape, "strikecache_fleet") {
		t.Error("a process outside a fleet has metrics of one")
	}
	there := exposedBy(t, scrape)
	for _, feed := range []string{"spx", "spy", "sectors", "vix", "expiry", "backfill", "track"} {
		for _, metric := range []string{`refreshes_total{code="panic"`, `documents_refused_total{code="price_jump"`} {
			if series := "\nstrikecache_" + metric + `,feed="` + feed + `"} 0` + "\n"; !strings.Contains(scrape, series) {
				t.Errorf("no %s", series)
			}
		}
	}
	absent := regexp.MustCompile(`strikecache_(fleet_|tls_cert|degraded|key_requests)`)
	for name, labels := range exposed(t) {
		if absent.MatchString(name) {
			continue
		}
		for _, l := range labels {
			if !slices.Contains(there[name], l) {
				t.Errorf("%s has no label %s", name, l)
			}
		}
	}
	for _, p := range dashboard(t) {
		for _, target := range p.Targets {
			if _, err := check(target.Expr, there); err != nil && !absent.MatchString(err.Error()) {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
}
