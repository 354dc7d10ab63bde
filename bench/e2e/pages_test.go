package e2e

import (
	"fmt"
	"testing"
)

// The pages about the interface and the methods fit every window, because wide tables scroll. They run no script, load
// nothing from elsewhere, and link to each other.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	installed(t, "chromium")
	p := shared(t)
	b := browse(t, p.url+"/docs")
	for _, path := range []string{"/docs", "/methods"} {
		for _, width := range []int64{1400, 500, 320} {
			for _, scheme := range []string{"light", "dark"} {
				b.view(width, 900, scheme)
				if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > int(width) {
					t.Errorf("%s, %d wide: the page is %d wide", path, width, wide)
				}
				b.shoot(fmt.Sprintf("%s-%d-%s", path[1:], width, scheme))
			}
		}
		if !eval[bool](b, `[...document.querySelectorAll(".table")].some(e => e.scrollWidth > e.clientWidth)`) {
			t.Errorf("%s: on a phone no table scrolls", path)
		}
		other := map[string]string{"/docs": "/methods", "/methods": "/docs"}[path]
		b.press(`nav a[href="`+other+`"]`, "\r")
		b.until("the other page opens", `location.pathname === "`+other+`" && document.querySelector("h1")`)
	}
	b.clean()
}
