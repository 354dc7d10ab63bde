package server

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/valyala/fasthttp"
)

// apiError is an error as the interface defines it. Its code and message are all that a client learns.
type apiError struct {
	status     int
	code       string
	message    string
	parameter  string
	allow      string // the methods of a path that was asked by another
	retryAfter int    // seconds
	close      bool   // whether the connection ends
	extra      func(*errorBody)
}

type errorBody struct {
	Code        string   `json:"code"`
	Message     string   `json:"message"`
	Parameter   string   `json:"parameter,omitempty"`
	Nearest     *nearest `json:"nearest,omitempty"`
	Expirations []string `json:"expirations,omitempty"`
}

// nearest names the stored dates around one without a snapshot.
type nearest struct {
	Earlier *string `json:"earlier"`
	Later   *string `json:"later"`
}

var (
	errNotFound         = &apiError{status: 404, code: "not_found", message: "no such resource; the resources are " + paths()}
	errMethod           = &apiError{status: 405, code: "method_not_allowed", message: "only GET, HEAD and OPTIONS are allowed", allow: allowed}
	errReading          = &apiError{status: 405, code: "method_not_allowed", message: "only GET and HEAD are allowed", allow: "GET, HEAD"} // of probes, pages and files, which need no preflight
	errKey              = &apiError{status: 401, code: "invalid_api_key", message: "the X-API-Key is unknown, malformed, expired or revoked; without a key the data is the same"}
	errNotReady         = &apiError{status: 503, code: "not_ready", message: "this resource has no answer yet", retryAfter: 5}
	errUnfed            = &apiError{status: 503, code: "not_ready", message: "the source has no documents that feed this resource", retryAfter: 3600}
	errRate             = &apiError{status: 429, code: "rate_limited", message: "too many requests a minute; Retry-After says in how many seconds the next one is served"}
	errQuota            = &apiError{status: 429, code: "quota_exceeded", message: "the key's requests of this UTC day are used up"}
	errBusy             = &apiError{status: 503, code: "overloaded", message: "too many historical reads at once", retryAfter: 1}
	errConnections      = &apiError{status: 503, code: "overloaded", message: "too many connections at once", retryAfter: 1, close: true}
	errLimit            = &apiError{status: 400, code: "invalid_parameter", message: "limit must be a whole number from 1 to 100", parameter: "limit"}
	errDate             = &apiError{status: 400, code: "invalid_parameter", message: "date must be YYYY-MM-DD, a UTC calendar date", parameter: "date"}
	errFuture           = &apiError{status: 400, code: "invalid_parameter", message: "date must not lie in the future of the market's clock", parameter: "date"}
	errExpiration       = &apiError{status: 400, code: "invalid_parameter", message: "expiration must be YYYY-MM-DD, a calendar date", parameter: "expiration"}
	errTimeout          = &apiError{status: 408, code: "request_timeout", message: "the request did not arrive in time", close: true}
	errBodyTooLarge     = &apiError{status: 413, code: "body_too_large", message: "a request body may have at most 1024 bytes", close: true}
	errHeaderTooLong    = &apiError{status: 431, code: "headers_too_large", message: "request line and headers may have at most 8192 bytes together", close: true}
	errTargetTooLong    = &apiError{status: 414, code: "uri_too_long", message: "a request target may have at most 4096 bytes", close: true}
	errVersion          = &apiError{status: 505, code: "http_version_not_supported", message: "HTTP/1.1 and HTTP/1.0 are spoken", close: true}
	errTransferEncoding = &apiError{status: 400, code: "bad_request", message: "Transfer-Encoding is not accepted; a request body needs a Content-Length", close: true}
	errBadRequest       = &apiError{status: 400, code: "bad_request", message: "the request is not well-formed HTTP", close: true}
	errInternal         = &apiError{status: 500, code: "internal_error", message: "internal error"}
	errPanic            = &apiError{status: 500, code: "internal_error", message: "internal error", close: true}
)

// The codes of the errors that are made for a request.
const (
	codeNoSnapshot   = "snapshot_not_found"
	codeNoExpiration = "expiration_not_found"
)

func paths() string {
	names := make([]string, len(routes))
	for i, r := range routes {
		names[i] = r.path
	}
	return strings.Join(names, ", ")
}

func repeated(parameter string) *apiError {
	return &apiError{status: 400, code: "invalid_parameter", message: parameter + " is given more than once", parameter: parameter}
}

// errorDocument is the envelope of an error but usage, which is the caller's.
type errorDocument struct {
	Success bool      `json:"success"`
	Error   errorBody `json:"error"`
	Meta    errorMeta `json:"meta"`
}

type errorMeta struct {
	Endpoint string `json:"endpoint"`
	Source   string `json:"source"`
}

// errorBody returns the body of an error up to the value of usage. Of the errors that are always the same it is
// made once.
func (s *Server) errorBody(endpoint string, e *apiError) []byte {
	if body := s.errorBodies[endpoint][e]; body != nil {
		return body
	}
	doc := errorDocument{
		Error: errorBody{Code: e.code, Message: e.message, Parameter: e.parameter},
		Meta:  errorMeta{Endpoint: endpoint, Source: s.cfg.Source},
	}
	if e.extra != nil {
		e.extra(&doc.Error)
	}
	body, err := json.Marshal(&doc)
	if err != nil {
		body = []byte(`{"success":false,"error":{"code":"internal_error","message":"internal error"},"meta":{}}`)
	}
	return append(bytes.TrimSuffix(body, []byte("}")), `,"usage":`...)
}

// fixedErrors returns the errors that do not depend on the request.
func fixedErrors() []*apiError {
	return []*apiError{
		errNotFound, errMethod, errReading, errKey, errNotReady, errUnfed, errRate, errQuota, errBusy, errConnections, errLimit, errDate, errFuture,
		errExpiration, errTimeout, errBodyTooLarge, errHeaderTooLong, errTargetTooLong, errVersion, errTransferEncoding,
		errBadRequest, errInternal, errPanic,
	}
}

// prepareErrors makes the bodies of the errors that do not depend on the request.
func (s *Server) prepareErrors() {
	fixed := fixedErrors()
	bodies := map[string]map[*apiError][]byte{}
	for _, r := range append([]route{{}}, routes...) {
		own := map[*apiError][]byte{}
		for _, e := range append(fixed, r.repeated) {
			if e != nil {
				own[e] = s.errorBody(r.endpoint, e)
			}
		}
		bodies[r.endpoint] = own
	}
	s.errorBodies = bodies
}

// protocolError answers what fasthttp could not read as a request.
func (s *Server) protocolError(ctx *fasthttp.RequestCtx, err error) {
	e := errBadRequest
	var small *fasthttp.ErrSmallBuffer
	var network net.Error
	switch {
	case errors.As(err, &small):
		e = errHeaderTooLong
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		e = errBodyTooLarge
	case errors.As(err, &network) && network.Timeout():
		e = errTimeout
	}
	s.refuse(ctx, nil, e)
}

// around returns the stored dates next to one that is not stored.
func around(dates []string, date string) *nearest {
	n := &nearest{}
	for i := range dates {
		if dates[i] < date {
			n.Earlier = &dates[i]
		}
		if dates[i] > date {
			n.Later = &dates[i]
			break
		}
	}
	return n
}

// validDate says whether b is an existing date YYYY-MM-DD.
func validDate(b []byte) bool {
	if len(b) != len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, string(b))
	return err == nil
}
