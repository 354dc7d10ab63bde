// Package house holds the tests of the project itself: which package may import which, that each explains itself,
// and that files and functions stay short enough to read.
package house
