package server

import (
	"slices"

	"strikecache/server/web"
)

var pageFiles = web.Files()

// IsPage says whether a path is a page's.
func IsPage(path string) bool {
	return slices.ContainsFunc(pageFiles, func(f web.File) bool { return f.Path == path })
}
