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
	imports := regexp.MustCompile(`(?:from |import )'\./([^']+)'`)
	later := regexp.MustCompile(`import\('./([^']+)'\)`)
	bodies := map[string]string{} // of scripts
	page := Dashboard("simulated", nil)
	for _, f := range append(Files(), page) {
		if strings.HasSuffix(f.Path, ".js") {
			bodies[f.Path] = string(f.Body)
		}
		if f.ContentType == "" || len(f.Body) == 0 {
			t.Errorf("%s: type %q, %d bytes", f.Path, f.ContentType, len(f.Body))
		}
	}
	for _, f := range append(Files(), page) {
		if _, ok := vendored[path.Base(f.Path)]; ok {
			continue
		}
		if n := bytes.Count(f.Body, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, over %d", f.Path, n, maxLines)
		}
		text := strings.ReplaceAll(string(f.Body), "http://www.w3.org/2000/svg", "") // the name of a language
		for _, bad := range forbidden.FindAllString(text, -1) {
			t.Errorf("%s has %s", f.Path, bad)
		}
	}
	needed := map[string]bool{} // what the first panel imports, directly or not
	var follow func(file string)
	follow = func(file string) {
		if needed[file] {
			return
		}
		needed[file] = true
		for _, m := range imports.FindAllStringSubmatch(bodies[file], -1) {
			follow("/assets/" + m[1])
		}
	}
	follow("/assets/app.js")
	for file, body := range bodies {
		if file != "/assets/app.js" && needed[file] != strings.Contains(string(page.Body), `"modulepreload" href="`+file+`"`) {
			t.Errorf("%s: the first panel needs it: %v; the page must preload just these modules", file, needed[file])
		}
		for _, m := range append(imports.FindAllStringSubmatch(body, -1), later.FindAllStringSubmatch(body, -1)...) {
			if bodies["/assets/"+m[1]] == "" {
				t.Errorf("%s imports %s, which is not a file", file, m[1])
			}
		}
	}
}
