package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func envelope(data string) []byte {
	return []byte(`{"success":true,"data":` + data + `,"meta":{"source":"simulated","receipt":{"method":"gex/3"},"as_of":"T"},"usage":{"tier":"anonymous"}}`)
}

func TestCompact(t *testing.T) {
	for _, c := range []struct {
		name, data string
		rows       int
		cut, want  string // a sentence of cut for each |
	}{
		{"as it is", `{"data_sha256":"a","spot":1.5,"b":true,"a":{"call":null},"range":[1,2],"none":[],"big":123456789012345}`, 1, "",
			`{"spot":1.5,"b":true,"a":{"call":null},"range":[1,2],"none":[],"big":123456789012345}`},
		{"objects become columns", `{"l":[{"s":"A","r":{"d":1,"w":{"x":2}},"t":["u","v"]},{"s":"B","r":null,"extra":3}]}`, 5, "",
			`{"l":{"columns":["s","r.d","r.w.x","t","r","extra"],"rows":[["A",1,2,["u","v"],null,null],["B",null,null,null,null,3]]}}`},
		{"nearest the spot", `{"spot":103,"by_strike":[{"strike":100},{"strike":101},{"strike":102},{"strike":104},{"strike":120}]}`, 3,
			"data.by_strike: 3 of 5 rows, nearest the spot", `{"spot":103,"by_strike":{"columns":["strike"],"rows":[[101],[102],[104]]}}`},
		{"nearest the spot, deeper", `{"spot":103,"pm":{"curve":[{"settlement_price":100},{"settlement_price":104}]}}`, 1,
			"data.pm.curve: 1 of 2 rows, nearest the spot", `{"spot":103,"pm":{"curve":{"columns":["settlement_price"],"rows":[[104]]}}}`},
		{"spot unknown", `{"spot":null,"by_strike":[{"strike":100},{"strike":101}]}`, 1,
			"data.by_strike: 1 of 2 rows, the first", `{"spot":null,"by_strike":{"columns":["strike"],"rows":[[100]]}}`},
		{"no ladder", `{"spot":103,"items":[{"id":"B","strike":9},{"id":"A","strike":103}]}`, 1,
			"data.items: 1 of 2 rows, the first", `{"spot":103,"items":{"columns":["id","strike"],"rows":[["B",9]]}}`},
		{"series", `{"columns":["date","spot"],"rows":[["a",1],["b",2],["c",3]]}`, 2,
			"data.rows: 2 of 3 rows, the newest", `{"columns":["date","spot"],"rows":[["b",2],["c",3]]}`},
		{"track", `{"columns":["as_of","spot"],"rows":[["1",1],["2",2],["3",3],["4",4],["5",5]]}`, 3,
			"data.rows: 3 of 5 rows, evenly spaced up to the newest", `{"columns":["as_of","spot"],"rows":[["1",1],["3",3],["5",5]]}`},
		{"track with events", `{"columns":["as_of","spot","zero_gamma_flip","call_wall","gamma_regime"],"rows":[["1",9,8,10,"positive"],["2",9,8,11,"positive"],["3",9,8,11,"positive"],["4",9,8,11,"positive"],["5",7,8,11,"negative"],["6",7,8,11,"negative"],["7",7,8,11,"negative"]]}`, 4,
			"data.rows: 4 of 7 rows, the newest at which the regime or a wall changed or the spot crossed the flip, and others evenly spaced up to the newest",
			`{"columns":["as_of","spot","zero_gamma_flip","call_wall","gamma_regime"],"rows":[["1",9,8,10,"positive"],["2",9,8,11,"positive"],["5",7,8,11,"negative"],["7",7,8,11,"negative"]]}`},
		{"lists in rows", `{"columns":["as_of","strikes"],"rows":[["1",[1,2,3,4,5]],["2",[2,3]]]}`, 2,
			"data.rows: 2 of 5 values in a list, those in the middle", `{"columns":["as_of","strikes"],"rows":[["1",[2,3]],["2",[2,3]]]}`},
		{"one row of a track", `{"columns":["as_of"],"rows":[["1"],["2"]]}`, 1,
			"data.rows: 1 of 2 rows, evenly spaced up to the newest", `{"columns":["as_of"],"rows":[["2"]]}`},
		{"matrix", `{"spot":2,"expirations":[{"expiration":"d"},{"expiration":"e"},{"expiration":"f"}],"strikes":[{"strike":1},{"strike":2}],"n":[[10,11,12],[20,null,22]]}`, 1,
			"data.expirations: 1 of 3 rows, the first|data.strikes: 1 of 2 rows, nearest the spot|data.n: 1 of 2 rows, nearest the spot",
			`{"spot":2,"expirations":{"columns":["expiration"],"rows":[["d"]]},"strikes":{"columns":["strike"],"rows":[[2]]},"n":[[20]]}`},
		{"the walls", `{"spot":103,"call_wall":120,"put_wall":90,"by_strike":[{"strike":90},{"strike":100},{"strike":101},{"strike":104},{"strike":120},{"strike":130}]}`, 3,
			"data.by_strike: 3 of 6 rows, those of the walls and nearest the spot", `{"spot":103,"call_wall":120,"put_wall":90,"by_strike":{"columns":["strike"],"rows":[[90],[104],[120]]}}`},
		{"no room for the walls", `{"spot":103,"call_wall":120,"put_wall":90,"by_strike":[{"strike":90},{"strike":101},{"strike":104},{"strike":120}]}`, 2,
			"data.by_strike: 2 of 4 rows, nearest the spot", `{"spot":103,"call_wall":120,"put_wall":90,"by_strike":{"columns":["strike"],"rows":[[101],[104]]}}`},
		{"tables in a list", `{"spot":1,"parts":[{"name":"a","by":[]},{"name":"b","by":[{"strike":1},{"strike":2}]}]}`, 1, "data.parts[1].by: 1 of 2 rows, nearest the spot",
			`{"spot":1,"parts":[{"name":"a","by":[]},{"name":"b","by":{"columns":["strike"],"rows":[[1]]}}]}`},
		{"other lists", `{"mixed":[{"x":1},1],"empty":[{"x":{}}],"none":[{"usage":1},{"usage":2}]}`, 2, "",
			`{"mixed":[{"x":1},1],"empty":{"columns":["x"],"rows":[[{}]]},"none":{"columns":null,"rows":[[],[]]}}`},
	} {
		cut := ""
		if c.cut != "" {
			cut = `"` + strings.ReplaceAll(c.cut, "|", `; a larger rows gives more","`) + `; a larger rows gives more"`
		}
		want := `{"warning":"SIMULATED MARKET: no number here is real","cut":[` + cut + `],"data":` + c.want + `,"meta":{"source":"simulated","as_of":"T"}}`
		if got, err := compact(envelope(c.data), c.rows); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s, want\n%s", c.name, err, got, want)
		}
	}
}

func TestCompactSources(t *testing.T) {
	for source, want := range map[string]string{
		"replay": `{"warning":"RECORDED MARKET: the numbers are those of as_of, not of today","cut":[],"data":{},"meta":{"source":"replay"}}`,
		"cboe":   `{"cut":[],"data":{},"meta":{"source":"cboe"}}`,
	} {
		if got, err := compact(fmt.Appendf(nil, `{"data":{},"meta":{"source":%q}}`, source), 1); err != nil || string(got) != want {
			t.Errorf("%s: %v, %s", source, err, got)
		}
	}
	for _, bad := range []string{``, `{`, `null`, `[]`, `{}`, `{"data":{},"meta":{}}`, `{"data":[],"meta":{"source":"cboe"}}`, `{"data":{},"meta":{"source":7}}`} {
		if got, err := compact([]byte(bad), 1); err == nil {
			t.Errorf("%s becomes %s", bad, got)
		}
	}
}

// Whatever a server sends, the compact form is JSON with the source.
func FuzzCompact(f *testing.F) {
	for _, data := range []string{`{}`, `{"a":[{"b":{}},{"b":[[]]}],"spot":1}`, `{"columns":["as_of"],"rows":[[1],[2]],"strikes":[{"strike":1}],"n":[[]],"expirations":[]}`} {
		f.Add(envelope(data), 1)
	}
	f.Add(envelope(`{"spot":1,"columns":["strike"],"rows":[[],[]]}`), 1)
	f.Add([]byte(strings.Repeat("[", 20_000)), 3)
	f.Fuzz(func(t *testing.T, body []byte, rows int) {
		got, err := compact(body, min(max(rows, 1), maxRows))
		var answer struct{ Meta struct{ Source string } }
		if err == nil && (json.Unmarshal(got, &answer) != nil || answer.Meta.Source == "") {
			t.Errorf("%s becomes %s", body, got)
		}
	})
}
