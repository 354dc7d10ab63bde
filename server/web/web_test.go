package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"testing"
)

// vendored are the digests of the files that the authors of uPlot 1.6.32 published, in the npm package with the SHA-256
// 4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d.
var vendored = map[string]string{
	"uplot-1.6.32.min.js":      "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f", // dist/uPlot.iife.min.js
	"uplot-1.6.32.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd", // LICENSE
}

func TestVendored(t *testing.T) {
	found := 0
	for _, f := range Files() {
		want, ok := vendored[path.Base(f.Path)]
		if !ok {
			continue
		}
		found++
		if sum := sha256.Sum256(f.Body); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: %x", f.Path, sum)
		}
	}
	if found != len(vendored) {
		t.Errorf("%d of %d files", found, len(vendored))
	}
}

// maxLines is how many lines a script or style sheet of this project may have.
const maxLines = 400

// The project's own files are small, load nothing from another host, and never turn text into markup or code.
func TestFiles(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://`)
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := vendored[e.Name()]; ok {
			continue
		}
		body := read(e.Name())
		if n := bytes.Count(body, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, over %d", e.Name(), n, maxLines)
		}
		text := strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "") // the name of a language
		for _, bad := range forbidden.FindAllString(text, -1) {
			t.Errorf("%s has %s", e.Name(), bad)
		}
	}
	for _, f := range append(Files(), Dashboard("simulated", false, nil)) {
		if f.ContentType == "" || len(f.Body) == 0 {
			t.Errorf("%s: type %q, %d bytes", f.Path, f.ContentType, len(f.Body))
		}
	}
}

// The two scripts have every module once, after those that it imports, and no import or export that join does not know.
func TestScripts(t *testing.T) {
	entries, err := static.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	files, joined := scripts()
	for _, f := range files {
		text += string(f.Body)
	}
	page := string(Dashboard("simulated", false, nil).Body)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".js")
		if !ok || !joined[name] {
			if ok && !strings.Contains(page, `src="/assets/`+e.Name()+`"`) {
				t.Errorf("nothing loads %s", e.Name())
			}
			continue
		}
		if n := strings.Count(text, "modules."+name+" = "); n != 1 {
			t.Errorf("%s.js is in the scripts %d times", name, n)
		}
		before, _, _ := strings.Cut(text, "modules."+name+" = ")
		for _, m := range imports.FindAllStringSubmatch(string(read(e.Name())), -1) {
			_, module, _ := strings.Cut(before, "modules."+m[2]+" = ")
			_, module, _ = strings.Cut(module, "\nreturn {")
			exported, _, ok := strings.Cut(module, "};")
			if !ok {
				t.Errorf("%s.js comes before %s.js, which it imports", name, m[2])
			}
			for _, one := range regexp.MustCompile(`(\w+)(?: as \w+)?[,}]`).FindAllStringSubmatch(strings.ReplaceAll(m[1], " }", "}"), -1) {
				if !regexp.MustCompile(`\b` + one[1] + `\b`).MatchString(exported) {
					t.Errorf("%s.js imports %s, which %s.js does not export", name, one[1], m[2])
				}
			}
		}
	}
	left := regexp.MustCompile(`(?m)^\s*(import|export)\b.*`).FindAllString(text, -1)
	if len(left) != 1 || left[0] != "export const { later } = modules.panels;" {
		t.Errorf("the scripts import or export %q", left)
	}
}

// Only the page of a process in a fleet has a place for its role. The script fills it in, and explains the reason no_refresher.
func TestRole(t *testing.T) {
	files, _ := scripts()
	for _, fleet := range []bool{true, false} {
		if place := bytes.Contains(Dashboard("cboe", fleet, nil).Body, []byte(` id="role"`)); place != fleet {
			t.Errorf("in a fleet: %v, a place for the role: %v", fleet, place)
		}
	}
	for _, part := range []string{"'#role strong'", "\n  no_refresher: '"} {
		if !bytes.Contains(files[0].Body, []byte(part)) {
			t.Errorf("the script lacks %q", part)
		}
	}
}
