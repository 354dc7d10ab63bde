package snapshots

import (
	"net/http"
	"regexp"
	"testing"
	"time"
)

func TestTags(t *testing.T) {
	base := sealed(t, `{"a":1}`)
	other := meta()
	other.Freshness.State = "closed"
	seen := map[string]string{}
	for name, s := range map[string]*Snapshot{
		"base": base, "other data": sealed(t, `{"a":2}`), "other meta": sealedWith(t, `{"a":1}`, other), "no data": sealed(t, `null`),
	} {
		for c, suffix := range map[Coding]string{Identity: "", Gzip: "-gz", Brotli: "-br", Zstd: "-zs"} {
			tag := s.ETag(c)
			failIf(t, !regexp.MustCompile(`^"[0-9a-f]{32}`+suffix+`"$`).MatchString(tag), "%s, %v: tag %s", name, c, tag)
			if before, ok := seen[tag]; ok {
				t.Errorf("%s and %s, %v share the tag %s", before, name, c, tag)
			}
			seen[tag] = name + ", " + c.String()
		}
	}
}

func TestFreshnessEqual(t *testing.T) {
	a, b, same := "a", "b", "a"
	states := []Freshness{{State: "fresh"}, {State: "closed"}, {State: "fresh", Reason: &a}, {State: "fresh", Reason: &b}}
	for i, f := range states {
		for j, g := range states {
			g.Since = asOf
			equal(t, f.Equal(g), i == j, "%v equal to %v", f, g)
		}
	}
	failIf(t, !states[2].Equal(Freshness{State: "fresh", Reason: &same}), "reasons are compared by pointer")
}

func TestLastModified(t *testing.T) {
	computed := asOf.Add(16 * time.Minute)
	for name, c := range map[string]struct {
		computed, since, want time.Time
	}{
		"computed while fresh":     {computed, asOf, computed},
		"sealed again since":       {computed, computed.Add(time.Hour), computed.Add(time.Hour)},
		"in another zone":          {computed.In(time.FixedZone("", -5*3600)), asOf, computed},
		"parts of a second, since": {computed, computed.Add(1900 * time.Millisecond), computed.Add(time.Second)},
	} {
		m := Meta{ComputedAt: c.computed, Freshness: Freshness{Since: c.since}}
		equal(t, newSnapshot(m, 0).LastModified(), c.want.UTC().Format(http.TimeFormat), "%s", name)
	}
}
