package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// An edge that cannot reach its fleet serves its stored answers. Its page says the role. The page asks for the role after its
// first chart.
func TestPageSaysTheRole(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := serveReady(t, "--listen", freePort(t), "--data-dir", storedDay(t), "--nats", "nats://"+freePort(t), "--edge")
	b := browse(t, p.url)
	for _, width := range []int64{1400, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.view(width, 900, scheme)
			b.do(chromedp.Navigate(p.url))
			b.until("the page says the role", `document.querySelector("#role strong").innerText === "edge"`)
			asked := eval[[]string](b, `asked.map(a => a.url)`)
			if first := asked[0]; !strings.HasPrefix(first, trackPath) && !strings.HasPrefix(first, gammaPath) || !eval[bool](b, `!!document.querySelector(".plot canvas")`) {
				t.Errorf("the page asks for the role before its first chart: %q", asked)
			}
			if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("the page is %v px wider than a window of %d px", over, width)
			}
			b.shoot(fmt.Sprintf("role-%d-%s", width, scheme))
		}
	}
	if got := p.degraded(); got != "fleet" {
		t.Errorf("degraded: %q", got)
	}
	b.clean()
	p.stop()
}
