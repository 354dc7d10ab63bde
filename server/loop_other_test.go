//go:build !linux

package server_test

import (
	"testing"

	"strikecache/server"
)

// loopAnswers returns what the only engine answers.
func loopAnswers(t testing.TB, web *server.Server, parts ...string) string {
	t.Helper()
	return engineAnswers(web, parts...)
}

func loopAllocations(testing.TB, *server.Server, []byte, []byte) {}
