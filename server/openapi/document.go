package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The parts of a document that a reader is shown.
type (
	description struct {
		Info       struct{ Title, Version, Summary, Description string }
		Tags       []struct{ Name, Description string }
		Paths      ordered[*part]
		Components struct {
			SecuritySchemes, Parameters, Headers, Responses ordered[*part]
			Schemas                                         ordered[*schema]
		}
	}
	// part is a path, an operation, a parameter, a header field or a response. Each has some of these members.
	part struct {
		Ref                                         string `json:"$ref"`
		Name, In, OperationID, Summary, Description string
		Tags                                        []string
		Get, Options                                *part
		Parameters                                  []*part
		Headers, Responses                          ordered[*part]
		Schema                                      *schema
		Content                                     ordered[struct {
			Schema   *schema
			Examples ordered[struct {
				Summary string
				Value   json.RawMessage
			}]
		}]
	}
	schema struct {
		Ref                                                    string `json:"$ref"`
		Type                                                   typeNames
		Format, Description, Pattern                           string
		Const, Default                                         json.RawMessage
		Enum, Examples                                         []json.RawMessage
		Minimum, Maximum, ExclusiveMinimum, MinItems, MaxItems json.Number
		Properties                                             ordered[*schema]
		Items                                                  *schema
		PrefixItems, AllOf, OneOf, AnyOf                       []*schema
	}
)

// typeNames is a type keyword: one name or several.
type typeNames []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *typeNames) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(t))
	}
	*t = make([]string, 1)
	return json.Unmarshal(b, &(*t)[0])
}

// ordered is an object whose members keep the order of the document, which is the order to read them in.
type ordered[T any] []member[T]

type member[T any] struct {
	Key   string
	Value T
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered[T]) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		m := member[T]{Key: key.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		*o = append(*o, m)
	}
	return nil
}

func (o ordered[T]) get(key string) (value T) {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return value
}

// nameOf returns the last part of a reference.
func nameOf(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// tagged returns the paths of a tag.
func (d *description) tagged(tag string) (paths ordered[*part]) {
	for _, p := range d.Paths {
		if p.Value.Get.Tags[0] == tag {
			paths = append(paths, p)
		}
	}
	return paths
}

// fields returns the members of a schema, those of the schemas it is composed of among them, or the positions of a row.
func (d *description) fields(s *schema) (fields ordered[*schema]) {
	if s.Ref != "" {
		return d.fields(d.Components.Schemas.get(nameOf(s.Ref)))
	}
	for _, part := range s.AllOf {
		fields = append(fields, d.fields(part)...)
	}
	for i, item := range s.PrefixItems {
		fields = append(fields, member[*schema]{fmt.Sprintf("[%d]", i), item})
	}
	return append(fields, s.Properties...)
}

// about describes a schema, in the words of the one that it refers to where it has none of its own.
func (d *description) about(s *schema) string {
	if s.Description == "" && s.Ref != "" {
		return d.Components.Schemas.get(nameOf(s.Ref)).Description
	}
	return s.Description
}
