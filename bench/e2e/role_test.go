package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// An edge that cannot reach its fleet serves its stored answers. Its page says the role. The page asks for the role after its
// first chart.
func TestPageSaysTheRole(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := serveReady(t, "--listen", freeAddress(t), "--data-dir", storedDay(t), "--nats", "nats://"+freeAddress(t), "--edge")
	b := browse(t, p.url)
	b.do(chromedp.Navigate(p.url))
	b.until("the page says the role", `document.querySelector("#role strong").innerText === "edge"`)
	asked := eval[[]string](b, `asked.map(a => a.url)`)
	if first := asked[0]; !strings.HasPrefix(first, trackPath) && !strings.HasPrefix(first, gammaPath) || !eval[bool](b, `!!document.querySelector(".plot canvas")`) {
		t.Errorf("the page asks for the role before its first chart: %q", asked)
	}
	b.until("every panel has its answer", allLoaded)
	b.looks("role")
	if got := p.degraded(); got != "fleet" {
		t.Errorf("degraded: %q", got)
	}
	b.clean()
	p.stop()
}
