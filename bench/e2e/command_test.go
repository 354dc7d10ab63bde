package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wrong flag, value or variable is an error that names the right ones, and nothing starts.
func TestBadFlagsAreNamed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	dir, taken := t.TempDir(), l.Addr().String()
	file := writeFile(t, filepath.Join(dir, "file"), "2026-12-24 late\n")
	open := writeFile(t, filepath.Join(dir, "keys.json"), "")
	must(t, os.Chmod(open, 0o644)) // so that others may read it
	for _, c := range []struct {
		args string
		want []string
	}{
		{"serve --no-such-flag", []string{"unknown flag --no-such-flag"}},
		{"serve --sourc=x", []string{"--source"}},
		{"serve --source=yahoo", []string{"simulated", "cboe", "replay", "folder"}},
		{"serve --source=folder", []string{"--folder"}},
		{"serve --source=folder --folder=/nonexistent", []string{"/nonexistent"}},
		{"serve --source=folder --folder=" + dir + " --source-name=cboe", []string{"--source-name", "no name of another source", "cboe"}},
		{"serve --source=folder --folder=" + dir + " --source-name=../x", []string{"--source-name", "a-z, 0-9 and -"}},
		{"serve --source-name=acme", []string{"--source-name belongs to --source folder"}},
		{"recompute --date=current --source=../x", []string{"--source", "a-z, 0-9 and -"}},
		{"serve --source=replay", []string{"--folder"}},
		{"serve --source=replay --folder=/nonexistent", []string{"/nonexistent"}},
		{"serve --gex-every=1s", []string{"--gex-every", "5s", "1h"}},
		{"serve --gex-every=fast", []string{"gex-every"}},
		{"serve --risk-free-rate=4", []string{"--risk-free-rate", "0.25"}},
		{"serve --sim-speed=-1", []string{"--sim-speed", "10000"}},
		{"serve --sim-start=yesterday", []string{"--sim-start", "RFC 3339"}},
		{"serve --underlyings=SPX,spy", []string{"--underlyings", "capital"}},
		{"serve --underlyings=SPX,XLF,SPY,XLF", []string{"--underlyings has XLF twice"}},
		{"serve --listen=here", []string{"--listen"}},
		{"serve --listen=", []string{"--listen must name an address"}},
		{"serve --listen=unix:" + file, []string{"--listen", "in use"}},
		{"serve --listen=127.0.0.1:0,unix:/nonexistent/socket", []string{"--listen", "/nonexistent/socket"}},
		{"serve --idle-timeout=2h", []string{"--idle-timeout must be from 1s to 1h, not 2h0m0s"}},
		{"serve --source=cboe --cboe-base-url=http://127.0.0.1:1 --listen=" + taken, []string{"in use"}},
		{"serve --admin-listen=" + taken, []string{"--admin-listen", "in use"}},
		{"serve --admin-listen=here", []string{"--admin-listen", "missing port"}},
		{"serve --closed-dates=" + file, []string{"line 1"}},
		{"serve --cboe-base-url=ftp://x --source=cboe", []string{"http"}},
		{"serve --archive-max-age=-1h", []string{"--archive-max-age"}},
		{"serve --cboe-requests-per-minute=0", []string{"--cboe-requests-per-minute", "1 to 6000"}},
		{"serve --max-connections=0", []string{"--max-connections"}},
		{"serve --data-dir=" + file, []string{"strikecache: open data directory", file, "not a directory"}},
		{"serve --data-dir=" + file + "/sub", []string{"strikecache: open data directory", file, "not a directory"}},
		{"serve --data-dir=" + dir, []string{"has mode 0644", "chmod 600 " + open}},
		{"serve --tls-cert=" + file, []string{"--tls-cert and --tls-key belong together"}}, {"serve --tls-key=" + file, []string{"belong together"}},
		{"serve --tls-cert=" + file + " --tls-key=" + file, []string{"--tls-cert and --tls-key", "PEM"}},
		{"serve --tls-cert=/nonexistent/cert --tls-key=/nonexistent/key --listen=" + taken, []string{"/nonexistent/cert"}}, // noticed before the port
		{"check", []string{`expected "<file> ..."`, "see strikecache check --help"}},
		{"check -", []string{"it reads files, not standard input"}},
		{"check " + file, []string{"a server would refuse 1 of 1 files"}},
		{"recompute", []string{"--date must be YYYY-MM-DD, a UTC date, or current"}},
		{"recompute --date=2026-11-31", []string{"--date", "YYYY-MM-DD"}},
		{"recompute --date=2026-11-20 --product=gex", []string{"--product", "gex/spx", "all"}},
		{"recompute --date=2026-11-20 --data-dir=/nonexistent", []string{"2026-11-20", "/nonexistent"}},
		{"severe", []string{"unexpected argument severe", "see strikecache --help"}},
		{"verify --data-dir=/nonexistent", []string{"/nonexistent"}},
		{"verify --ready=127.0.0.1:8080", []string{"--ready", "http://127.0.0.1:8080"}},
		{"verify --wait=1m", []string{"--wait is a positive time", "need --ready"}},
		{"keys revoke x --data-dir=/nonexistent", []string{"/nonexistent/keys.json"}},
	} {
		stdout, stderr, code := run(t, command(t, strings.Fields(c.args)...))
		for _, want := range c.want {
			if code != 1 || !strings.Contains(stderr, want) || stdout != "" && !strings.HasPrefix(c.args, "recompute") && !strings.Contains(stdout, "REFUSED") {
				t.Errorf("%s: exit %d, %q, %q; want it to name %q", c.args, code, stdout, stderr, want)
			}
		}
		if strings.HasPrefix(c.args, "keys") && strings.Contains(stderr, "lstat") || strings.Contains(stderr, "msg=serving") {
			t.Errorf("%s: %s", c.args, stderr)
		}
	}
	for _, v := range []string{"SIM_SEDE=99", "PORT=8080", "LISTEN_PORT=8080", "LISTEN_HOST=x", "PORT_80=x", "SERVICE=x", "SERVICE_PORTS=80", "NAME=x", "ENVS=x"} { // the case k8s-env has those that are ignored
		cmd := command(t, "version") // command sets known ones in every test
		cmd.Env = append(cmd.Env, "STRIKECACHE_"+v)
		name, _, _ := strings.Cut(v, "=")
		if _, stderr, code := run(t, cmd); code != 1 || !strings.Contains(stderr, "STRIKECACHE_"+name+" is not known") || len(stderr) > 300 {
			t.Errorf("unknown variable %s: exit %d, %s", v, code, stderr)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "2026-12-24 late\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "help", "help serve", "serve --help", "verify --help", "recompute --help", "check --help"} {
		if out := does(t, strings.Fields(args)...); !strings.Contains(out, "Usage: strikecache") {
			t.Errorf("%q: %s", args, out)
		}
	}
	for _, args := range []string{"version", "--version"} {
		if out := does(t, args); !strings.HasPrefix(out, "strikecache ") || !strings.Contains(out, "go1.") {
			t.Errorf("%s: %s", args, out)
		}
	}
}
