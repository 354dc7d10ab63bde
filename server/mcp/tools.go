package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"strikecache/server/openapi"
)

// tool is the tool of a resource.
type tool struct {
	description *sdk.Tool
	path        string
	parameters  []string // of the resource
}

const (
	rowsParameter = "rows"
	defaultRows   = 12 // keeps each answer below 8 KB
	maxRows       = 500
)

// apiDocument is what the tools need of the OpenAPI document.
type apiDocument struct {
	Paths map[string]struct {
		Parameters []struct {
			Ref string `json:"$ref"`
		}
		Get struct{ Summary, Description string }
	}
	Components struct {
		Parameters map[string]struct {
			Name, In, Description string
			Schema                map[string]any
		}
	}
}

// tools returns the tools of the resources that the OpenAPI document describes, so that a new resource becomes a tool. The
// name of a tool is the resource's name with _ for every other character: gex_spx_historical, vix_term_structure.
func tools() ([]tool, error) {
	var document apiDocument
	for _, f := range openapi.Files() {
		if f.Path == "/openapi.json" {
			if err := json.Unmarshal(f.Body, &document); err != nil {
				return nil, fmt.Errorf("read the OpenAPI document: %w", err)
			}
		}
	}
	var all []tool
	for path, described := range document.Paths {
		resource, isPublic := strings.CutPrefix(path, "/api/")
		if !isPublic {
			continue
		}
		_, resource, _ = strings.Cut(resource, "/") // without v1 or public
		t := tool{path: path}
		properties := map[string]any{}
		for _, p := range described.Parameters {
			parameter := document.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
			if parameter.In == "query" {
				t.parameters = append(t.parameters, parameter.Name)
				parameter.Schema["description"] = parameter.Description
				properties[parameter.Name] = parameter.Schema
			}
		}
		if !slices.Contains(t.parameters, "limit") { // which bounds the rows
			properties[rowsParameter] = map[string]any{"type": "integer", "minimum": 1, "maximum": maxRows, "default": defaultRows,
				"description": "The largest number of rows of each table. Longer tables are cut to the rows that matter most."}
		}
		closed := false // the tools reach one server only
		t.description = &sdk.Tool{
			Name:        strings.NewReplacer("/", "_", "-", "_").Replace(resource),
			Title:       described.Get.Summary,
			Description: described.Get.Summary + ". " + described.Get.Description,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
			InputSchema: map[string]any{"type": "object", "properties": properties, "additionalProperties": false},
		}
		all = append(all, t)
	}
	return all, nil
}

// call asks the server and returns the compact form of its answer. The SDK has checked args, and filled in the defaults.
func (t tool) call(ctx context.Context, c *client, args map[string]any) (string, error) {
	query := url.Values{}
	for _, name := range t.parameters {
		switch v := args[name].(type) {
		case string:
			query.Set(name, v)
		case float64:
			query.Set(name, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	body, err := c.answer(ctx, t.path, query)
	if err != nil {
		return "", err
	}
	rows := maxRows
	if n, ok := args[rowsParameter].(float64); ok {
		rows = int(n)
	}
	return compact(body, rows)
}
