package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// answerReader reads one HTTP/1.1 answer to a GET request from pieces of any size, and counts its body without copying it.
// The caller sets it back with begin before each request.
type answerReader struct {
	status int
	body   int64  // bytes of the body so far, without the framing of chunks
	etag   []byte // valid until begin
	closes bool   // the server closes the connection after this answer

	part    part
	line    []byte // the beginning of a line whose end has not arrived
	lines   int    // bytes of all lines
	left    int64  // bytes that are left of the body or of the chunk; -1: the header has no length
	chunked bool
}

// part is the part of an answer that comes next.
type part int

const (
	statusLine part = iota
	headerLine
	wholeBody
	bodyUntilClose
	chunkSize
	chunk
	chunkEnd // the line break after a chunk
	trailerLine
	complete
)

// mostLines bounds the header, the trailer and the sizes of all chunks, in bytes.
const mostLines = 1 << 20

var (
	errSurplus = errors.New("bytes after the end of the answer")
	errEarly   = errors.New("connection closed before the end of the answer")
)

// begin prepares for the answer to a new request.
func (a *answerReader) begin() {
	*a = answerReader{etag: a.etag[:0], line: a.line[:0], left: -1}
}

// read takes the next bytes, and returns whether the answer is complete. After an error, the connection is of no use.
func (a *answerReader) read(b []byte) (done bool, err error) {
	for len(b) > 0 {
		switch a.part {
		case complete:
			return false, errSurplus
		case bodyUntilClose:
			a.body += int64(len(b))
			return false, nil
		case wholeBody, chunk:
			n := min(int64(len(b)), a.left)
			b, a.left, a.body = b[n:], a.left-n, a.body+n
			if a.left > 0 {
				continue
			}
			if a.part == chunk {
				a.part = chunkEnd
			} else {
				a.part = complete
			}
		default:
			end := bytes.IndexByte(b, '\n')
			if a.lines += end + 1; a.lines > mostLines || len(a.line) > mostLines {
				return false, errors.New("header or framing longer than 1 MB")
			}
			if end < 0 {
				a.line = append(a.line, b...)
				return false, nil
			}
			line := b[:end]
			if len(a.line) > 0 {
				a.line = append(a.line, line...)
				line = a.line
			}
			if err := a.take(bytes.TrimSuffix(line, []byte("\r"))); err != nil {
				return false, err
			}
			a.line, b = a.line[:0], b[end+1:]
		}
	}
	return a.part == complete, nil
}

// end is called when the server has closed the connection. It returns an error if the answer is not complete.
func (a *answerReader) end() error {
	if a.part == bodyUntilClose || a.part == complete {
		return nil
	}
	return errEarly
}

// take reads a line, without its line break.
func (a *answerReader) take(line []byte) (err error) {
	switch a.part {
	case statusLine:
		if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
			return fmt.Errorf("no HTTP/1 status line: %.40q", line)
		}
		if a.status, err = strconv.Atoi(string(line[9:12])); err != nil || a.status < 100 {
			return fmt.Errorf("no HTTP/1 status line: %.40q", line)
		}
		a.closes = line[7] == '0'
		a.part = headerLine
	case headerLine:
		if len(line) == 0 {
			a.headerEnds()
			return nil
		}
		return a.field(line)
	case chunkSize:
		digits, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 63)
		if err != nil {
			return fmt.Errorf("no chunk size: %.40q", line)
		}
		if a.left, a.part = int64(n), chunk; n == 0 {
			a.part = trailerLine
		}
	case chunkEnd:
		if len(line) > 0 {
			return fmt.Errorf("chunk longer than its size: %.40q", line)
		}
		a.part = chunkSize
	case trailerLine:
		if len(line) == 0 {
			a.part = complete
		}
	}
	return nil
}

// field reads a header field.
func (a *answerReader) field(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
		return fmt.Errorf("no header field: %.40q", line)
	}
	value = bytes.TrimSpace(value)
	is := func(text string) bool { return len(name) == len(text) && bytes.EqualFold(name, []byte(text)) }
	switch {
	case is("Content-Length"):
		n, err := strconv.ParseUint(string(value), 10, 63)
		if err != nil || a.left >= 0 && int64(n) != a.left {
			return fmt.Errorf("wrong Content-Length: %.40q", value)
		}
		a.left = int64(n)
	case is("Transfer-Encoding"):
		a.chunked = bytes.EqualFold(value[max(len(value)-len("chunked"), 0):], []byte("chunked"))
	case is("Connection"):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			switch option = bytes.TrimSpace(option); {
			case bytes.EqualFold(option, []byte("close")):
				a.closes = true
			case bytes.EqualFold(option, []byte("keep-alive")):
				a.closes = false
			}
		}
	case is("ETag"):
		a.etag = append(a.etag, value...)
	}
	return nil
}

// headerEnds decides what follows the header.
func (a *answerReader) headerEnds() {
	switch {
	case a.status < 200: // an interim answer, such as 103 Early Hints: the answer itself follows
		a.begin()
	case a.status == 204 || a.status == 304 || a.left == 0 && !a.chunked:
		a.part = complete
	case a.chunked:
		a.part = chunkSize
	case a.left > 0:
		a.part = wholeBody
	default:
		a.part, a.closes = bodyUntilClose, true
	}
}
