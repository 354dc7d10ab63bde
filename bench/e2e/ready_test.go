package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// A health check that has nothing but the binary: it says when the server is ready, and why it is not.
func TestVerifyReady(t *testing.T) {
	fed := serve(t, "--data-dir", t.TempDir())
	fed.ready()
	if out, stderr, code := run(t, command(t, "verify", "--ready", fed.url, "--data-dir", "/nonexistent")); code != 0 || out != "ready: source simulated\n" {
		t.Errorf("ready: exit %d, %s%s", code, out, stderr)
	}
	fed.stop(syscall.SIGTERM)
	if out, stderr, code := run(t, command(t, "verify", "--ready", fed.url)); code != 1 || out != "" || !strings.Contains(stderr, "not ready: ") || !strings.Contains(stderr, "refused") {
		t.Errorf("stopped: exit %d, %s%s", code, out, stderr)
	}
	starving := serve(t, "--data-dir", t.TempDir(), "--source", "cboe", "--cboe-base-url", "http://127.0.0.1:1", "--cboe-settlement-url", "http://127.0.0.1:1")
	if out, stderr, code := run(t, command(t, "verify", "--ready", starving.url)); code != 1 || out != "" || !strings.Contains(stderr, "not ready: waiting for gex/spx, ") {
		t.Errorf("without an upstream: exit %d, %s%s", code, out, stderr)
	}
}
