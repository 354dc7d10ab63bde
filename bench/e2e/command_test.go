package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag or value that is not understood is an error that names the right ones, before anything starts.
func TestBadFlagsAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("2026-12-24 late\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want []string
	}{
		{"serve --no-such-flag", []string{"unknown flag --no-such-flag"}},
		{"serve --sourc=x", []string{"--source"}},
		{"serve --source=yahoo", []string{"simulated", "cboe", "replay"}},
		{"serve --source=replay", []string{"--replay-dir"}},
		{"serve --source=replay --replay-dir=/nonexistent", []string{"/nonexistent"}},
		{"serve --gex-every=1s", []string{"--gex-every", "5s", "1h"}},
		{"serve --gex-every=fast", []string{"gex-every"}},
		{"serve --quotes-every=2h", []string{"--quotes-every", "1h"}},
		{"serve --risk-free-rate=4", []string{"--risk-free-rate", "0.25"}},
		{"serve --sim-speed=-1", []string{"--sim-speed", "10000"}},
		{"serve --sim-start=yesterday", []string{"--sim-start", "RFC 3339"}},
		{"serve --flow-symbols=spy", []string{"--flow-symbols", "SPY"}},
		{"serve --listen=here", []string{"--listen"}},
		{"serve --closed-dates=" + file, []string{"line 1"}},
		{"serve --cboe-base-url=ftp://x --source=cboe", []string{"http"}},
		{"serve --archive-max-bytes=1MB", []string{"--archive-max-bytes", "67108864"}},
		{"serve --archive-max-bytes=5GiBs", []string{"archive-max-bytes", "5GiB"}},
		{"serve --archive-max-age=-1h", []string{"--archive-max-age"}},
		{"recompute", []string{"--date"}},
		{"recompute --date=2026-11-31", []string{"--date", "YYYY-MM-DD"}},
		{"recompute --date=2026-11-20 --product=gex", []string{"--product", "gex/spx", "all"}},
		{"recompute --date=2026-11-20 --data-dir=/nonexistent", []string{"2026-11-20", "/nonexistent"}},
		{"serve --cboe-requests-per-minute=0", []string{"--cboe-requests-per-minute", "1 to 6000"}},
		{"serve --cboe-timeout=1h", []string{"--cboe-timeout", "1s", "5m"}},
		{"serve --max-connections=0", []string{"--max-connections"}},
		{"serve --data-dir=" + file, []string{"data directory"}},
		{"severe", []string{"unexpected argument severe", "serve"}},
		{"verify --data-dir=/nonexistent", []string{"/nonexistent"}},
		{"serve --tls-cert=" + file, []string{"--tls-cert and --tls-key belong together"}},
		{"serve --tls-cert=" + file + " --tls-key=" + file, []string{"--tls-cert and --tls-key", "PEM"}},
		{"verify --ready=127.0.0.1:8080", []string{"--ready", "http://127.0.0.1:8080"}},
	} {
		stdout, stderr, code := run(t, command(t, strings.Fields(c.args)...))
		for _, want := range c.want {
			if code == 0 || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit %d, %q; want it to name %q", c.args, code, stderr, want)
			}
		}
		if strings.Contains(stdout+stderr, "msg=serving") {
			t.Errorf("%s: it started", c.args)
		}
	}
}

func TestEnvironmentTwins(t *testing.T) {
	cmd := command(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "")
	cmd.Env = append(cmd.Env, "STRIKECACHE_DATA_DIR="+t.TempDir(), "STRIKECACHE_LOG_FORMAT=text", "STRIKECACHE_SIM_SEED=99", "STRIKECACHE_CBOE_BASE_URL=http://127.0.0.1:1")
	p := serveWith(t, cmd)
	if !strings.Contains(p.logged(), "msg=serving") {
		t.Errorf("log %s", p.logged())
	}
	p.until("the seed is logged", func() bool { return strings.Contains(p.logged(), "seed=99") })
	cmd = command(t, "serve")
	cmd.Env = append(cmd.Env, "STRIKECACHE_SEED=99")
	if _, stderr, code := run(t, cmd); code == 0 || !strings.Contains(stderr, "STRIKECACHE_SEED is not known") || !strings.Contains(stderr, "STRIKECACHE_SIM_SEED") {
		t.Errorf("unknown variable: exit %d, %s", code, stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range []string{"", "--help", "serve --help", "verify --help", "recompute --help"} {
		out, _, code := run(t, command(t, strings.Fields(args)...))
		if code != 0 || !strings.Contains(out, "Usage: strikecache") {
			t.Errorf("%q: exit %d, %s", args, code, out)
		}
	}
	out, _, code := run(t, command(t, "version"))
	if code != 0 || !strings.HasPrefix(out, "strikecache ") || !strings.Contains(out, "go1.") {
		t.Errorf("version: exit %d, %s", code, out)
	}
}

// Two processes must not write the same directory, and another seed's market is not mixed in.
func TestADirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	p := serve(t, "--data-dir", dir)
	if _, stderr, code := run(t, command(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-listen", "")); code == 0 || !strings.Contains(stderr, "another process") {
		t.Errorf("second process: exit %d, %s", code, stderr)
	}
	p.kill()
	if _, stderr, code := run(t, command(t, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--admin-listen", "", "--sim-seed", "2")); code == 0 || !strings.Contains(stderr, "seed 1") {
		t.Errorf("another seed: exit %d, %s", code, stderr)
	}
}
