package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typescript is a program with a client that is generated from the document. It prints an array of what it has read.
const typescript = `
import createClient from "openapi-fetch";
import type { components, paths } from "./api";
declare const process: { argv: string[] };

const baseUrl = process.argv[2];
const params = { path: { u: "spx" } };
const json = createClient<paths, "application/json">({ baseUrl });
const gamma = await json.GET("/api/v1/gex/{u}", { params });
if (gamma.error) {
  const code: components["schemas"]["Error"]["code"] = gamma.error.error.code;
  throw new Error(code);
}
const { data, meta, usage } = gamma.data;
const net: number | null = data.net_gex_dollars;
const used: number = meta.quality.contracts.used;
const rate: number | undefined = meta.receipt.parameters?.risk_free_rate;
const day: string | undefined = usage.tier === "keyed" ? usage.resets_at : undefined;
const summary = await json.GET("/api/v1/gex/{u}/summary", { params });
const flip: number | null | undefined = summary.data?.data.zero_gamma_flip;
const past = await json.GET("/api/v1/gex/{u}/historical", { params: { ...params, query: { date: "` + marketDay + `" } } });
const track = await json.GET("/api/v1/gex/{u}/intraday", { params });
const then: number | null | undefined = track.data?.data.rows.at(-1)?.[4]; // zero_gamma_flip
const again = await json.GET("/api/v1/gex/{u}", { params, headers: { "If-None-Match": gamma.response.headers.get("ETag") ?? "" } });
const unchanged: boolean = again.response.status === 304 && again.data === undefined && String(again.error) === "";

// A client of all content types has a choice of types to narrow.
const all = createClient<paths>({ baseUrl });
const csv = await all.GET("/api/v1/gex/{u}", { params: { ...params, query: { format: "csv" } }, parseAs: "text" });
const head: string | undefined = csv.data?.split("\r\n")[0];
const levels = await all.GET("/api/v1/gex/{u}/levels", { params });
const first: number | undefined = typeof levels.data === "object" ? levels.data.data.levels[0].price : undefined;
console.log(JSON.stringify([net, used, rate, flip, past.data?.data.net_gex_dollars, head, first, day === undefined, then, unchanged]));
`

// wrongTypeScript are mistakes in the program, each with what the compiler says of it.
var wrongTypeScript = []struct{ right, wrong, says string }{
	{"data.net_gex_dollars;", "data.net_gex_dolars;", "Property 'net_gex_dolars' does not exist"},
	{"data?.data.zero_gamma_flip", "data?.data.flip", "Property 'flip' does not exist"},
	{"contracts.used", "contracts.uses", "Property 'uses' does not exist"},
	{"?.risk_free_rate", "?.rate", "Property 'rate' does not exist"},
	{"query: { date:", "query: { day:", "'day' does not exist in type"},
	{`{u}/levels"`, `{u}/levls"`, `'"/api/v1/gex/{u}/levls"' is not assignable`},
	{"?.[4]; //", "?.[99]; //", "has no element at index '99'"},
	{"then: number | null", "then: string", "is not assignable to type 'string"},
	{`"object" ? levels`, `"string" ? levels`, "Property 'data' does not exist on type 'string'"},
}

// A client in TypeScript that a program generates from the document works, and strict TypeScript refuses each mistake.
func TestStrictTypeScriptCatchesMistakes(t *testing.T) {
	t.Parallel()
	p, node, dir := shared(t), installed(t, "node"), t.TempDir()
	npx := func(script string) (string, error) {
		cmd := exec.Command(installed(t, "npx"), "--yes", "-p", "openapi-typescript@7.13.0", "-p", "openapi-fetch@0.16.0", "-p", "typescript@5.9.3", "-c", script)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := npx("tsc --version"); err != nil {
		needs(t, "npx", fmt.Sprintf("needs packages of npm: %v: %s", err, out))
	}
	_, document := p.get("/openapi.json")
	writeFile(t, filepath.Join(dir, "openapi.json"), string(document))
	writeFile(t, filepath.Join(dir, "package.json"), `{"type": "module"}`)
	sources := []string{writeFile(t, filepath.Join(dir, "right.ts"), typescript)}
	for i, w := range wrongTypeScript {
		if strings.Count(typescript, w.right) != 1 {
			t.Fatalf("%q is not once in the program", w.right)
		}
		sources = append(sources, writeFile(t, filepath.Join(dir, fmt.Sprintf("wrong%d.ts", i)), strings.Replace(typescript, w.right, w.wrong, 1)))
	}
	if out, err := npx(`ln -s "$(dirname "$(dirname "$(command -v tsc)")")" node_modules && openapi-typescript openapi.json -o api.ts`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said, _ := npx("tsc --strict --module esnext --moduleResolution bundler --target es2022 --lib es2022,dom " + strings.Join(sources, " "))
	mistakes := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)\.ts\(.*`).FindAllStringSubmatch(said, -1) {
		mistakes[m[1]] = append(mistakes[m[1]], m[0])
	}
	for i, w := range wrongTypeScript {
		name := fmt.Sprintf("wrong%d", i)
		if found := strings.Join(mistakes[name], "\n"); !strings.Contains(found, w.says) {
			t.Errorf("%s is compiled: %s", w.wrong, found)
		}
		delete(mistakes, name)
	}
	if len(mistakes) > 0 {
		t.Fatalf("%s", said)
	}

	out := prints(t, node, filepath.Join(dir, "right.js"), p.url)
	type gamma struct {
		Net  json.Number `json:"net_gex_dollars"`
		Flip json.Number `json:"zero_gamma_flip"`
		Used json.Number `json:"contracts_analyzed"`
	}
	now, past := dataOf[gamma](p, gammaPath), dataOf[gamma](p, datePath+marketDay)
	levels := dataOf[struct{ Levels []struct{ Price json.Number } }](p, levelsPath).Levels
	_, csv := p.get(gammaPath + "?format=csv")
	head, _, _ := strings.Cut(string(csv), "\r\n")
	if want := fmt.Sprintf("[%s,%s,0.04,%s,%s,%q,%s,true,%v,true]", now.Net, now.Used, now.Flip, past.Net, head, levels[0].Price, dataOf[trackData](p, trackPath).last("zero_gamma_flip")); out != want {
		t.Errorf("the program prints %s, want %s", out, want)
	}
}
