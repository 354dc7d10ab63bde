package web

import (
	"fmt"
	"regexp"
	"strings"
)

// The modules of the page are sent in two scripts: app.js, with what the first panel needs, and panels.js, with the rest. On
// a slow network, twenty files are several round trips over the few connections of a browser. Measured on 2026-11-22 with
// 150 ms and 1.6 Mbit/s: the files of the first chart came in two waves.
//
// A module keeps its own scope: it becomes a function that returns its exports. An import is one line, and names modules
// of the same directory. An export stands before its declaration, and nobody assigns to it later.
var (
	imports = regexp.MustCompile(`(?m)^import (?:\* as )?(\w+|\{[^}]*\}) from '\./(\w+)\.js';\n`)
	exports = regexp.MustCompile(`(?m)^export (const|class|function|async function) (\w+)`)
)

// join returns a module after all modules that it imports, but for those that have been joined before.
func join(name string, joined map[string]bool) []byte {
	if joined[name] {
		return nil
	}
	joined[name] = true
	source := string(read(name + ".js"))
	var out []byte
	for _, m := range imports.FindAllStringSubmatch(source, -1) {
		out = append(out, join(m[2], joined)...)
	}
	var names []string
	for _, m := range exports.FindAllStringSubmatch(source, -1) {
		names = append(names, m[2])
	}
	source = imports.ReplaceAllStringFunc(source, func(line string) string {
		m := imports.FindStringSubmatch(line)
		return fmt.Sprintf("const %s = modules.%s;\n", strings.ReplaceAll(m[1], " as ", ": "), m[2])
	})
	source = exports.ReplaceAllString(source, "$1 $2")
	return fmt.Appendf(out, "modules.%s = (() => {\n%s\nreturn { %s };\n})();\n", name, source, strings.Join(names, ", "))
}

// scripts returns the two scripts of the page, and the names of the modules in them. app.js is a classic script, so that its
// modules are one global variable; it imports panels.js as a module.
func scripts() (files []File, joined map[string]bool) {
	joined = map[string]bool{}
	app := append([]byte("'use strict';\nconst modules = {};\n"), join("app", joined)...)
	panels := append(join("panels", joined), "export const { later } = modules.panels;\n"...)
	return []File{{"/assets/app.js", types[".js"], app}, {"/assets/panels.js", types[".js"], panels}}, joined
}
