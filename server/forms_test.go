package server_test

import (
	"bytes"
	"strings"
	"testing"

	"strikecache/server/keys"
	"strikecache/snapshots"
)

// Each form is sent as it was sealed, in identity and gzip, with its type, its own strong tag and what meta says, and with the caching of
// the JSON. format=json is the answer without format.
func TestForms(t *testing.T) {
	s := newFinder(t)
	c := clientOf(t, newServer(s))
	flow := s.editions["options/flow/unusual"]
	for target, answer := range map[string]*snapshots.Snapshot{
		"/api/v1/gex/spx/series?":                                 s.editions["gex/spx/series"].Default,
		"/api/v1/gex/spx/matrix?":                                 s.editions["gex/spx/matrix"].Default,
		"/api/v1/gex/spx/levels?x=1&":                             s.editions["gex/spx/levels"].Default,
		"/api/v1/gex/spx/intraday?":                               s.editions["gex/spx/intraday"].Default,
		"/api/v1/gex/spx/intraday?date=2026-11-20&":               s.past["gex/spx/intraday"]["2026-11-20"],
		"/api/v1/gex/spx/intraday?date=2026-11-18&":               s.past["gex/spx/intraday"]["2026-11-18"], // immutable
		"/api/v1/options/flow/unusual?":                           flow.Default,
		"/api/v1/options/flow/unusual?limit=100&a=b&":             flow.Variants["100"],
		"/api/v1/options/flow/unusual?limit=100&date=2026-11-18&": s.limited["100"], // immutable
	} {
		plain, body := do(t, c, "GET", strings.TrimRight(target, "&?="), "Accept-Encoding", "identity")
		again, same := do(t, c, "GET", target+"format=json", "Accept-Encoding", "identity")
		if again.StatusCode != 200 || !bytes.Equal(body, same) || again.Header.Get("ETag") != plain.Header.Get("ETag") {
			t.Errorf("%s: format=json gives %d %s", target, again.StatusCode, same)
		}
		formats := map[string]string{"csv": "text/csv; charset=utf-8"}
		if strings.Contains(target, "levels") {
			formats["line"] = "text/plain; charset=utf-8"
		}
		for name, contentType := range formats {
			form := answer.Form(name)
			for _, coding := range []snapshots.Coding{snapshots.Identity, snapshots.Gzip} {
				get, body := do(t, c, "GET", target+"f%6Frmat="+name, "Accept-Encoding", coding.String()+", identity;q=0.1")
				if get.StatusCode != 200 || !bytes.Equal(body, form.Body(coding)) {
					t.Fatalf("%s%s: %d %.300q", target, name, get.StatusCode, body)
				}
				for field, want := range map[string]string{
					"Content-Type": contentType, "ETag": form.ETag(coding), "Cache-Control": plain.Header.Get("Cache-Control"),
					"Cache-Tag": plain.Header.Get("Cache-Tag"), "Vary": "Accept-Encoding, X-API-Key", "Last-Modified": plain.Header.Get("Last-Modified"),
					"X-Source": "simulated", "X-As-Of": answer.Meta.AsOf.Format("2006-01-02T15:04:05Z"), "X-Freshness": "", "Use-As-Dictionary": "",
				} {
					equal(t, get.Header.Get(field), want, "%s%s: %s", target, name, field)
				}
			}
			for _, tag := range []string{form.ETag(snapshots.Brotli), "W/" + form.ETag(snapshots.Identity), `"a", ` + form.ETag(snapshots.Zstd)} {
				resp, body := do(t, c, "GET", target+"format="+name, "If-None-Match", tag)
				if resp.StatusCode != 304 || len(body) > 0 || resp.Header.Get("X-Source") != "simulated" || resp.Header.Get("Content-Type") != "" {
					t.Errorf("%s%s: %s gives %d %v", target, name, tag, resp.StatusCode, resp.Header)
				}
			}
			if resp, _ := do(t, c, "GET", target+"format="+name, "If-None-Match", answer.ETag(snapshots.Identity)); resp.StatusCode != 200 {
				t.Errorf("%s%s: the tag of the JSON gives %d", target, name, resp.StatusCode)
			}
		}
	}
}

// A form has no usage: a key gets the same bytes with the same strong tag. No shared cache may store them.
func TestFormsForKeys(t *testing.T) {
	s := newFinder(t)
	web, secrets := withKeys(t, s, nil, keys.Key{Name: "k", PerDay: 3})
	c := clientOf(t, web)
	form := s.editions["gex/spx/levels"].Default.Form("csv")
	for i, headers := range [][]string{nil, {"If-None-Match", form.ETag(snapshots.Gzip)}, {"If-None-Match", form.ETag(snapshots.Identity)}, nil} {
		resp, body := do(t, c, "GET", "/api/v1/gex/spx/levels?format=csv", append(headers, "X-API-Key", secrets["k"])...)
		if want := []int{200, 304, 304, 429}[i]; resp.StatusCode != want {
			t.Fatalf("request %d: %d %s", i, resp.StatusCode, body)
		}
		if i == 3 {
			return // errors are JSON
		}
		if h := resp.Header; h.Get("ETag") != form.ETag(snapshots.Identity) || !strings.HasPrefix(h.Get("Cache-Control"), "private, max-age=60, ") || h.Get("X-RateLimit-Limit") != "3" ||
			resp.StatusCode == 200 && !bytes.Equal(body, form.Body(snapshots.Identity)) {
			t.Errorf("request %d: %v %s", i, h, body)
		}
	}
}
