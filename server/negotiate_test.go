package server

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strikecache/snapshots"
)

// sealed is a snapshot in every coding.
func sealed(t testing.TB) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(`"`+strings.Repeat("gamma and delta ", 500)+`"`), snapshots.Meta{Quality: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Malformed elements are left out. FuzzChoose shows what well-formed headers choose.
func TestChoose(t *testing.T) {
	s := sealed(t)
	for header, want := range map[string]snapshots.Coding{
		"":                 snapshots.Identity,
		"GZip":             snapshots.Gzip,
		"gzip;q=1.001":     snapshots.Identity,
		"gzip;q=0.0001":    snapshots.Identity,
		"gzip;q=":          snapshots.Identity,
		"gzip;q=x":         snapshots.Identity,
		"gzip;level=1;q=0": snapshots.Identity,
		"gzip;q=2, br":     snapshots.Brotli,
		"identity;q=0":     snapshots.Identity, // a complete answer helps more than a 406
	} {
		if got := choose([]byte(header), s, nil); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// codingForm is an element of Accept-Encoding: codings [ weight ] (RFC 9110 §12.5.3, §12.4.2).
var codingForm = regexp.MustCompile("^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]*;[ \t]*[qQ]=(0(?:\\.[0-9]{0,3})?|1(?:\\.0{0,3})?))?[ \t]*$")

// acceptable returns the weights in a list of codings, and false when an element does not follow the grammar.
func acceptable(list string) (weights map[string]float64, wellFormed bool) {
	weights = map[string]float64{}
	for _, element := range strings.Split(list, ",") {
		if strings.Trim(element, " \t") == "" {
			continue // RFC 9110 §5.6.1.2
		}
		parts := codingForm.FindStringSubmatch(element)
		if parts == nil {
			return nil, false
		}
		weight := 1.0
		if parts[2] != "" {
			weight, _ = strconv.ParseFloat(parts[2], 64)
		}
		name := strings.ToLower(parts[1])
		weights[strings.TrimPrefix(name, "x-")] = weight // x-gzip is gzip; the server has no other coding with x-
	}
	return weights, true
}

// FuzzChoose: the coding is the one that a slow implementation of RFC 9110 prefers; of equals the one with the smallest body.
// For a malformed header, choose never returns a coding in which there is no body.
func FuzzChoose(f *testing.F) {
	all := sealed(f)
	small, err := snapshots.Seal([]byte("1"), snapshots.Meta{Quality: json.RawMessage("{}")})
	if err != nil {
		f.Fatal(err)
	}
	few, err := snapshots.SealIn([]byte(`"`+strings.Repeat("gamma and delta ", 500)+`"`), snapshots.Meta{Quality: json.RawMessage("{}")})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		"", "gzip, deflate, br, zstd, dcb, dcz", "dcz", "DCZ;q=0.9, br", "dcz;q=0.9, br;q=0.8", "dcz;q=0, *", "gzip;q=0.5, *;q=0", "gzip, deflate, br, zstd", "identity;q=0", "*;q=0", "*", "GZIP;Q=1.000, br ; q=0.999", "identity;q=0.001, gzip;q=0.001", "gzip;q=0, gzip", "x-gzip", "br;q=1.001", ",, ,br", "zstd;q=0.7;q=0.1", "gzip;level=1;q=0", "gzip; q = 1",
		"gzip", "BR;q=0.2", "zstd", "gzip; q=0.001", "gzip;q=0.000", "deflate, gzip", "deflate,,  ,gzip", "*;q=0.1, gzip;q=0.2", "*;q=0.1, br;q=0, zstd;q=0", "identity", "identity, gzip;q=0.9", "identity;q=0.5, gzip;q=0.9",
		"identity;q=0, gzip;q=0.1", "gzipped", "br;q=1.0, gzip;q=0.8, *;q=0", "zstd;q=0.9, br;q=0.8, gzip", "br;q=0.5, zstd;q=0.7, *;q=0.1", "identity, *;q=0.5", "gzip;q=0.49, br;q=0.5", "gzip;q=0.999, br;q=0.9", "deflate;q=1, *;q=0.1, br;q=0",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		for _, x := range []struct {
			*snapshots.Snapshot
			delta *snapshots.Delta
		}{{all, nil}, {small, nil}, {few, nil}, {all, &snapshots.Delta{Body: []byte("small")}}, {all, &snapshots.Delta{Body: make([]byte, 8000)}}} {
			s := x.Snapshot
			got := choose(header, s, x.delta)
			if sizeIn(got, s, x.delta) == 0 {
				t.Fatalf("%q: coding %d", header, got)
			}
			weights, wellFormed := acceptable(string(header))
			if !wellFormed || strings.Contains(strings.ToLower(string(header)), "x-") && !strings.EqualFold(string(header), "x-gzip") {
				continue
			}
			weightOf := func(c snapshots.Coding) float64 {
				if w, named := weights[c.String()]; named {
					return w
				}
				if w, star := weights["*"]; star {
					return w
				}
				if c == snapshots.Identity {
					return 0.001 // identity is acceptable unless refused, and every named coding is preferred
				}
				return 0
			}
			best := snapshots.Identity // also when every coding is refused
			for c := range snapshots.DCZ + 1 {
				w, b, size := weightOf(c), weightOf(best), sizeIn(c, s, x.delta)
				if size > 0 && w > 0 && (w > b || w == b && size < sizeIn(best, s, x.delta)) {
					best = c
				}
			}
			if got != best {
				t.Errorf("%q: %v, want %v", header, got, best)
			}
		}
	})
}

// tagForm is an element of If-None-Match with what stands before it (RFC 9110 §13.1.2, §8.8.3).
var tagForm = regexp.MustCompile(`^[ \t,]*(?:W/)?("[^" \t]*")[ \t]*(?:,|$)`)

// proxied is what proxies append to a tag, or the server itself.
var proxied = regexp.MustCompile(`([-;]+(gzip|gz|gunzip|br|zstd|zs|deflate))+"$`)

// FuzzConditional: an If-None-Match matches when it is *, or when one of the tags before its first malformed element is one of
// ours, by weak comparison.
func FuzzConditional(f *testing.F) {
	s := sealed(f)
	own, delta := s.ETag(snapshots.Gzip), strings.TrimSuffix(s.ETag(snapshots.Identity), `"`)+`-dcz-0123456789abcdef"`
	for _, s := range []string{
		"", "*", `"a"`, "TAG", "W/TAG", `"a", W/"b",,TAG ,"c"`, `"a" TAG`, "W/*", `"a`, `"a", *`, "*, TAG", "*, *", "*junk", "**", `"a b", TAG`, "w/TAG", `"a,b",TAG`, `"",""`, "\"\xff\"", "TAGTAG", " \tTAG\t",
		"DELTA", `"a", W/DELTA`, `DELTA"`, ", ,\tTAG,", "TAGjunk", "TAG, *", `"a" b, TAG`, strings.Trim(own, `"`), own[:20],
		own[:len(own)-1], `"` + own[2:], strings.ToUpper(own), own[:len(own)-1] + `-gzip"`, own[:len(own)-1] + `--br"`, own[:len(own)-1] + `;gz"`, own[:len(own)-1] + `-other"`, own + "-gzip", delta[:len(delta)-1] + `-gunzip"`, strings.Replace(own, "-gz", "-", 1), strings.Replace(own, "-gz", "-xx", 1), strings.Replace(own, "-gz", "-dcz-", 1), delta[:len(delta)-2] + `"`, `"x` + delta[2:],
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		text := strings.ReplaceAll(strings.ReplaceAll(string(list), "TAG", own), "DELTA", delta)
		want, ours := text == "*", []string{delta, s.ETag(snapshots.Identity)}
		for rest := text; ; {
			m := tagForm.FindStringSubmatchIndex(rest)
			if m == nil {
				break
			}
			want, rest = want || slices.Contains(ours, proxied.ReplaceAllString(rest[m[2]:m[3]], `"`)), rest[m[1]:]
		}
		if got := lists([]byte(text), s, nil, false); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}
