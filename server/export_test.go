package server

import (
	"slices"

	"strikecache/server/openapi"
	"strikecache/server/web"
)

// IsPage says whether a path is a page's, or that of a file beside it.
func IsPage(path string) bool {
	files, err := openapi.Files()
	if err != nil {
		panic(err)
	}
	return slices.ContainsFunc(web.Files(), func(f web.File) bool { return f.Path == path }) ||
		slices.ContainsFunc(files, func(f openapi.File) bool { return f.Path == path })
}
