package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// envelope returns an answer with data.
func envelope(data string) []byte {
	return []byte(`{"success":true,"data":` + data + `,"meta":{"endpoint":"e","source":"simulated","as_of":"T","computed_at":"C",
		"refresh_seconds":25,"freshness":{"state":"fresh"},"receipt":{"method":"gex/3"},"quality":{"used":1},"notice":"N <1>"},"usage":{"tier":"anonymous"}}`)
}

func TestCompact(t *testing.T) {
	const head = `{"warning":"SIMULATED MARKET: no number here is real","meta":{"as_of":"T","freshness":{"state":"fresh"},"notice":"N <1>","quality":{"used":1},"source":"simulated"},`
	for _, c := range []struct {
		name, data string
		rows       int
		cut, want  string
	}{
		{"as it is", `{"spot":1.50,"walls":{"call":null},"range":[1,2],"none":[],"b":true}`, 1, "",
			`{"b":true,"none":[],"range":[1,2],"spot":1.50,"walls":{"call":null}}`},
		{"objects become columns", `{"l":[{"s":"A","r":{"d":1,"w":{"x":2}},"t":["u","v"]},{"s":"B","r":null,"extra":3}]}`, 5, "",
			`{"l":{"columns":["extra","r.d","r.w.x","s","t"],"rows":[[null,1,2,"A",["u","v"]],[3,null,null,"B",null]],"same":{"r":null}}}`},
		{"equal cells", `{"l":[{"s":"A","k":1,"n":null},{"s":"B","k":1,"n":null}]}`, 5, "",
			`{"l":{"columns":["s"],"rows":[["A"],["B"]],"same":{"k":1,"n":null}}}`},
		{"no id", `{"l":[{"id":"A:B","x":1}]}`, 5, "", `{"l":{"columns":["x"],"rows":[[1]]}}`},
		{"nearest the spot", `{"spot":103,"by_strike":[{"strike":100},{"strike":101},{"strike":102},{"strike":104},{"strike":120}]}`, 3,
			"by_strike: 3 of 5 rows, nearest the spot; ask with rows=5 for all",
			`{"by_strike":{"columns":["strike"],"rows":[[101],[102],[104]]},"spot":103}`},
		{"nearest the spot, deeper", `{"spot":103,"pm":{"curve":[{"settlement_price":100},{"settlement_price":104}]}}`, 1,
			"pm.curve: 1 of 2 rows, nearest the spot; ask with rows=2 for all",
			`{"pm":{"curve":{"columns":["settlement_price"],"rows":[[104]]}},"spot":103}`},
		{"spot unknown", `{"spot":null,"by_strike":[{"strike":100},{"strike":101}]}`, 1,
			"by_strike: 1 of 2 rows, the first; ask with rows=2 for all", `{"by_strike":{"columns":["strike"],"rows":[[100]]},"spot":null}`},
		{"strikes that are not a ladder", `{"spot":103,"items":[{"contract":"B","strike":9},{"contract":"A","strike":103}]}`, 1,
			"items: 1 of 2 rows, the first; ask with rows=2 for all", `{"items":{"columns":["contract","strike"],"rows":[["B",9]]},"spot":103}`},
		{"series", `{"columns":["date","spot"],"rows":[["a",1],["b",2],["c",3]]}`, 2,
			"rows: 2 of 3 rows, the newest; ask with rows=3 for all", `{"columns":["date","spot"],"rows":[["b",2],["c",3]]}`},
		{"track", `{"date":"d","columns":["as_of","spot"],"rows":[["1",1],["2",2],["3",3],["4",4],["5",5]]}`, 3,
			"rows: 3 of 5 rows, evenly spaced up to the newest; ask with rows=5 for all",
			`{"columns":["as_of","spot"],"date":"d","rows":[["1",1],["3",3],["5",5]]}`},
		{"one row of a track", `{"columns":["as_of"],"rows":[["1"],["2"]]}`, 1,
			"rows: 1 of 2 rows, evenly spaced up to the newest; ask with rows=2 for all", `{"columns":["as_of"],"rows":[["2"]]}`},
		{"matrix", `{"spot":2,"expirations":[{"expiration":"d","settlement":"am","n":9},{"expiration":"d","settlement":"pm","n":8}],
			"strikes":[{"strike":1,"n":5},{"strike":2,"n":6}],"n":[[10,11],[20,null]]}`, 1,
			"expirations: 1 of 2 rows, the first; ask with rows=2 for all|strikes: 1 of 2 rows, nearest the spot; ask with rows=2 for all",
			`{"expirations":{"columns":["expiration","n","settlement"],"rows":[["d",9,"am"]]},"n":[[20]],"spot":2,"strikes":{"columns":["n","strike"],"rows":[[6,2]]}}`},
		{"lists in a list", `{"parts":[{"name":"a","by":[]},{"name":"b","by":[{"strike":1}]}],"l":[{"empty":[],"mixed":[{},1]}]}`, 5,
			"parts: left out here; only the HTTP answer has this", `{"l":{"columns":["empty","mixed"],"rows":[[[],[{},1]]]}}`},
	} {
		want := head
		if c.cut != "" {
			want += `"cut":["` + strings.ReplaceAll(c.cut, "|", `","`) + `"],`
		}
		want += `"data":` + c.want + `}`
		if got, err := compact(envelope(c.data), c.rows); err != nil || got != want {
			t.Errorf("%s: %v\n%s, want\n%s", c.name, err, got, want)
		}
	}
}

// A table that is longer than any number of rows says so.
func TestCompactBounds(t *testing.T) {
	long := `{"l":[{"x":0}` + strings.Repeat(`,{"x":1}`, maxRows) + `]}`
	for rows, want := range map[int]string{
		7:       `"l: 7 of 501 rows, the first; ask with rows up to 500 for more"`,
		maxRows: `"l: 500 of 501 rows, the first"`,
	} {
		if got, err := compact(envelope(long), rows); err != nil || !strings.Contains(got, want) {
			t.Errorf("%v, %.300s; want %s", err, got, want)
		}
	}
}

func TestCompactSources(t *testing.T) {
	for source, want := range map[string]string{
		"replay": `{"warning":"RECORDED MARKET: the numbers are those of as_of, not of today","meta":{"source":"replay"},"data":{}}`,
		"cboe":   `{"meta":{"source":"cboe"},"data":{}}`,
	} {
		if got, err := compact(fmt.Appendf(nil, `{"data":{},"meta":{"source":%q}}`, source), 1); err != nil || got != want {
			t.Errorf("%s: %v, %s", source, err, got)
		}
	}
	for _, bad := range []string{``, `{`, `null`, `[]`, `{}`, `{"data":{},"meta":{}}`, `{"data":[],"meta":{"source":"cboe"}}`, `{"data":{},"meta":{"source":7}}`} {
		if got, err := compact([]byte(bad), 1); err == nil {
			t.Errorf("%s becomes %s", bad, got)
		}
	}
}

// Whatever a server sends, the compact form is JSON without receipt and with the source.
func FuzzCompact(f *testing.F) {
	for _, data := range []string{`{}`, `{"a":[{"b":{}},{"b":[[]]}],"spot":1}`, `{"columns":["as_of"],"rows":[[1],[2]],"strikes":[{"strike":1}],"n":[[]],"expirations":[]}`} {
		f.Add(envelope(data), 1)
	}
	f.Add([]byte(strings.Repeat("[", 20_000)), 3)
	f.Fuzz(func(t *testing.T, body []byte, rows int) {
		got, err := compact(body, min(max(rows, 1), maxRows))
		var answer struct{ Meta struct{ Source string } }
		if err == nil && (json.Unmarshal([]byte(got), &answer) != nil || answer.Meta.Source == "") {
			t.Errorf("%s becomes %s", body, got)
		}
	})
}
