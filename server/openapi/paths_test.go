package openapi_test

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oasdiff/yaml3"
)

//go:embed document.yaml
var outlineText []byte

// outline is document.yaml, which explains its fields.
type outline struct {
	About     []string
	Tags      []struct{ Name, Description string }
	Resources []resource
	Pages     []struct {
		Path, Operation, Summary, Description string
		Responses                             map[int]string
	}
	Headers  map[string]string
	Plain    []struct{ Name, Description, Headers, Schema, Example string }
	Failures []struct {
		Name, Description, Headers string
		Examples                   []errorExample
	}
}

// resource is one path of the interface that answers with an envelope.
type resource struct {
	Path, Endpoint, Operation, Tag, Response string
	CacheControl                             string `yaml:"cacheControl"`
	Parameter                                string
	NotFound                                 string `yaml:"notFound"`
	Deltas                                   bool
	Summary, Description                     string
}

// errorExample is one error as a client sees it.
type errorExample struct{ Name, Summary, Endpoint, Code, Message, Parameter string }

func parseOutline(text []byte) (o outline, err error) {
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	return o, d.Decode(&o)
}

// early are the errors of requests that are wrong for every path and method.
var early = map[int]string{400: "BadRequest", 408: "RequestTimeout", 413: "BodyTooLarge", 414: "TargetTooLong", 431: "HeadersTooLarge", 505: "VersionNotSupported"}

// paths makes the paths of the document.
func (g *generator) paths() (all object) {
	for _, r := range g.Resources {
		var parameters []string
		read := maps.Clone(early)
		read[200], read[304], read[401], read[429], read[500], read[503] = r.Response, "NotModified", "InvalidKey", "TooMany", "Internal", "Unavailable"
		if r.Parameter != "" {
			parameters, read[400] = []string{r.Parameter}, "BadParameter"
		}
		if r.Deltas {
			parameters = append(parameters, "AvailableDictionary")
		}
		if r.NotFound != "" {
			read[404] = r.NotFound
		}
		preflight := maps.Clone(early)
		preflight[204] = "Preflight"
		item := pathItem(parameters, r.Operation, r.Tag, r.Summary, r.Description, read, "MethodNotAllowed", false)
		item.put("options", operation("preflight"+r.Operation, r.Tag, r.Summary+": preflight",
			"What a browser asks before a script of another origin sends `X-API-Key`.", preflight, true))
		all.put(r.Path, item)
	}
	for _, p := range g.Pages {
		read := maps.Clone(early)
		maps.Copy(read, p.Responses)
		item := pathItem(nil, p.Operation, "Service", p.Summary, p.Description, read, "PageMethodNotAllowed", true)
		if read[304] == "" {
			item = item[1:] // a probe has no ETag, so its requests have no If-None-Match
		}
		all.put(p.Path, item)
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

// operation makes an operation. An open operation takes no key.
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

// headerFields makes the header fields of a response.
func (g *generator) headerFields(names string) (fields object) {
	for field := range strings.FieldsSeq(names) {
		if list, found := g.Headers[field]; found {
			fields = append(fields, g.headerFields(list)...)
			continue
		}
		field, component, _ := strings.Cut(field, "=")
		if component == "" {
			component = strings.ReplaceAll(field, "-", "")
		}
		fields.put(field, reference("headers", component))
	}
	return fields
}
