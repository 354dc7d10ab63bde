package server

import "bytes"

// head is the head of one request. Its parser is stricter than RFC 9112: it refuses requests that another parser could read
// differently (request smuggling). The slices point into the parsed buffer.
type head struct {
	method, target []byte
	length         int    // bytes of the head, its empty line included
	body           int    // bytes of the body that follows; -1: a chunked body
	http10         bool   // HTTP/1.0, not 1.1
	path, query    []byte // of the target
	// asksClose says that the client asks to close the connection after this request, so it sends nothing more. close says that the
	// connection ends after the answer: asksClose is set, the request has a body, or its target is not a path.
	close, asksClose bool
	keepAlive        bool // Connection: keep-alive
	// The values of the header fields that a response depends on; nil for an absent field. The values of a repeated field are joined
	// by ", ".
	encodings, dictionary, match, noneMatch, unmodifiedSince, key, forwarded []byte

	hasHost, hasBody bool // hasBody: Content-Length or Transfer-Encoding is given

	repeated *[]byte // the first repeated field; nil: no repeated field
	memory   []byte  // of the joined values of that field; the next request reuses it
}

// The classes of bytes in a head.
const (
	tokenChar  = 1 << iota // of methods and field names
	targetChar             // of request targets: printable ASCII without space and without #, which parsers treat differently
	valueChar              // of field values: no control but the tab
	hostChar               // of the name of a host
)

var classes = func() (t [256]byte) {
	for c := range 256 {
		letter := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if letter || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0 {
			t[c] |= tokenChar
		}
		if letter || c == '-' || c == '.' || c == '_' {
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

// skip returns the first position at or after i whose byte is not in the class, or len(b).
func skip(b []byte, i int, class byte) int {
	for i < len(b) && classes[b[i]]&class != 0 {
		i++
	}
	return i
}

// incomplete says that the head needs more bytes. It is never sent.
var incomplete = &apiError{}

// parse parses the head at the start of b. It returns nil when the head is complete, and incomplete when more bytes are
// needed. It returns another error as soon as no further bytes could make the head valid.
func (h *head) parse(b []byte) *apiError {
	*h = head{memory: h.memory}
	i, e := h.requestLine(b)
	for e == nil && i < len(b) && b[i] != '\r' {
		i, e = h.field(b, i)
	}
	switch {
	case e != nil:
		return e
	case i+1 >= len(b):
		return incomplete
	case b[i+1] != '\n', !h.hasHost && !h.http10:
		return errBadRequest
	}
	h.length = i + 2
	h.asksClose = h.asksClose || h.http10 && !h.keepAlive
	h.close = h.asksClose || h.body != 0 || h.target[0] != '/'
	return nil
}

// requestLine parses the first line and returns where the second begins. It ignores one empty line before, see RFC 9112 §2.2.
func (h *head) requestLine(b []byte) (next int, e *apiError) {
	start := 0
	if bytes.HasPrefix(b, []byte("\r\n")) {
		start = 2
	} else if string(b) == "\r" {
		return 0, incomplete
	}
	i := skip(b, start, tokenChar)
	switch {
	case i-start > maxMethod:
		return 0, errBadRequest
	case i == len(b):
		return 0, incomplete
	case b[i] != ' ', i == start:
		return 0, errBadRequest
	}
	h.method = b[start:i]
	start = i + 1
	i = skip(b, start, targetChar)
	h.target = b[start:i]
	switch {
	case i-start > maxTarget:
		return 0, errTargetTooLong
	case i == len(b):
		return 0, incomplete
	case b[i] != ' ', i == start, !h.splitTarget():
		return 0, errBadRequest
	}
	return h.version(b, i+1)
}

// splitTarget finds the path and the query of the target. It returns false if the target has none of the four forms of
// RFC 9112 §3.2. The path is empty for * and for CONNECT.
func (h *head) splitTarget() bool {
	rest := h.target
	switch {
	case rest[0] == '/':
	case string(h.method) == "CONNECT", string(rest) == "*" && (string(h.method) == "OPTIONS" || string(h.method) == "PRI"): // PRI is HTTP/2
		return true
	default:
		scheme, after, found := bytes.Cut(rest, []byte("://"))
		end := bytes.IndexAny(after, "/?")
		if end < 0 {
			end = len(after)
		}
		if !found || !equalFold(scheme, "http") && !equalFold(scheme, "https") || end == 0 || !validHost(after[:end]) {
			return false
		}
		rest = after[end:]
	}
	if h.path, h.query, _ = bytes.Cut(rest, []byte{'?'}); len(h.path) == 0 {
		h.path = []byte("/")
	}
	return true
}

// version parses the version at i, which ends the request line, and returns where the next line begins.
func (h *head) version(b []byte, i int) (next int, e *apiError) {
	const form = "HTTP/1.1\r\n"
	for n := range len(form) {
		switch digit := n == 5 || n == 7; {
		case i+n == len(b):
			return 0, incomplete
		case digit && b[i+n] >= '0' && b[i+n] <= '9':
		case b[i+n] != form[n]:
			return 0, errBadRequest
		}
	}
	if b[i+5] != '1' { // a later minor version counts as HTTP/1.1 (RFC 9110 §6.2)
		return 0, errVersion
	}
	h.http10 = b[i+7] == '0'
	return i + len(form), nil
}

// field parses the field line at i and returns where the next line begins.
func (h *head) field(b []byte, i int) (next int, e *apiError) {
	start := i
	i = skip(b, i, tokenChar)
	name := b[start:i]
	switch {
	case i == len(b):
		return 0, incomplete
	case b[i] != ':', i == start: // a space before the colon, a folded line, no name
		return 0, errBadRequest
	}
	start = i + 1
	i = skip(b, start, valueChar)
	switch {
	case i < len(b) && b[i] != '\r': // NUL and other controls, a bare line feed
		return 0, errBadRequest
	case i+1 >= len(b):
		return 0, incomplete
	case b[i+1] != '\n':
		return 0, errBadRequest
	}
	end := i
	for start < end && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	return i + 2, h.set(name, b[start:end])
}

// set stores the value of a header field that the response depends on, and checks the fields that decide where the request
// ends. Most fields have none of these lengths, so equalFold, which is inlined, compares a number.
func (h *head) set(name, value []byte) *apiError {
	switch {
	case equalFold(name, "host"):
		if h.hasHost || len(value) == 0 && !h.http10 || !validHost(value) { // empty: RFC 9110 §4.2.1
			return errBadRequest
		}
		h.hasHost = true
	case equalFold(name, "x-api-key"):
		h.join(&h.key, value)
	case equalFold(name, "connection"):
		h.connection(value)
	case equalFold(name, "if-none-match"):
		h.join(&h.noneMatch, value)
	case equalFold(name, "if-match"):
		h.join(&h.match, value)
	case equalFold(name, "if-unmodified-since"):
		h.join(&h.unmodifiedSince, value)
	case equalFold(name, "content-length"):
		return h.contentLength(value)
	case equalFold(name, "accept-encoding"):
		h.join(&h.encodings, value)
	case equalFold(name, "x-forwarded-for"):
		h.join(&h.forwarded, value)
	case equalFold(name, "transfer-encoding"):
		if h.hasBody || h.http10 || !equalFold(value, "chunked") {
			return errTransferEncoding
		}
		h.hasBody, h.body = true, -1
	case equalFold(name, "available-dictionary"):
		h.join(&h.dictionary, value)
	}
	return nil
}

func (h *head) connection(value []byte) {
	for len(value) > 0 {
		var option []byte
		option, value, _ = bytes.Cut(value, []byte{','})
		option = bytes.Trim(option, " \t")
		h.asksClose = h.asksClose || equalFold(option, "close")
		h.keepAlive = h.keepAlive || equalFold(option, "keep-alive")
	}
}

// validHost says whether a host is a name, an IPv4 address or an IPv6 address in brackets, with or without a port. Two parsers may
// read any other host differently.
func validHost(host []byte) bool {
	i := 0
	if len(host) > 0 && host[0] == '[' {
		if i = 1 + bytes.IndexByte(host, ']'); i < 4 || len(bytes.Trim(host[1:i-1], "0123456789abcdefABCDEF:.")) > 0 {
			return false
		}
	} else {
		i = skip(host, 0, hostChar)
	}
	if i == len(host) {
		return true
	}
	port := host[i+1:]
	return host[i] == ':' && i > 0 && len(port) <= len("65535") && len(bytes.Trim(port, "0123456789")) == 0
}

// join appends a value to the values of a field. The first repeated field uses the memory of earlier requests, so X-Forwarded-For on
// several lines allocates nothing.
func (h *head) join(field *[]byte, value []byte) {
	switch {
	case *field == nil:
		*field = value[:len(value):len(value)] // so that append copies the value
		return
	case h.repeated == nil:
		h.repeated = field
		*field = append(h.memory[:0], *field...)
	}
	*field = append(append(*field, ", "...), value...)
	if h.repeated == field {
		h.memory = *field
	}
}

// contentLength parses Content-Length, which may be given once, and not with Transfer-Encoding.
func (h *head) contentLength(value []byte) *apiError {
	if h.hasBody || len(value) == 0 {
		return errBadRequest
	}
	h.hasBody = true
	for _, c := range value {
		if c < '0' || c > '9' {
			return errBadRequest
		}
		h.body = min(h.body*10+int(c-'0'), maxBody+1)
	}
	if h.body > maxBody {
		return errBodyTooLarge
	}
	return nil
}

// equalFold says whether b equals lower when upper-case ASCII letters in b count as lower case. lower must be in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
