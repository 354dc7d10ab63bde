package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"strikecache/bench/need"
)

// A real scrape, of a server that has refreshed and answered, is what Prometheus wants, and has a last success of every
// feed that the alert rules watch.
func TestScrape(t *testing.T) {
	promtool := need.Program(t, "promtool")
	p := serve(t, "--data-dir", t.TempDir(), "--admin-listen", "127.0.0.1:0")
	p.ready()
	p.get("/api/v1/gex/spx")
	p.get("/api/v1/options/flow/unusual?limit=0")
	address := regexp.MustCompile(`msg="serving admin" address=(\S+)`).FindStringSubmatch(p.logged())
	if address == nil {
		t.Fatalf("no admin listener: %s", p.logged())
	}
	scrape := func() string {
		resp, err := http.Get(address[1] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(scrape())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	rules, err := os.ReadFile(filepath.Join(need.Root(t), "server", "deploy", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	feeds := regexp.MustCompile(`last_success_timestamp_seconds\{feed=~"([a-z|]+)"\}`).FindStringSubmatch(string(rules))
	if feeds == nil {
		t.Fatal("no rule about the feeds")
	}
	for _, feed := range strings.Split(feeds[1], "|") {
		p.until("a success of "+feed, func() bool { // a run ends a moment after its answers are there
			return strings.Contains(scrape(), `strikecache_refresh_last_success_timestamp_seconds{feed="`+feed+`"}`)
		})
	}
}
