package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

var testKeys = []key{{"k_1", "one"}, {"k_2", "two"}}

const anonymousUsage = `{"tier":"anonymous"}`

func keyedUsage(id string, today int) string {
	return fmt.Sprintf(`{"tier":"keyed","key":%q,"requests_today":%d,"resets_at":"2026-11-21T00:00:00Z"}`, id, today)
}

// answer makes an answer as it should be, but for the usage that it is given.
func answer(keyed bool, tag, usage string) got {
	h := http.Header{"Cache-Control": {"public, max-age=25, stale-while-revalidate=25"}, "Etag": {tag}}
	if keyed {
		h = http.Header{"Cache-Control": {"private, max-age=25"}, "Etag": {"W/" + tag}, "X-Ratelimit-Remaining": {"9"}}
	}
	return got{200, h, []byte(`{"success":true,"data":{"symbol":"SPX"},"meta":{},"usage":` + usage + `}`)}
}

func (g got) with(name, value string) got {
	g.header = maps.Clone(g.header)
	g.header.Set(name, value)
	return g
}

func TestCheck(t *testing.T) {
	nobody, first := ask{0, -1}, ask{0, 0}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(answer(false, `"a"`, anonymousUsage).body)
	z.Close()
	packed := answer(false, `"a"`, anonymousUsage).with("Content-Encoding", "gzip")
	packed.body = zipped.Bytes()
	torn := packed
	torn.body = torn.body[:len(torn.body)-9]
	for _, test := range []struct {
		name            string
		ask             ask
		answers         []got
		failures, leaks int
	}{
		{"anonymous", nobody, []got{answer(false, `"a"`, anonymousUsage), answer(false, `"a"`, anonymousUsage), answer(false, `"b"`, anonymousUsage)}, 0, 0},
		{"keyed", first, []got{answer(true, `"a"`, keyedUsage("k_1", 1)), answer(true, `"a"`, keyedUsage("k_1", 2))}, 0, 0},
		{"gzip", ask{1, -1}, []got{packed}, 0, 0},

		{"keyed to anonymous", nobody, []got{answer(true, `"a"`, keyedUsage("k_1", 1))}, 0, 1},
		{"usage of a key under public headers", nobody, []got{answer(false, `"a"`, keyedUsage("k_1", 1))}, 0, 1},
		{"limits of a key", nobody, []got{answer(false, `"a"`, anonymousUsage).with("X-RateLimit-Remaining", "9")}, 0, 1},
		{"private to anonymous", nobody, []got{answer(false, `"a"`, anonymousUsage).with("Cache-Control", "private")}, 0, 1},
		{"anonymous to keyed", first, []got{answer(false, `"a"`, anonymousUsage)}, 0, 1},
		{"another key's", first, []got{answer(true, `"a"`, keyedUsage("k_2", 1))}, 0, 1},
		{"keyed but public", first, []got{answer(true, `"a"`, keyedUsage("k_1", 1)).with("Cache-Control", "public")}, 0, 1},
		{"stored keyed", first, []got{answer(true, `"a"`, keyedUsage("k_1", 1)), answer(true, `"a"`, keyedUsage("k_1", 1))}, 0, 1},
		{"shrinking usage", first, []got{answer(true, `"a"`, keyedUsage("k_1", 2)), answer(true, `"a"`, keyedUsage("k_1", 1))}, 0, 1},

		{"status", nobody, []got{{503, http.Header{}, nil}}, 1, 0},
		{"other coding", ask{1, -1}, []got{answer(false, `"a"`, anonymousUsage)}, 1, 0},
		{"torn", ask{1, -1}, []got{torn}, 1, 0},
		{"no JSON", nobody, []got{{200, http.Header{}, []byte("<html>")}}, 1, 0},
		{"weak", nobody, []got{answer(false, `W/"a"`, anonymousUsage)}, 1, 0},
		{"backwards", nobody, []got{answer(false, `"a"`, anonymousUsage), answer(false, `"b"`, anonymousUsage), answer(false, `"a"`, anonymousUsage)}, 1, 0},
	} {
		c, seen := newChecker(testKeys, false), newConnection()
		for _, g := range test.answers {
			c.check(test.ask, g, nil, seen)
		}
		if c.failures != test.failures || c.leaks != test.leaks {
			t.Errorf("%s: %d failures and %d leaks, want %d and %d: %q", test.name, c.failures, c.leaks, test.failures, test.leaks, c.complaint)
		}
	}
}

// A count that no answer had is a request that reached the origin twice.
func TestGaps(t *testing.T) {
	c, seen := newChecker(testKeys, false), newConnection()
	for _, today := range []int{4, 5, 7} {
		c.check(ask{0, 0}, answer(true, `"a"`, keyedUsage("k_1", today)), nil, seen)
	}
	day := "k_1 2026-11-21T00:00:00Z"
	if n := c.gaps(map[string]int64{day: 3}); n != 1 {
		t.Errorf("%d gaps, want 1", n)
	}
	if n := c.gaps(nil); n != 4 {
		t.Errorf("%d gaps since the day began, want 4", n)
	}
}

func TestJudgeSteady(t *testing.T) {
	at := func(seconds ...int) (times []time.Time) {
		for _, s := range seconds {
			times = append(times, time.Unix(int64(s), 0))
		}
		return times
	}
	for _, test := range []struct {
		name  string
		gzip  []time.Time
		tags  int
		keyed int
		want  string
	}{
		{"as it should be", at(0, 25), 2, 4, ""},
		{"three requests", at(0, 26, 52), 2, 4, "3 anonymous requests"},
		{"too soon", at(0, 3), 2, 4, "within 3s"},
		{"none", nil, 2, 4, "0 anonymous requests"},
		{"no refresh", at(0, 25), 1, 4, "no refresh"},
		{"a keyed one stored", at(0, 25), 2, 3, "3 reached the origin"},
	} {
		c := newChecker(testKeys, false)
		c.maxAge = 25
		r := reached{anonymous: map[string][]time.Time{}, keyed: test.keyed}
		for i, coding := range codings {
			c.asked[ask{i, 0}] = 1
			c.tags[i], r.anonymous[coding] = map[string]bool{"a": true, "b": true}, at(0, 25)
		}
		r.anonymous["gzip"] = test.gzip
		if test.tags == 1 {
			delete(c.tags[1], "b")
		}
		b := &bench{out: &bytes.Buffer{}, origin: &origin{keys: testKeys}}
		b.judgeSteady(c, r, 32*time.Second)
		if got := strings.Join(b.problems, "; "); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: problems %q, want %q", test.name, got, test.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for list, want := range map[string]bool{"": false, "python3": false, "python3,varnish": true, "all": true} {
		if required(list) != want {
			t.Errorf("required(%q) is %v", list, !want)
		}
	}
	for _, args := range []string{"--requests 399", "--seconds 27", "--seconds 301", "more", "--unknown"} {
		if _, err := parse(strings.Fields(args), &bytes.Buffer{}); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	if asks := plan(1000, 2); !slices.Equal(asks, plan(1000, 2)) || !slices.ContainsFunc(asks, func(a ask) bool { return a.key == 1 }) {
		t.Error("the plan is not the same each time, or has no keys")
	}
}

func TestOutput(t *testing.T) {
	var o output
	fmt.Fprint(&o, `{"msg":"request","endpoint":"gex/spx","stat`)
	fmt.Fprint(&o, `us":304}`+"\nplain text\n")
	if lines := o.since(0); len(lines) != 1 || lines[0].Status != 304 || o.last() != "plain text" {
		t.Errorf("%+v, %q", lines, o.last())
	}
}
