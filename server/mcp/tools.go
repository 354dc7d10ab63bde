package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"strikecache/server/openapi"
)

const (
	defaultRows = 12 // keeps each answer below 8 KB
	maxRows     = 500
	underlying  = "underlying" // the argument that stands in the path for {u}
)

// addTools adds a tool for each public resource of the OpenAPI document, so that a new resource becomes a tool. The name of a
// tool is the resource's name without the underlying, with _ for every other character: gex_historical, vix_term_structure. The
// underlying is an argument.
func addTools(server *sdk.Server, c *client) error {
	var document struct {
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
	text, err := openapi.Files.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err != nil {
		return fmt.Errorf("read the OpenAPI document: %w", err)
	}
	closed := false // the tools reach one server only
	for path, resource := range document.Paths {
		name, isPublic := strings.CutPrefix(path, "/api/")
		if !isPublic {
			continue
		}
		_, name, _ = strings.Cut(name, "/") // without v1 or public
		properties := map[string]any{"rows": map[string]any{"type": "integer", "minimum": 1, "maximum": maxRows, "default": defaultRows,
			"description": "The largest number of rows of each table. Longer tables are cut to the rows that matter most."}}
		for _, p := range resource.Parameters {
			parameter := document.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
			parameter.Schema["description"] = parameter.Description
			switch {
			case parameter.Name == "format": // an answer without meta would lack its time and source
			case parameter.In == "query":
				properties[parameter.Name] = parameter.Schema
			case parameter.In == "path":
				parameter.Schema["default"] = "spx"
				properties[underlying] = parameter.Schema
			}
			if parameter.Name == "limit" { // it bounds the rows
				parameter.Schema["default"] = defaultRows
				delete(properties, "rows")
			}
		}
		tool := &sdk.Tool{
			Name:        strings.NewReplacer("/{u}", "", "{u}-", "", "/", "_", "-", "_").Replace(name),
			Title:       resource.Get.Summary,
			Description: resource.Get.Summary + ". " + resource.Get.Description,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
			InputSchema: map[string]any{"type": "object", "properties": properties, "additionalProperties": false},
		}
		// The SDK checks args, fills in the defaults, and makes an error the text of a failed call.
		sdk.AddTool(server, tool, func(ctx context.Context, _ *sdk.CallToolRequest, args map[string]any) (*sdk.CallToolResult, any, error) {
			at, rows, query := path, maxRows, url.Values{}
			for name, value := range args {
				n, _ := value.(float64)
				switch name {
				case "rows":
					rows = int(n)
				case underlying:
					at = strings.Replace(path, "{u}", fmt.Sprint(value), 1)
				default:
					query.Set(name, fmt.Sprint(value)) // a date, or a number below 1,000
				}
			}
			text, err := c.get(ctx, at, query)
			if err == nil {
				text, err = compact(text, rows)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil, err
		})
	}
	return nil
}

// addPages adds the two pages of the server that explain its numbers, as resources of the protocol.
func addPages(server *sdk.Server, c *client) {
	for path, page := range map[string]sdk.Resource{
		"/methods":      {Name: "methods", MIMEType: "text/html", Description: "What every number means, its unit, and how it is computed. About 40 KB."},
		"/openapi.json": {Name: "openapi", MIMEType: "application/json", Description: "Every field of the server's answers with its type and unit, as an OpenAPI document. About 300 KB."},
	} {
		page.URI = "strikecache://" + page.Name
		server.AddResource(&page, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			body, err := c.get(ctx, path, nil)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: page.URI, MIMEType: page.MIMEType, Text: string(body)}}}, err
		})
	}
}
