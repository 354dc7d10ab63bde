package openapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resource is one path of the interface that answers with an envelope.
type resource struct {
	path, endpoint       string
	operation, tag       string // the end of its operation ids; the tag of its operations
	response             string // the name of its 200 response and, with Answer, Data and Quality behind it, of its schemas
	cacheControl         string // the header of its 200 response
	parameter, notFound  string // its query parameter, and the response when nothing has that value
	summary, description string
}

var resources = []resource{
	{"/api/v1/gex/spx", "gex/spx", "Gamma", "Gamma", "Gamma", "CacheControlGamma", "", "",
		"Current dealer gamma exposure of SPX",
		"Net, call and put gamma exposure, the zero-gamma flip with its band, walls and other levels, by strike and by expiration. " +
			"Exposure is in dollars of hedge delta per 1 % move of the index, under a model of dealer positions."},
	{"/api/v1/gex/spx/historical", "gex/spx/historical", "HistoricalGamma", "Gamma", "Historical", "CacheControlHistorical", "Date", "NoSnapshot",
		"Stored gamma exposure of a UTC date",
		"The latest snapshot of a UTC calendar date or, when no date is given, of the newest stored date. The server sends the snapshot " +
			"byte for byte as it was made, so its `freshness` describes that moment. A date closes at 00:10 UTC of the next day. After that its snapshot never " +
			"changes. A date may have been imported from a file of daily levels. Then `meta.source` is " +
			"`imported`, and every field that is not in the file is `null`."},
	{"/api/v1/gex/spx/series", "gex/spx/series", "GammaSeries", "Gamma", "Series", "CacheControlInterval", "", "",
		"Daily gamma levels",
		"One row of levels per stored UTC date, as a table."},
	{"/api/v1/sectors/rotation", "sectors/rotation", "SectorRotation", "Sectors", "Rotation", "CacheControlInterval", "", "",
		"Sector rotation",
		"The 11 US sector funds: returns over five periods, ranks, leaders and laggards, breadth, dispersion and a rotation graph against SPY."},
	{"/api/public/spx-max-pain", "spx-max-pain", "MaxPain", "Max pain", "MaxPain", "CacheControlInterval", "Expiration", "NoExpiration",
		"Max pain of an SPX expiration",
		"The settlement price at which the open contracts of an expiration pay out least, with the payout curve and open interest per " +
			"strike. Default: the nearest expiration with open interest. Max pain is arithmetic, not a forecast."},
	{"/api/v1/options/flow/unusual", "options/flow/unusual", "UnusualFlow", "Flow", "Flow", "CacheControlInterval", "Limit", "",
		"Unusual options activity",
		"The highest-scoring contracts of the newest session, from the option chains of several underlyings. The score has five bounded " +
			"components and a factor for the quality of the quote."},
	{"/api/public/vix-term-structure", "vix-term-structure", "VIXTermStructure", "VIX", "VIX", "CacheControlInterval", "", "",
		"VIX futures term structure",
		"Delayed official daily settlements of the monthly VIX futures, contango, 30-day constant maturity, and the regime."},
}

// pages are the paths that answer without an envelope. Neither keys nor limits concern them.
var pages = []struct {
	path, operation      string
	response, other      string // of 200; and of the one other status that its own handler has
	status               int
	fails                bool // whether it may answer 500
	summary, description string
}{
	{"/healthz", "Health", "Healthy", "", 0, true,
		"Whether the process answers", "For orchestrators. This path ignores keys and limits."},
	{"/readyz", "Readiness", "Ready", "Waiting", 503, true,
		"Whether every resource answers",
		"For orchestrators. The status is 200 once every resource for which the source has documents has an answer. The body lists the " +
			"resources without an answer, the resources for which the source has no documents, and what is impaired. This path ignores keys and limits."},
	{"/openapi.json", "Document", "Document", "DocumentNotModified", 304, false,
		"This document", "The OpenAPI document of this interface. This path ignores keys and limits."},
	{"/docs", "Docs", "Page", "PageNotModified", 304, false,
		"This document for people", "The document as a page without scripts and without content of other hosts."},
	{"/", "Home", "Page", "PageNotModified", 304, false,
		"The dashboard", "A page that shows the public resources."},
}

var tags = [][2]string{
	{"Gamma", "SPX dealer gamma exposure: now, on a date, over dates."},
	{"Sectors", "Rotation of the US sector funds."},
	{"Max pain", "Payout of SPX options at settlement."},
	{"Flow", "Unusual options activity."},
	{"VIX", "VIX futures settlements."},
	{"Service", "Probes, this document, and pages."},
}

// early are the errors that every path has, whatever the method: the request itself is at fault.
var early = map[int]string{400: "BadRequest", 408: "RequestTimeout", 413: "BodyTooLarge", 414: "TargetTooLong", 431: "HeadersTooLarge", 505: "VersionNotSupported"}

// paths makes the paths of the document.
func paths() (all object) {
	for _, r := range resources {
		var parameters []string
		read := maps.Clone(early)
		read[200], read[304], read[401], read[429], read[500], read[503] = r.response, "NotModified", "InvalidKey", "TooMany", "Internal", "Unavailable"
		if r.parameter != "" {
			parameters, read[400] = []string{r.parameter}, "BadParameter"
		}
		if r.notFound != "" {
			read[404] = r.notFound
		}
		preflight := maps.Clone(early)
		preflight[204] = "Preflight"
		item := pathItem(parameters, r.operation, r.tag, r.summary, r.description, read, "MethodNotAllowed", false)
		item.put("options", operation("preflight"+r.operation, r.tag, r.summary+": preflight",
			"What a browser asks before a script of another origin sends `X-API-Key`.", preflight, true))
		all.put(r.path, item)
	}
	for _, p := range pages {
		read := maps.Clone(early)
		read[200] = p.response
		if p.other != "" {
			read[p.status] = p.other
		}
		if p.fails {
			read[500] = "Internal"
		}
		item := pathItem(nil, p.operation, "Service", p.summary, p.description, read, "PageMethodNotAllowed", true)
		if p.status != 304 {
			item = item[1:] // a probe has no tag to ask with
		}
		all.put(p.path, item)
	}
	return all
}

// pathItem makes the parameters, GET and HEAD of a path.
func pathItem(parameters []string, id, tag, summary, description string, read map[int]string, notAllowed string, open bool) object {
	var references []any
	for _, p := range append(parameters, "IfNoneMatch", "IfModifiedSince", "AcceptEncoding") {
		references = append(references, reference("parameters", p))
	}
	get := maps.Clone(read)
	get[405] = notAllowed
	return object{
		{"parameters", references},
		{"get", operation("get"+id, tag, summary, description, get, open)},
		{"head", operation("head"+id, tag, summary+": head only", "The same status and fields as GET, without a body.", read, open)},
	}
}

// operation makes an operation. An open one takes no key.
func operation(id, tag, summary, description string, responses map[int]string, open bool) object {
	var byStatus object
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		byStatus.put(fmt.Sprint(status), reference("responses", responses[status]))
	}
	o := object{{"operationId", id}, {"tags", []any{tag}}, {"summary", summary}, {"description", description}, {"responses", byStatus}}
	if open {
		o.put("security", []any{})
	}
	return o
}

// The header fields of responses. A field is described under its name without hyphens, unless an = tells otherwise.
const (
	common    = "Access-Control-Allow-Origin=AllowOrigin Access-Control-Expose-Headers=ExposeHeaders X-Content-Type-Options=ContentTypeOptions"
	limited   = common + " RateLimit-Policy RateLimit X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset"
	noStore   = "Cache-Control=NoStore "
	validator = " ETag Last-Modified "
	fileHead  = "Cache-Control=NoCache" + validator + "Vary=VaryPage "
	pageHead  = "Content-Security-Policy Referrer-Policy X-Frame-Options=FrameOptions X-Content-Type-Options=ContentTypeOptions " +
		"Cross-Origin-Opener-Policy=OpenerPolicy Cross-Origin-Resource-Policy=ResourcePolicy Permissions-Policy"
)

// plain are the responses without an error and without an answer of a resource. schema is that of its JSON.
var plain = []struct{ name, description, headers, schema, summary string }{
	{"NotModified", "The client has the current answer: `If-None-Match` has the tag of the answer in any coding. Or the request has no `If-None-Match`, " +
		"and its `If-Modified-Since` is exactly the `Last-Modified` that was sent.", "Cache-Control" + validator + "Vary " + limited, "", ""},
	{"Preflight", "Methods and header fields that scripts of other origins may use.", "Allow Access-Control-Allow-Methods=AllowMethods Access-Control-Allow-Headers=AllowHeaders " +
		"Access-Control-Max-Age=MaxAge " + common, "", ""},
	{"Healthy", "The process answers.", noStore + common, "Health", "The process answers."},
	{"Ready", "Every resource for which the source has documents has an answer.", noStore + common, "Readiness", "A replay without price histories."},
	{"Waiting", "At least one resource has no answer yet.", noStore + common, "Readiness", "Just started."},
	{"Document", "This document.", fileHead + "Content-Encoding " + common, "Document", "Its first line."},
	{"DocumentNotModified", "The client has the current page.", fileHead + common, "", ""},
	{"Page", "A page for people.", fileHead + "Content-Encoding " + pageHead, "", ""},
	{"PageNotModified", "The client has the current page.", fileHead + pageHead, "", ""},
}

// errorExample is one error as a client sees it.
type errorExample struct{ name, summary, endpoint, code, message, parameter string }

// failures are the responses with an error. Its codes are those of its examples.
var failures = []struct {
	name, description, headers string
	examples                   []errorExample
}{
	{"BadParameter", "A known parameter is malformed, empty, repeated or out of range (`invalid_parameter`). The message names the bounds. " +
		"Or two parsers could read the request differently (`bad_request`). Then the connection is closed.", limited, []errorExample{
		{"limit", "Out of range.", "options/flow/unusual", "invalid_parameter", "limit must be a whole number from 1 to 100", "limit"},
		{"date", "Malformed.", "gex/spx/historical", "invalid_parameter", "date must be YYYY-MM-DD, a UTC calendar date", "date"},
		{"future", "Not yet.", "gex/spx/historical", "invalid_parameter", "date must not lie in the future of the market's clock", "date"},
		{"expiration", "Malformed.", "spx-max-pain", "invalid_parameter", "expiration must be YYYY-MM-DD, a calendar date", "expiration"},
		{"repeated", "Given twice.", "options/flow/unusual", "invalid_parameter", "limit is given more than once", "limit"},
		{"malformed", "Not HTTP.", "", "bad_request", "the request is not well-formed HTTP", ""},
	}},
	{"BadRequest", "The request is not well-formed HTTP, or two parsers could read it differently. The connection is closed.", common, []errorExample{
		{"malformed", "Not HTTP.", "", "bad_request", "the request is not well-formed HTTP", ""},
		{"coding", "A body of unknown length.", "", "bad_request", "Transfer-Encoding is not accepted; a request body needs a Content-Length", ""},
	}},
	{"InvalidKey", "The key in the request is unknown, malformed, expired or revoked. Without a key the data is the same.", "WWW-Authenticate=Authenticate " + common,
		[]errorExample{{"key", "Unknown key.", "gex/spx", "invalid_api_key",
			"the X-API-Key is unknown, malformed, expired or revoked; without a key the data is the same", ""}}},
	{"NoSnapshot", "No snapshot of that date is stored.", limited, []errorExample{
		{"weekend", "A Saturday.", "gex/spx/historical", "snapshot_not_found", "no snapshot of that date is stored", "date"}}},
	{"NoExpiration", "The date is well formed, but it is not among `expirations`.", limited, []errorExample{
		{"past", "A settled date.", "spx-max-pain", "expiration_not_found", "SPX has no unsettled expiration on that date", "expiration"}}},
	{"MethodNotAllowed", "A resource answers only GET, HEAD and OPTIONS.", "Allow " + common, []errorExample{
		{"post", "A POST.", "gex/spx", "method_not_allowed", "only GET, HEAD and OPTIONS are allowed", ""}}},
	{"PageMethodNotAllowed", "A probe, a page or a file answers only GET and HEAD. It needs no preflight.", "Allow=AllowPage " + common, []errorExample{
		{"options", "An OPTIONS.", "", "method_not_allowed", "only GET and HEAD are allowed", ""}}},
	{"RequestTimeout", "The request did not arrive within 5 seconds. The connection is closed.", common, []errorExample{
		{"slow", "A slow client.", "", "request_timeout", "the request did not arrive in time", ""}}},
	{"BodyTooLarge", "A request body may have at most 1,024 bytes. The server does not read the body. The connection is closed.", common, []errorExample{
		{"body", "A large body.", "", "body_too_large", "a request body may have at most 1024 bytes", ""}}},
	{"TargetTooLong", "A request target may have at most 4,096 bytes. The connection is closed.", common, []errorExample{
		{"target", "A long target.", "", "uri_too_long", "a request target may have at most 4096 bytes", ""}}},
	{"HeadersTooLarge", "Request line and header fields may have at most 8,192 bytes together. The connection is closed.", common, []errorExample{
		{"fields", "Large fields.", "", "headers_too_large", "request line and headers may have at most 8192 bytes together", ""}}},
	{"VersionNotSupported", "The server speaks HTTP/1.1 and HTTP/1.0. The connection is closed.", common, []errorExample{
		{"version", "Another version.", "", "http_version_not_supported", "only HTTP/1.1 and HTTP/1.0 are accepted", ""}}},
	{"TooMany", "The caller has used all requests of the minute (`rate_limited`), or the key has used all requests of the UTC day (`quota_exceeded`).",
		"Retry-After " + limited, []errorExample{
			{"minute", "Too many a minute.", "gex/spx", "rate_limited", "too many requests a minute; Retry-After has the seconds until the next request is served", ""},
			{"day", "The day is used up.", "gex/spx", "quota_exceeded", "the key's requests of this UTC day are used up", ""}}},
	{"Internal", "The server has a fault.", limited, []errorExample{
		{"fault", "A fault.", "gex/spx/historical", "internal_error", "internal error", ""}}},
	{"Unavailable", "The resource has no answer yet, or the source has no documents for it (`not_ready`). Or a limit of the server is reached (`overloaded`).",
		"Retry-After " + limited, []errorExample{
			{"starting", "Just started.", "gex/spx", "not_ready", "this resource has no answer yet", ""},
			{"unfed", "Nothing feeds it.", "sectors/rotation", "not_ready", "the source has no documents that feed this resource", ""},
			{"busy", "Too many at once.", "gex/spx/historical", "overloaded", "too many historical reads at once", ""}}},
}

// headerFields returns the header fields of a response.
func headerFields(names string) (fields object) {
	for field := range strings.FieldsSeq(names) {
		field, component, _ := strings.Cut(field, "=")
		if component == "" {
			component = strings.ReplaceAll(field, "-", "")
		}
		fields.put(field, reference("headers", component))
	}
	return fields
}
