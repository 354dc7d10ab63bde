package server

import "slices"

// IsPage says whether a path is a page's.
func IsPage(path string) bool {
	return slices.ContainsFunc(pageFiles[:], func(f [3]string) bool { return f[0] == path })
}
