package openapi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"strikecache/bench/need"
	contract "strikecache/bench/openapi"
	"strikecache/compute"
	"strikecache/server/openapi"
	"strikecache/snapshots"
)

func document(t testing.TB) []byte {
	t.Helper()
	files, err := openapi.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files[0].Body
}

func TestTheDocumentIsValid(t *testing.T) {
	body := document(t)
	if _, err := contract.Load(body); err != nil {
		t.Error(err)
	}
	// The library must be able to find a fault.
	for what, broken := range map[string]string{
		"example": strings.Replace(string(body), `"value": {"status": "ok"`, `"value": {"status": "fine"`, 1),
		"type":    strings.Replace(string(body), `"type": ["number", "null"]`, `"type": ["decimal", "null"]`, 1),
		"ref":     strings.Replace(string(body), `"#/components/schemas/Band"`, `"#/components/schemas/Ribbon"`, 1),
	} {
		if broken == string(body) {
			t.Fatalf("%s: nothing was broken", what)
		}
		if _, err := contract.Load([]byte(broken)); err == nil {
			t.Errorf("a broken %s is not found", what)
		}
	}
}

// eachSchema visits every schema that is written in the document, named by where it stands.
func eachSchema(t *testing.T, visit func(at string, s map[string]any)) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(document(t), &doc); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			_, typed := v["type"]
			_, all := v["allOf"]
			_, one := v["oneOf"]
			_, anyOf := v["anyOf"]
			if (typed || all || one || anyOf) && !strings.HasSuffix(at, "/properties") && !strings.Contains(at, "/securitySchemes/") {
				n++
				visit(at, v)
			}
			for k, x := range v {
				if k != "examples" && k != "value" {
					walk(at+"/"+k, x)
				}
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s/%d", at, i), x)
			}
		}
	}
	walk("", doc)
	if n < 300 {
		t.Fatalf("only %d schemas", n)
	}
}

func types(s map[string]any) (names []string) {
	switch v := s["type"].(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			names = append(names, x.(string))
		}
	}
	return names
}

var unit = regexp.MustCompile(` Unit: ([^.]+)\.$`)

// units are all that a number may be counted in.
var units = []string{
	"USD", "USD per 1 % move of the index", "USD per share", "USD, for SPX index points", "contracts", "dates", "days", "fraction a year", "gamma, per index point",
	"index points", "line", "minutes", "observations", "percent", "percent a year", "percent of the spot", "percentage points", "points of 10", "points of 100", "points of 15",
	"points of 20", "points of 25", "points of 30", "rank", "ratio", "requests", "root and expiration pairs", "rows", "seconds", "sectors", "sessions",
	"standard deviations, from 100", "strikes", "volatility points", "volatility points a month",
}

// Every field says what it means, every number its unit, every null its reason, and every value has an example.
func TestEveryFieldIsDescribed(t *testing.T) {
	used := map[string]bool{}
	eachSchema(t, func(at string, s map[string]any) {
		names := types(s)
		text, _ := s["description"].(string)
		inParameter := strings.Contains(at, "/headers/") || strings.Contains(at, "/parameters/") // which have their own
		if text == "" && !inParameter && !strings.Contains(at, "/oneOf/") {
			t.Errorf("%s has no description", at)
		}
		if strings.Contains(text, "  ") || text != "" && !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", at, text)
		}
		if slices.Contains(names, "number") || slices.Contains(names, "integer") {
			if m := unit.FindStringSubmatch(text); m == nil && !inParameter || m != nil && !slices.Contains(units, m[1]) {
				t.Errorf("%s is a number without a unit: %q", at, text)
			} else if m != nil {
				used[m[1]] = true
			}
		}
		if len(names) > 1 && slices.Contains(names, "null") && !strings.Contains(text, "`null`") {
			t.Errorf("%s may be null and does not say when: %q", at, text)
		}
		_, fixed := s["const"]
		scalar := len(names) > 0 && !slices.Contains(names, "object") && !slices.Contains(names, "array") && names[0] != "null"
		examples, _ := s["examples"].([]any)
		if scalar && !fixed && len(examples) == 0 && s["enum"] == nil && !strings.HasSuffix(at, "/additionalProperties") && !strings.Contains(at, "text~1html") && !strings.Contains(at, "text/html") {
			t.Errorf("%s has no example", at)
		}
	})
	for _, u := range units {
		if !used[u] {
			t.Errorf("no number is in %s", u)
		}
	}
}

// The document names every reason that the code knows.
func TestEveryReasonIsDescribed(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t(?:reason\w+|\w+ +Reason) += "([a-z_]+)"`)
	var text string
	eachSchema(t, func(at string, s map[string]any) {
		if strings.HasSuffix(at, "/Freshness/properties/reason") {
			text, _ = s["description"].(string)
		}
	})
	reasons := 0
	for _, file := range []string{"refresh/health.go", "refresh/upstream/upstream.go"} {
		source, err := os.ReadFile(filepath.Join(need.Root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
			if reasons++; !strings.Contains(text, "`"+m[1]+"`") {
				t.Errorf("%s of %s is not described", m[1], file)
			}
		}
	}
	if known := strings.Count(text, "`") / 2; reasons < 15 || known != reasons+3 { // and two states, and null
		t.Errorf("%d reasons in the code, %d words in the document", reasons, known)
	}
}

// Every example is what its own schema allows.
func TestExamplesAreValid(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(document(t))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var check func(at string, ref *openapi3.SchemaRef)
	check = func(at string, ref *openapi3.SchemaRef) {
		if ref == nil || ref.Ref != "" && at != "" && !strings.HasPrefix(at, "component ") {
			return
		}
		s := ref.Value
		for _, example := range s.Examples {
			n++
			if err := s.VisitJSON(example, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: %v: %v", at, example, err)
			}
		}
		for name, p := range s.Properties {
			check(at+"."+name, p)
		}
		for _, part := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf, s.PrefixItems) {
			check(at+"/", part)
		}
		check(at+"[]", s.Items)
	}
	for name, s := range doc.Components.Schemas {
		check("component "+name, s)
	}
	for name, h := range doc.Components.Headers {
		check("header "+name, h.Value.Schema)
	}
	for name, p := range doc.Components.Parameters {
		check("parameter "+name, p.Value.Schema)
	}
	if n < 250 {
		t.Errorf("only %d examples", n)
	}
}

// The schemas have the fields of the result types, in their order, and may be null where the types may.
func TestSchemasAreTheResultTypes(t *testing.T) {
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(document(t), &doc); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"GammaData": compute.Gamma{}, "Band": compute.Band{}, "Flip": compute.Flip{}, "Scenario": compute.Scenario{}, "Walls": compute.Walls{},
		"Wall": compute.Wall{}, "ZeroDTE": compute.ZeroDTE{}, "Convention": compute.Convention{}, "ExpirationGamma": compute.ExpirationGamma{},
		"ProfilePoint": compute.ProfilePoint{}, "StrikeGamma": compute.StrikeGamma{}, "GammaQuality": compute.GammaQuality{},
		"GammaContracts": compute.ContractCounts{}, "GammaSkipped": compute.SkippedGamma{}, "VolatilityShare": compute.VolatilityShare{}, "GammaDifference": compute.GammaDifference{},
		"MaxPainData": compute.MaxPain{}, "PainSide": compute.PainSide{}, "PainSides": compute.PainSides{}, "PainExpiration": compute.PainExpiration{},
		"FlowData": compute.Flow{}, "FlowItem": compute.FlowItem{}, "FlowComponents": compute.FlowComponents{}, "FlowRejected": compute.FlowRejected{},
		"RotationData": compute.Rotation{}, "FundReturns": compute.FundReturns{}, "Returns": compute.Periods{}, "RelativeReturns": compute.Periods{}, "Ranks": compute.Ranks{},
		"SectorRow": compute.SectorRow{}, "RRG": compute.RRG{}, "SectorMover": compute.SectorMover{}, "Breadth": compute.Breadth{}, "Dispersion": compute.Dispersion{},
		"VIXData": compute.VIXCurve{}, "VIXFuture": compute.VIXFuture{}, "VIXPercentiles": compute.VIXPercentiles{}, "PercentileRank": compute.PercentileRank{},
		"Meta": snapshots.Meta{}, "Freshness": snapshots.Freshness{}, "Receipt": snapshots.Receipt{},
	} {
		want := slices.DeleteFunc(typeFields(reflect.TypeOf(v)), func(field string) bool { return strings.HasSuffix(field, "~") })
		if got := schemaFields(t, doc.Components.Schemas, doc.Components.Schemas[name]); !slices.Equal(got, want) {
			t.Errorf("%s:\n%v, and the type has\n%v", name, got, want)
		}
	}
	// Of an imported date more may be null, and what any other answer leaves out is there.
	for name, v := range map[string]any{
		"ImportedData": compute.Gamma{}, "ImportedMeta": snapshots.Meta{}, "ImportedFreshness": snapshots.Freshness{}, "ImportedReceipt": snapshots.Receipt{},
	} {
		want := plainNames(typeFields(reflect.TypeOf(v)))
		if got := plainNames(schemaFields(t, doc.Components.Schemas, doc.Components.Schemas[name])); !slices.Equal(got, want) {
			t.Errorf("%s:\n%v, and the type has\n%v", name, got, want)
		}
	}
}

func plainNames(fields []string) (names []string) {
	for _, f := range fields {
		names = append(names, strings.TrimRight(f, "?~"))
	}
	return names
}

// typeFields returns the JSON names of a struct's fields, with a ? when they may be null and a ~ when they may be absent.
func typeFields(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			names = append(names, typeFields(f.Type)...)
			continue
		}
		if f.Type.Kind() == reflect.Pointer && f.Type != reflect.TypeFor[time.Time]() {
			name += "?"
		}
		if options == "omitempty" {
			name += "~"
		}
		names = append(names, name)
	}
	return names
}

// schemaFields returns the names of a schema's required properties, in their order, with a ? when they may be null.
func schemaFields(t *testing.T, schemas map[string]json.RawMessage, schema json.RawMessage) (names []string) {
	t.Helper()
	var s struct {
		Ref        string            `json:"$ref"`
		AllOf      []json.RawMessage `json:"allOf"`
		Required   []string          `json:"required"`
		Properties map[string]struct {
			Type  any `json:"type"`
			OneOf []struct {
				Type any `json:"type"`
			} `json:"oneOf"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if s.Ref != "" {
		return schemaFields(t, schemas, schemas[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]])
	}
	for _, part := range s.AllOf {
		names = append(names, schemaFields(t, schemas, part)...)
	}
	if len(s.Required) != len(s.Properties) {
		t.Errorf("%d of %d properties are required: %v", len(s.Required), len(s.Properties), s.Required)
	}
	for _, name := range s.Required {
		p := s.Properties[name]
		null := strings.Contains(fmt.Sprint(p.Type), "null")
		for _, one := range p.OneOf {
			null = null || one.Type == "null"
		}
		if null {
			name += "?"
		}
		names = append(names, name)
	}
	return names
}
