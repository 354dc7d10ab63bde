package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// answerReader reads one HTTP/1 answer to a GET request from pieces of any size, without copying the body.
type answerReader struct {
	status  int
	body    int64  // bytes of the body, without the framing of chunks; right once the answer is complete
	etag    []byte // valid until begin
	closes  bool   // the server closes the connection after this answer
	next    part
	line    []byte // the beginning of a line whose end has not arrived
	lines   int    // bytes of all lines
	left    int64  // bytes that are left of the body or of a chunk; -1: the header has no length
	chunked bool
}

// part is a part of an answer.
type part int

const (
	statusLine part = iota
	headerLine
	chunkSize
	chunkEnd // the line break after a chunk
	trailerLine
	body // or a chunk of it
	bodyUntilClose
	complete
)

// mostLines bounds the header, the trailer and the sizes of all chunks, in bytes.
const mostLines = 1 << 20

// begin prepares for an answer.
func (a *answerReader) begin() {
	*a = answerReader{etag: a.etag[:0], line: a.line[:0], left: -1}
}

// read takes the next bytes, and returns whether the answer is complete. After an error, the connection is of no use.
func (a *answerReader) read(b []byte) (done bool, err error) {
	for len(b) > 0 {
		switch a.next {
		case complete:
			return false, errors.New("bytes after the end of the answer")
		case bodyUntilClose:
			a.body += int64(len(b))
			return false, nil
		case body:
			n := min(int64(len(b)), a.left)
			b, a.left = b[n:], a.left-n
			if a.left == 0 && a.chunked {
				a.next = chunkEnd
			} else if a.left == 0 {
				a.next = complete
			}
		default:
			line, rest, whole := bytes.Cut(b, []byte("\n"))
			if a.lines += len(line) + 1; a.lines > mostLines {
				return false, errors.New("header and framing longer than 1 MB")
			}
			if len(a.line) > 0 || !whole {
				a.line = append(a.line, line...)
				line = a.line
			}
			if !whole {
				return false, nil
			}
			if err := a.take(bytes.TrimSuffix(line, []byte("\r"))); err != nil {
				return false, err
			}
			a.line, b = a.line[:0], rest
		}
	}
	return a.next == complete, nil
}

// end returns an error if the answer is not complete although the server has closed the connection.
func (a *answerReader) end() error {
	if a.next == bodyUntilClose {
		return nil
	}
	return errors.New("connection closed before the end of the answer")
}

// take reads a line, without its line break.
func (a *answerReader) take(line []byte) (err error) {
	switch a.next {
	case statusLine:
		version, rest, _ := bytes.Cut(line, []byte(" "))
		code, _, _ := bytes.Cut(rest, []byte(" "))
		a.status, err = strconv.Atoi(string(code))
		if err != nil || len(code) != 3 || a.status < 100 || len(version) != len("HTTP/1.1") || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
			return fmt.Errorf("no HTTP/1 status line: %.40q", line)
		}
		a.closes = version[7] == '0'
		a.next = headerLine
	case headerLine:
		if len(line) > 0 {
			return a.field(line)
		}
		switch {
		case a.status < 200: // an interim answer, such as 103 Early Hints
			a.begin()
		case a.status == 204 || a.status == 304 || a.left == 0 && !a.chunked:
			a.next = complete
		case a.chunked:
			a.next = chunkSize
		case a.left > 0:
			a.next, a.body = body, a.left
		default:
			a.next, a.closes = bodyUntilClose, true
		}
	case chunkSize:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 32)
		if err != nil {
			return fmt.Errorf("no chunk size: %.40q", line)
		}
		a.next, a.left, a.body = body, int64(n), a.body+int64(n)
		if n == 0 {
			a.next = trailerLine
		}
	case chunkEnd:
		if a.next = chunkSize; len(line) > 0 {
			return fmt.Errorf("chunk longer than its size: %.40q", line)
		}
	case trailerLine:
		if len(line) == 0 {
			a.next = complete
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
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || a.left >= 0 && int64(n) != a.left {
			return fmt.Errorf("wrong Content-Length: %.40q", value)
		}
		a.left = int64(n)
	case is("Transfer-Encoding"):
		a.chunked = bytes.EqualFold(value[max(len(value)-len("chunked"), 0):], []byte("chunked"))
	case is("Connection"):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			option = bytes.TrimSpace(option)
			a.closes = bytes.EqualFold(option, []byte("close")) || a.closes && !bytes.EqualFold(option, []byte("keep-alive"))
		}
	case is("ETag"):
		a.etag = append(a.etag, value...)
	}
	return nil
}
