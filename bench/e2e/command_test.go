package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag or value that is not understood is an error that names the right ones, before anything starts.
func TestBadFlagsAreNamed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("2026-12-24 late\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "keys.json") // that others may read
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	levels := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(levels, []byte(levelsHeader+"2015-01-05,SPX,x,,,,,,,,,1\r\n"), 0o600); err != nil {
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
		{"serve --cboe-requests-per-minute=0", []string{"--cboe-requests-per-minute", "1 to 6000"}},
		{"serve --cboe-timeout=1h", []string{"--cboe-timeout", "1s", "5m"}},
		{"serve --max-connections=0", []string{"--max-connections"}},
		{"serve --data-dir=" + file, []string{"data directory"}},
		{"serve --keys-file=" + open, []string{"has mode 0644", "chmod 600 " + open}},
		{"serve --tls-cert=" + file, []string{"--tls-cert and --tls-key belong together"}},
		{"serve --tls-cert=" + file + " --tls-key=" + file, []string{"--tls-cert and --tls-key", "PEM"}},
		{"recompute", []string{"--date"}},
		{"recompute --date=2026-11-31", []string{"--date", "YYYY-MM-DD"}},
		{"recompute --date=2026-11-20 --product=gex", []string{"--product", "gex/spx", "all"}},
		{"recompute --date=2026-11-20 --data-dir=/nonexistent", []string{"2026-11-20", "/nonexistent"}},
		{"severe", []string{"unexpected argument severe", "strikecache --help"}},
		{"verify --data-dir=/nonexistent", []string{"/nonexistent"}},
		{"verify --ready=127.0.0.1:8080", []string{"--ready", "http://127.0.0.1:8080"}},
		{"keys revoke x --keys-file=/nonexistent/keys.json", []string{"/nonexistent/keys.json"}},
		{"export --format=xml", []string{"--format", "csv", "json"}},
		{"export --from=2026-02-30", []string{"--from", "YYYY-MM-DD"}},
		{"export --data-dir=/nonexistent", []string{"/nonexistent"}},
		{"export --source=yahoo", []string{"simulated", "cboe", "replay"}},
		{"import", []string{"<file>"}},
		{"import /nonexistent", []string{"/nonexistent"}},
		{"import " + levels, []string{"bad.csv", "line 2, column spot"}},
		{"import " + levels + " --closed-dates=x", []string{"closed-dates"}},
	} {
		stdout, stderr, code := run(t, command(t, strings.Fields(c.args)...))
		for _, want := range c.want {
			if code != 1 || !strings.Contains(stderr, want) || stdout != "" && !strings.HasPrefix(c.args, "recompute") {
				t.Errorf("%s: exit %d, %q, %q; want it to name %q", c.args, code, stdout, stderr, want)
			}
		}
		if strings.HasPrefix(c.args, "keys") && strings.Contains(stderr, "lstat") || strings.Contains(stderr, "msg=serving") {
			t.Errorf("%s: %s", c.args, stderr)
		}
	}
}

// A certificate that cannot be read is noticed before any port is bound: here the port is taken.
func TestCertificateComesBeforeThePort(t *testing.T) {
	t.Parallel()
	taken := shared(t).address()
	_, stderr, code := run(t, command(t, "serve", "--listen", taken, "--tls-cert", "/nonexistent/cert", "--tls-key", "/nonexistent/key"))
	if code != 1 || !strings.Contains(stderr, "/nonexistent/cert") || strings.Contains(stderr, "in use") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stderr, code := run(t, command(t, append([]string{"serve", "--listen", taken}, noUpstream...)...)); code != 1 || !strings.Contains(stderr, "in use") {
		t.Errorf("a taken port: exit %d, %s", code, stderr)
	}
}

func TestEnvironmentTwins(t *testing.T) {
	t.Parallel()
	cmd := command(t, "serve")
	cmd.Env = append(cmd.Env, "STRIKECACHE_DATA_DIR="+t.TempDir(), "STRIKECACHE_LOG_FORMAT=text", "STRIKECACHE_SIM_SEED=99", "STRIKECACHE_CBOE_BASE_URL=http://127.0.0.1:1")
	p := serveWith(t, cmd)
	p.until("the seed is logged", func() bool { return strings.Contains(p.logged(), "seed=99") })
	cmd = command(t, "serve")
	cmd.Env = append(cmd.Env, "STRIKECACHE_SIM_SEDE=99")
	if _, stderr, code := run(t, cmd); code != 1 || !strings.Contains(stderr, "STRIKECACHE_SIM_SEDE is not known; did you mean STRIKECACHE_SIM_SEED?") || len(stderr) > 300 {
		t.Errorf("unknown variable: exit %d, %s", code, stderr)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
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

// Two processes must not write one directory: the second fails at once and says so. Another seed's market is not mixed in.
func TestADirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := storedDay(t)
	p := serve(t, "--data-dir", dir, "--sim-speed", "0")
	for _, args := range [][]string{{"serve", "--data-dir", dir}, {"import", "-", "--data-dir", dir}} {
		cmd := command(t, args...)
		cmd.Stdin = strings.NewReader(levelsHeader + "2015-01-05,SPX,2000,,,,,,,,,1\r\n")
		if stdout, stderr, code := run(t, cmd); code != 1 || !strings.Contains(stderr, "another process") || strings.Contains(stdout+stderr, "msg=") {
			t.Errorf("%s: exit %d, %s", args[0], code, stderr)
		}
	}
	p.kill()
	if _, stderr, code := run(t, command(t, "serve", "--data-dir", dir, "--sim-seed", "2")); code != 1 || !strings.Contains(stderr, "seed 1") {
		t.Errorf("another seed: exit %d, %s", code, stderr)
	}
}
