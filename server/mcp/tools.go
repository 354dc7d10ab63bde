package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"strikecache/server/openapi"
)

// maxRows is the largest number of rows of a table. With the default of 12, an answer is as large as the description of its tool says.
const maxRows = 500

// tool is a public resource as a tool. tools.json says how it is called.
type tool struct {
	Path string // {u} stands for the argument underlying
	sdk.Tool
	client *client
}

func addTools(server *sdk.Server, c *client) error {
	var tools []*tool
	text, err := openapi.Files.ReadFile("tools.json")
	if err = errors.Join(err, json.Unmarshal(text, &tools)); err != nil {
		return fmt.Errorf("read tools.json: %w", err)
	}
	for _, t := range tools {
		t.client = c
		server.AddTool(&t.Tool, t.call)
	}
	return nil
}

// call is called by the SDK. An error is the text of a failed call, from which a model can learn what is right. The JSON is text alone,
// which every host gives to its model. As structuredContent, which no outputSchema here describes, it would come a second time, and
// some hosts give a model both.
func (t *tool) call(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	text, err := t.answer(ctx, req.Params.Arguments)
	if err != nil {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: err.Error()}}, IsError: true}, nil
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
}

// answer returns the compact answer for the arguments asked. An argument that is null or "" is as absent, because some clients send these for it.
// The server checks the values of all but rows.
func (t *tool) answer(ctx context.Context, asked json.RawMessage) ([]byte, error) {
	given := map[string]any{}
	if len(asked) > 0 && json.Unmarshal(asked, &given) != nil {
		return nil, errors.New("the arguments must be an object")
	}
	path, rows, query := t.Path, maxRows, url.Values{}
	arguments := t.InputSchema.(map[string]any)["properties"].(map[string]any)
	for name, argument := range arguments {
		value := given[name]
		delete(given, name)
		if value == nil || value == "" {
			value = argument.(map[string]any)["default"]
		}
		text := fmt.Sprint(value) // a whole number below 10^6 has neither point nor exponent
		_, isText := value.(string)
		switch {
		case value == nil:
		case !isText && argument.(map[string]any)["type"] == "string":
			return nil, fmt.Errorf("%s must be a string, not %s", name, text)
		case name == "underlying":
			path = strings.Replace(path, "{u}", url.PathEscape(strings.NewReplacer(".", "", "/", "", "^", "", "$", "").Replace(strings.ToLower(text))), 1)
		case name == "rows":
			var err error
			if rows, err = strconv.Atoi(text); err != nil || rows < 1 || rows > maxRows {
				return nil, fmt.Errorf("rows must be a whole number from 1 to %d", maxRows)
			}
		default:
			query.Set(name, text)
		}
	}
	for name := range given {
		return nil, fmt.Errorf("%s takes no %s; its arguments are %s", t.Name, name, strings.Join(slices.Sorted(maps.Keys(arguments)), ", "))
	}
	text, err := t.client.get(ctx, path, query)
	if err != nil {
		return nil, err
	}
	return compact(text, rows)
}

// addPages adds the two pages of the server that explain its numbers, as resources of the protocol.
func addPages(server *sdk.Server, c *client) {
	for path, page := range map[string]sdk.Resource{
		"/methods.markdown": {Name: "methods", MIMEType: "text/markdown", Description: "What every number means, its unit, and how it is computed. About 100 KB."},
		"/openapi.json":     {Name: "openapi", MIMEType: "application/json", Description: "Every field of the server's answers with its type and unit, as an OpenAPI document. About 500 KB."},
	} {
		page.URI = "strikecache://" + page.Name
		server.AddResource(&page, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			body, err := c.get(ctx, path, nil)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: page.URI, MIMEType: page.MIMEType, Text: string(body)}}}, err
		})
	}
}
