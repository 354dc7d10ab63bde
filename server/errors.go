package server

import (
	"bytes"
	"strings"

	"github.com/goccy/go-json"
)

// apiError is an error response of the public interface. A client sees these fields and nothing else of the cause.
type apiError struct {
	status     int
	code       string
	message    string
	parameter  string
	allow      string // the methods that the path allows, for a 405
	retryAfter int    // seconds; 0: no Retry-After
	close      bool   // the connection ends after the response

	nearest     *nearest // of errNoSnapshot
	expirations []string // of errNoExpiration
}

// nearest holds the stored dates before and after a date without a snapshot; nil where there is none.
type nearest struct {
	Earlier *string `json:"earlier"`
	Later   *string `json:"later"`
}

// The table of errors. allErrors lists them.
var (
	errNotFound         = &apiError{status: 404, code: "not_found", message: "no such resource; the resources are " + strings.Join(paths(), ", ")}
	errMethod           = &apiError{status: 405, code: "method_not_allowed", message: "only GET, HEAD and OPTIONS are allowed", allow: allowed}
	errReadOnly         = &apiError{status: 405, code: "method_not_allowed", message: "only GET and HEAD are allowed", allow: "GET, HEAD"} // of probes, pages and files, which need no preflight
	errKey              = &apiError{status: 401, code: "invalid_api_key", message: "the X-API-Key is unknown, malformed, expired or revoked; without a key the data is the same"}
	errNotReady         = &apiError{status: 503, code: "not_ready", message: "this resource has no answer yet", retryAfter: 5}
	errUnfed            = &apiError{status: 503, code: "not_ready", message: "the source has no documents that feed this resource", retryAfter: 3600}
	errRate             = &apiError{status: 429, code: "rate_limited", message: "too many requests a minute; Retry-After has the seconds until the next request is served"}
	errQuota            = &apiError{status: 429, code: "quota_exceeded", message: "the key's requests of this UTC day are used up"}
	errBusy             = &apiError{status: 503, code: "overloaded", message: "too many historical reads at once", retryAfter: 1}
	errConnections      = &apiError{status: 503, code: "overloaded", message: "too many connections at once", retryAfter: 1, close: true}
	errLimit            = &apiError{status: 400, code: "invalid_parameter", message: "limit must be a whole number from 1 to 100", parameter: "limit"}
	errDate             = &apiError{status: 400, code: "invalid_parameter", message: "date must be YYYY-MM-DD, a UTC calendar date", parameter: "date"}
	errFuture           = &apiError{status: 400, code: "invalid_parameter", message: "date must not lie in the future of the market's clock", parameter: "date"}
	errExpiration       = &apiError{status: 400, code: "invalid_parameter", message: "expiration must be YYYY-MM-DD, a calendar date", parameter: "expiration"}
	errNoSnapshot       = &apiError{status: 404, code: "snapshot_not_found", message: "no snapshot of that date is stored", parameter: "date"}
	errNoExpiration     = &apiError{status: 404, code: "expiration_not_found", message: "SPX has no unsettled expiration on that date", parameter: "expiration"}
	errTimeout          = &apiError{status: 408, code: "request_timeout", message: "the request did not arrive in time", close: true}
	errBodyTooLarge     = &apiError{status: 413, code: "body_too_large", message: "a request body may have at most 1024 bytes", close: true}
	errHeaderTooLong    = &apiError{status: 431, code: "headers_too_large", message: "request line and headers may have at most 8192 bytes together", close: true}
	errTargetTooLong    = &apiError{status: 414, code: "uri_too_long", message: "a request target may have at most 4096 bytes", close: true}
	errVersion          = &apiError{status: 505, code: "http_version_not_supported", message: "only HTTP/1.1 and HTTP/1.0 are accepted", close: true}
	errTransferEncoding = &apiError{status: 400, code: "bad_request", message: "Transfer-Encoding is not accepted; a request body needs a Content-Length", close: true}
	errBadRequest       = &apiError{status: 400, code: "bad_request", message: "the request is not well-formed HTTP", close: true}
	errInternal         = &apiError{status: 500, code: "internal_error", message: "internal error"}
	errPanic            = &apiError{status: 500, code: "internal_error", message: "internal error", close: true}
)

func allErrors() []*apiError {
	all := []*apiError{
		errNotFound, errMethod, errReadOnly, errKey, errNotReady, errUnfed, errRate, errQuota, errBusy, errConnections, errLimit, errDate,
		errFuture, errExpiration, errNoSnapshot, errNoExpiration, errTimeout, errBodyTooLarge, errHeaderTooLong, errTargetTooLong, errVersion,
		errTransferEncoding, errBadRequest, errInternal, errPanic,
	}
	for i := range routes {
		if e := routes[i].repeated; e != nil {
			all = append(all, e)
		}
	}
	return all
}

func repeated(parameter string) *apiError {
	return &apiError{status: 400, code: "invalid_parameter", message: parameter + " is given more than once", parameter: parameter}
}

// errorKey is the key of a prepared error body. The body contains the endpoint of the route; route may be nil.
type errorKey struct {
	route *route
	err   *apiError
}

// prepareErrors renders the bodies of all errors of the table.
func (s *Server) prepareErrors() {
	s.errorBodies = map[errorKey][]byte{}
	for _, e := range allErrors() {
		s.errorBodies[errorKey{nil, e}] = s.renderError(nil, e)
		for i := range routes {
			s.errorBodies[errorKey{&routes[i], e}] = s.renderError(&routes[i], e)
		}
	}
}

// errorBody returns the body of an error up to the value of `usage`, which depends on the client. The bytes are shared: the
// caller must not change them.
func (s *Server) errorBody(r *route, e *apiError) []byte {
	if body := s.errorBodies[errorKey{r, e}]; body != nil {
		return body
	}
	return s.renderError(r, e) // an error with details of one request
}

func (s *Server) renderError(r *route, e *apiError) []byte {
	type errorMember struct {
		Code        string   `json:"code"`
		Message     string   `json:"message"`
		Parameter   string   `json:"parameter,omitempty"`
		Nearest     *nearest `json:"nearest,omitempty"`
		Expirations []string `json:"expirations,omitempty"`
	}
	type metaMember struct {
		Endpoint string `json:"endpoint"`
		Source   string `json:"source"`
	}
	doc := struct {
		Success bool        `json:"success"`
		Error   errorMember `json:"error"`
		Meta    metaMember  `json:"meta"`
	}{
		Error: errorMember{e.code, e.message, e.parameter, e.nearest, e.expirations},
		Meta:  metaMember{Source: s.cfg.Source},
	}
	if r != nil {
		doc.Meta.Endpoint = r.endpoint
	}
	body, err := json.Marshal(&doc)
	if err != nil {
		body = []byte(`{"success":false,"error":{"code":"internal_error","message":"internal error"},"meta":{}}`)
	}
	return append(bytes.TrimSuffix(body, []byte("}")), `,"usage":`...)
}
