package simulated

import (
	"bytes"
	"regexp"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
)

const htmlPage = "<!DOCTYPE html>\n<html><head><title>Just a moment...</title></head>" +
	"<body>Checking your browser before accessing the site.</body></html>\n"

// prices are the members from which a reader takes the price of the underlying.
var prices = regexp.MustCompile(`"(current_price|close)": ?[0-9.eE+-]+`)

// spoil returns the document as a fault alters it.
func (m *Market) spoil(doc *upstream.Document, fault Fault, now time.Time) (*upstream.Document, error) {
	kind, key := doc.Name.Split()
	body := doc.Body
	switch fault {
	case HTMLPage:
		body = []byte(htmlPage)
	case EmptyOptions:
		body = keepRows(body, kind, func(int) int { return 0 })
	case Shrink:
		body = keepRows(body, kind, func(rows int) int { return (rows + 9) / 10 })
	case GarbageNumbers:
		body = garble(body, kind)
	case GarbagePrice:
		body = prices.ReplaceAll(body, []byte(`"$1":"n/a"`))
	case BackwardClock:
		body = backdate(body)
	case StaleSettlement:
		if kind != upstream.SettlementKind {
			return doc, nil
		}
		date, err := compute.ParseDate(key)
		if err != nil {
			return nil, err
		}
		stale, err := m.At(upstream.Settlement(m.calendar.Previous(date).String()), now)
		if err != nil {
			return nil, err
		}
		stale.Name = doc.Name
		return stale, nil
	default:
		return doc, nil
	}
	spoiled := *doc
	spoiled.Body, spoiled.ETag = body, etag(body)
	return &spoiled, nil
}

// rowsOf returns the range of a body that holds its rows, and what separates them: the elements of the options
// or data array, the lines after a header. A quote has none.
func rowsOf(body []byte, kind upstream.Kind) (from, to int, separator string) {
	array := `"options":[`
	switch kind {
	case upstream.SettlementKind:
		header := bytes.Index(body, []byte("\r\n"))
		return header + 2, len(body), "\r\n"
	case upstream.HistoryKind:
		array = `"data":[`
	}
	at := bytes.Index(body, []byte(array))
	if at < 0 {
		return 0, 0, ""
	}
	from = at + len(array)
	return from, from + bytes.IndexByte(body[from:], ']'), "},"
}

// keepRows returns a body with its first rows only, as many of them as keep says.
func keepRows(body []byte, kind upstream.Kind, keep func(rows int) int) []byte {
	from, to, separator := rowsOf(body, kind)
	if separator == "" {
		return body
	}
	rows := bytes.SplitAfter(body[from:to], []byte(separator))
	kept := bytes.Join(rows[:keep(len(rows))], nil)
	kept = bytes.TrimSuffix(kept, []byte(","))
	return bytes.Join([][]byte{body[:from], kept, body[to:]}, nil)
}

// garble returns a body with every seventh number of its rows, or of a quote, replaced by garbage.
func garble(body []byte, kind upstream.Kind) []byte {
	garbage := [...]string{`null`, `"n/a"`, `1e308`, `-1.0`, `"12.5"`, `1e999`, `[]`, `{}`, `true`, `"NaN"`, `99999999999999999999.0`}
	if kind == upstream.SettlementKind {
		garbage = [...]string{``, `n/a`, `1e308`, `-1.0`, `0`, `1e999`, `*`, `NaN`, `-`, `?`, `99999999999999999999.0`}
	}
	from, to, separator := rowsOf(body, kind)
	if separator == "" {
		to = len(body)
	}
	out := append(make([]byte, 0, len(body)+len(body)/16), body[:from]...)
	numbers := 0
	for from < to {
		n := numberAt(body[from:to], kind)
		if n.start < 0 {
			break
		}
		out = append(out, body[from:from+n.start]...)
		token := body[from+n.start : from+n.end]
		if numbers++; numbers%7 == 3 {
			token = []byte(garbage[numbers/7%len(garbage)])
		}
		out = append(out, token...)
		from += n.end
	}
	return append(out, body[from:]...)
}

// token is the range of a number.
type token struct{ start, end int }

// numberAt returns the next number that is a member's value, in quotes or not, or the last field of a line; start
// is negative when there is none.
func numberAt(b []byte, kind upstream.Kind) token {
	before, ends := `":`, ",}"
	if kind == upstream.SettlementKind {
		before, ends = ",", ",\r"
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(before))
		if i < 0 {
			return token{start: -1}
		}
		at += i + len(before)
		end := bytes.IndexAny(b[at:], ends)
		if end < 0 {
			return token{start: -1}
		}
		number := bytes.Trim(b[at:at+end], `"`)
		if len(number) > 0 && len(bytes.Trim(number, "0123456789.-e")) == 0 && bytes.Count(number, []byte("-")) < 2 {
			return token{at, at + end}
		}
	}
}

// backdate returns a body whose timestamp is an hour older.
func backdate(body []byte) []byte {
	const head, layout = `{"timestamp":"`, "2006-01-02 15:04:05"
	if !bytes.HasPrefix(body, []byte(head)) {
		return body
	}
	stamp := body[len(head) : len(head)+len(layout)]
	t, err := time.Parse(layout, string(stamp))
	if err != nil {
		return body
	}
	out := bytes.Clone(body)
	t.Add(-time.Hour).AppendFormat(out[:len(head)], layout)
	return out
}
