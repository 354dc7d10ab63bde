package server

import "bytes"

// head is the head of one request, checked against RFC 9112 more strictly than it asks: what two parsers could
// read differently is refused. Its slices are parts of the buffer that was parsed.
type head struct {
	method, target []byte
	length         int  // bytes of the head, its empty line included
	body           int  // bytes of the body that follows
	http10         bool // HTTP/1.0, not 1.1
	// plain says that nothing stands in the head that needs the general server: GET or HEAD of an origin-form
	// target in HTTP/1.1 on a connection that goes on, without a body, no field of ours given twice.
	plain bool

	encodings, noneMatch, modifiedSince, key, forwarded []byte

	named, sized bool // Host and Content-Length are there
}

// The character classes of a head.
const (
	tokenChar  = 1 << iota // of methods and field names
	targetChar             // of request targets: printable ASCII without the space and the #, behind which parsers differ
	valueChar              // of field values: no control but the tab
	hostChar               // of Host
)

var classes = func() (t [256]byte) {
	for c := range 256 {
		letter := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if letter || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0 {
			t[c] |= tokenChar
		}
		if letter || bytes.IndexByte([]byte("-._~%!$&'()*+,;=:[]"), byte(c)) >= 0 {
			t[c] |= hostChar
		}
		if c > ' ' && c < 0x7f && c != '#' {
			t[c] |= targetChar
		}
		if c == '\t' || c >= ' ' && c != 0x7f {
			t[c] |= valueChar
		}
	}
	return t
}()

// run returns the first position at or after i whose byte is not of the class.
func run(b []byte, i int, class byte) int {
	for i < len(b) && classes[b[i]]&class != 0 {
		i++
	}
	return i
}

// parse reads the head at the start of b. It returns true when the head is whole, false when more bytes are
// needed, and an error as soon as what is there can be no head that is accepted.
func (h *head) parse(b []byte) (whole bool, refused *apiError) {
	*h = head{plain: true}
	i, whole, refused := h.requestLine(b)
	for whole {
		if i == len(b) {
			return false, nil
		}
		if b[i] == '\r' {
			break
		}
		if i, whole, refused = h.field(b, i); refused != nil {
			return false, refused
		}
	}
	if !whole {
		return false, refused
	}
	switch {
	case i+1 == len(b):
		return false, nil
	case b[i+1] != '\n', !h.named && !h.http10:
		return false, errBadRequest
	}
	h.length = i + 2
	return true, nil
}

// requestLine parses the first line and returns where the second begins. One empty line before it is ignored, as
// RFC 9112 §2.2 asks for.
func (h *head) requestLine(b []byte) (next int, whole bool, refused *apiError) {
	i := 0
	if len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
		i = 2
	} else if len(b) == 1 && b[0] == '\r' {
		return 0, false, nil
	}
	start := i
	i = run(b, i, tokenChar)
	switch {
	case i-start > maxMethod:
		return 0, false, errBadRequest
	case i == len(b):
		return 0, false, nil
	case b[i] != ' ', i == start:
		return 0, false, errBadRequest
	}
	h.method = b[start:i]
	i++
	start = i
	i = run(b, i, targetChar)
	h.target = b[start:i]
	switch {
	case i-start > maxTarget:
		return 0, false, errTargetTooLong
	case i == len(b):
		return 0, false, nil
	case b[i] != ' ', i == start, !h.formed():
		return 0, false, errBadRequest
	}
	return h.version(b, i+1)
}

// formed says whether the target has one of the four forms of RFC 9112 §3.2.
func (h *head) formed() bool {
	return h.target[0] == '/' || string(h.target) == "*" || bytes.Contains(h.target, []byte("://")) || string(h.method) == "CONNECT"
}

// version parses what ends the request line.
func (h *head) version(b []byte, i int) (next int, whole bool, refused *apiError) {
	const form = "HTTP/1.1\r\n"
	for n := range len(form) {
		if i+n == len(b) {
			return 0, false, nil
		}
		c := b[i+n]
		if digit := n == 5 || n == 7; digit && c >= '0' && c <= '9' {
			continue
		}
		if c != form[n] {
			return 0, false, errBadRequest
		}
	}
	if b[i+5] != '1' || b[i+7] > '1' {
		return 0, false, errVersion
	}
	h.http10 = b[i+7] == '0'
	get := string(h.method) == "GET" || string(h.method) == "HEAD"
	h.plain = get && !h.http10 && h.target[0] == '/'
	return i + len(form), true, nil
}

// field parses the field line at i and returns where the next line begins.
func (h *head) field(b []byte, i int) (next int, whole bool, refused *apiError) {
	start := i
	i = run(b, i, tokenChar)
	name := b[start:i]
	switch {
	case i == len(b):
		return 0, false, nil
	case b[i] != ':', i == start: // a space before the colon, a folded line, no name
		return 0, false, errBadRequest
	}
	i++
	start = i
	i = run(b, i, valueChar)
	end := i
	switch {
	case i == len(b):
		return 0, false, nil
	case b[i] != '\r': // NUL and other controls, a bare line feed
		return 0, false, errBadRequest
	case i+1 == len(b):
		return 0, false, nil
	case b[i+1] != '\n':
		return 0, false, errBadRequest
	}
	for start < end && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	return i + 2, true, h.know(name, b[start:end])
}

// know keeps a field that matters here.
func (h *head) know(name, value []byte) *apiError {
	switch len(name) {
	case len("Host"):
		if equalFold(name, "host") {
			if h.named || run(value, 0, hostChar) != len(value) {
				return errBadRequest
			}
			h.named = true
		}
	case len("X-API-Key"):
		if equalFold(name, "x-api-key") {
			h.once(&h.key, value)
		}
	case len("Connection"):
		if equalFold(name, "connection") && !equalFold(value, "keep-alive") {
			h.plain = false
		}
	case len("If-None-Match"):
		if equalFold(name, "if-none-match") {
			h.once(&h.noneMatch, value)
		}
	case len("Content-Length"):
		if equalFold(name, "content-length") {
			return h.size(value)
		}
	case len("Accept-Encoding"): // and X-Forwarded-For
		if equalFold(name, "accept-encoding") {
			h.once(&h.encodings, value)
		} else if equalFold(name, "x-forwarded-for") {
			h.once(&h.forwarded, value)
		}
	case len("If-Modified-Since"): // and Transfer-Encoding
		if equalFold(name, "if-modified-since") {
			h.once(&h.modifiedSince, value)
		} else if equalFold(name, "transfer-encoding") {
			return errTransferEncoding
		}
	case len("Expect"):
		if equalFold(name, "expect") {
			h.plain = false
		}
	case len("Upgrade"):
		if equalFold(name, "upgrade") {
			h.plain = false
		}
	}
	return nil
}

// once keeps the value of a field; a second one is left to the general server, which joins them.
func (h *head) once(field *[]byte, value []byte) {
	if *field != nil {
		h.plain = false
	}
	*field = value
}

// size reads Content-Length, which may stand once.
func (h *head) size(value []byte) *apiError {
	if h.sized || len(value) == 0 {
		return errBadRequest
	}
	h.sized = true
	for _, c := range value {
		if c < '0' || c > '9' {
			return errBadRequest
		}
		if h.body = h.body*10 + int(c-'0'); h.body > maxBody {
			h.body = maxBody + 1
		}
	}
	if h.body > maxBody {
		return errBodyTooLarge
	}
	h.plain = h.plain && h.body == 0
	return nil
}
