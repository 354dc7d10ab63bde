package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/evanw/esbuild/pkg/cli"

	"strikecache/bench/testkit"
)

// bundle makes one file of an entry point and all that it imports.
func bundle(t *testing.T, options api.BuildOptions) []api.OutputFile {
	t.Helper()
	options.Bundle, options.LogLevel = true, api.LogLevelSilent
	result := api.Build(options)
	for _, message := range append(result.Errors, result.Warnings...) {
		t.Errorf("%s: %+v", message.Text, message.Location)
	}
	return result.OutputFiles
}

// The script and the style sheet in static are those that go generate makes of the sources.
func TestBundle(t *testing.T) {
	source, err := os.ReadFile("web.go")
	testkit.Must(t, err)
	_, command, _ := strings.Cut(string(source), "//go:generate go run github.com/evanw/esbuild/cmd/esbuild ")
	command, _, _ = strings.Cut(command, "\n")
	options, err := cli.ParseBuildOptions(strings.Fields(command))
	testkit.Must(t, err)
	files := bundle(t, options)
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if committed, err := Files.ReadFile("static/" + filepath.Base(f.Path)); err != nil || !bytes.Equal(committed, f.Contents) {
			t.Errorf("static/%s is not made of the sources: run go generate ./server/web: %v", filepath.Base(f.Path), err)
		}
	}
}

// The tests of the modules run in Node, bundled like the page.
func TestModules(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs the program node")
	}
	dir := t.TempDir()
	tests, err := filepath.Glob("src/*.test.mjs")
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	bundle(t, api.BuildOptions{EntryPoints: tests, Outdir: dir, OutExtension: map[string]string{".js": ".mjs"}, Format: api.FormatESModule, Platform: api.PlatformNode, Write: true})
	if out, err := exec.Command(node, "--test", dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// vendored are the digests of the files that the authors of uPlot 1.6.32 published, in the npm package with the SHA-256
// 4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d.
var vendored = map[string]string{
	"src/uplot-1.6.32.esm.js":         "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba", // dist/uPlot.esm.js
	"static/uplot-1.6.32.LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd", // LICENSE
}

func TestVendored(t *testing.T) {
	for name, want := range vendored {
		body, err := os.ReadFile(name)
		if sum := sha256.Sum256(body); err != nil || hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: %x, %v", name, sum, err)
		}
	}
}

// The project's own sources are small, load nothing from another host, and never turn text into markup or code.
func TestSources(t *testing.T) {
	entries, err := filepath.Glob("src/*")
	if err != nil || len(entries) == 0 {
		t.Fatal(err)
	}
	for _, name := range append(entries, "index.html") {
		if vendored[name] != "" {
			continue
		}
		body, err := os.ReadFile(name)
		testkit.Must(t, err)
		if n := bytes.Count(body, []byte("\n")); n > 400 {
			t.Errorf("%s has %d lines, over 400", name, n)
		}
		text := strings.ReplaceAll(string(body), "http://www.w3.org/2000/svg", "") // the name of a language
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}
