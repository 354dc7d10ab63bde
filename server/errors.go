package server

import "github.com/goccy/go-json"

// apiError is an error response of the public interface. A client sees nothing of the cause but these fields.
type apiError struct {
	status     int
	code       string
	message    string
	parameter  string
	allow      string // the methods that the path allows, for a 405
	retryAfter int    // seconds; 0: no Retry-After
	close      bool   // the connection ends after the response

	reason      string   // of errNotReady: the code of the last failure
	nearest     *nearest // of errNoSnapshot
	expirations []string // of errNoExpiration
	underlyings []string // of errNoUnderlying

	body string // the first part of the JSON body, which ends before the name of the endpoint
}

// nearest holds the stored dates next to a date without a snapshot; nil if there is no such date.
type nearest struct {
	Earlier *string `json:"earlier"`
	Later   *string `json:"later"`
}

// The table of errors. errNotFound and errNoUnderlying are in routes.go, because they name the routes.
var (
	errMethod           = define(apiError{status: 405, code: "method_not_allowed", message: "only GET, HEAD and OPTIONS are allowed", allow: allowed})
	errKey              = define(apiError{status: 401, code: "invalid_api_key", message: "the X-API-Key is unknown, malformed, expired or revoked; without a key the data is the same"})
	errNotReady         = define(apiError{status: 503, code: "not_ready", message: "this resource has no answer yet", retryAfter: 5})
	errUnfed            = define(apiError{status: 503, code: "not_ready", message: "the source has no documents for this resource", retryAfter: 3600})
	errRate             = define(apiError{status: 429, code: "rate_limited", message: "too many requests a minute; Retry-After has the seconds until the next request is served"})
	errQuota            = define(apiError{status: 429, code: "quota_exceeded", message: "the key's requests of this UTC day are used up"})
	errBusy             = define(apiError{status: 503, code: "overloaded", message: "too many historical reads at once", retryAfter: 1})
	errConnections      = define(apiError{status: 503, code: "overloaded", message: "too many connections at once", retryAfter: 1, close: true})
	errLimit            = define(apiError{status: 400, code: "invalid_parameter", message: "limit must be a whole number from 1 to 100", parameter: "limit"})
	errDate             = define(apiError{status: 400, code: "invalid_parameter", message: "date must be YYYY-MM-DD, a UTC calendar date", parameter: "date"})
	errFuture           = define(apiError{status: 400, code: "invalid_parameter", message: "date must not be in the future by the market's clock", parameter: "date"})
	errExpiration       = define(apiError{status: 400, code: "invalid_parameter", message: "expiration must be YYYY-MM-DD, a calendar date", parameter: "expiration"})
	errNoSnapshot       = define(apiError{status: 404, code: "snapshot_not_found", message: "no snapshot of that date is stored", parameter: "date"})
	errNoExpiration     = define(apiError{status: 404, code: "expiration_not_found", message: "the underlying has no unsettled expiration on that date", parameter: "expiration"})
	errPrecondition     = define(apiError{status: 412, code: "precondition_failed", message: "the answer is not the one that If-Match or If-Unmodified-Since names"})
	errTimeout          = define(apiError{status: 408, code: "request_timeout", message: "the request did not arrive in time", close: true})
	errBodyTooLarge     = define(apiError{status: 413, code: "body_too_large", message: "a request body may have at most 1024 bytes", close: true})
	errHeaderTooLong    = define(apiError{status: 431, code: "headers_too_large", message: "request line and headers may have at most 16384 bytes together", close: true})
	errTargetTooLong    = define(apiError{status: 414, code: "uri_too_long", message: "a request target may have at most 4096 bytes", close: true})
	errVersion          = define(apiError{status: 505, code: "http_version_not_supported", message: "only HTTP/1.1 and HTTP/1.0 are accepted", close: true})
	errTransferEncoding = define(apiError{status: 400, code: "bad_request", message: "Transfer-Encoding must be chunked alone, in HTTP/1.1 and without Content-Length", close: true})
	errBadRequest       = define(apiError{status: 400, code: "bad_request", message: "the request is not well-formed HTTP", close: true})
	errNoTLS            = define(apiError{status: 400, code: "bad_request", message: "plain HTTP was sent to a port for HTTPS", close: true})
	errInternal         = define(apiError{status: 500, code: "internal_error", message: "internal error"})
	errPanic            = define(apiError{status: 500, code: "internal_error", message: "internal error", close: true})
)

var codes []string

func define(e apiError) *apiError {
	codes = append(codes, e.code)
	return e.rendered()
}

// invalid returns the error for a wrong parameter. The message gives the reason.
func invalid(parameter, message string) *apiError {
	return apiError{status: 400, code: "invalid_parameter", message: message, parameter: parameter}.rendered()
}

func (e apiError) rendered() *apiError {
	member, _ := json.Marshal(struct { // strings can always be encoded
		Code        string   `json:"code"`
		Message     string   `json:"message"`
		Parameter   string   `json:"parameter,omitempty"`
		Reason      string   `json:"reason,omitempty"`
		Nearest     *nearest `json:"nearest,omitempty"`
		Expirations []string `json:"expirations,omitempty"`
		Underlyings []string `json:"underlyings,omitempty"`
	}{e.code, e.message, e.parameter, e.reason, e.nearest, e.expirations, e.underlyings})
	e.body = `{"success":false,"error":` + string(member) + `,"meta":{"endpoint":"`
	return &e
}
