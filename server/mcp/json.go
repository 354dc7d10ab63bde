package mcp

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// A parsed JSON value is an object, a list ([]any), or the text of another value (json.RawMessage). Unlike a map, an object
// keeps the order of its members, and numbers keep their digits.
type object []member

type member struct {
	key   string
	value any
}

// get returns the value of a member, nil when there is none.
func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

var null = json.RawMessage("null")

// maxDepth is the depth below which a value is kept as text. Answers have at most 6 levels.
const maxDepth = 16

// parse returns the parsed form of a JSON text, nil when it is not valid.
func parse(raw json.RawMessage, depth int) any {
	raw = bytes.TrimSpace(raw)
	if depth == 0 && !json.Valid(raw) {
		return nil
	}
	if depth == maxDepth {
		return raw
	}
	switch raw[0] {
	case '{':
		o := object{}
		d := json.NewDecoder(bytes.NewReader(raw))
		_, _ = d.Token() // no error below: the text is valid
		for d.More() {
			key, _ := d.Token()
			var value json.RawMessage
			_ = d.Decode(&value)
			o = append(o, member{key.(string), parse(value, depth+1)})
		}
		return o
	case '[':
		var raws []json.RawMessage
		_ = json.Unmarshal(raw, &raws)
		list := make([]any, len(raws))
		for i := range raws {
			list[i] = parse(raws[i], depth+1)
		}
		return list
	}
	return raw
}

// appendJSON appends a parsed value as JSON without spaces.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, quoted(m.key)...), ':')
			dst = appendJSON(dst, m.value)
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case json.RawMessage:
		return append(dst, v...)
	}
	return append(dst, null...)
}

// quoted returns a text as JSON.
func quoted(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has no error
	return bytes.TrimSpace(b.Bytes())
}

// text returns a JSON string as text, "" when the value is none.
func text(v any) (s string) {
	raw, _ := v.(json.RawMessage)
	_ = json.Unmarshal(raw, &s) // leaves "" for another value
	return s
}

// number returns a JSON number, NaN when the value is none.
func number(v any) float64 {
	raw, _ := v.(json.RawMessage)
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}
