package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strikecache/bench/need"
)

// instruction is one of a Dockerfile.
type instruction struct{ name, args string }

func dockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	b, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(b), "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		all = append(all, instruction{name, strings.TrimSpace(args)})
	}
	return all
}

// The image holds one static binary and an empty directory, and runs as nobody in particular.
func TestDockerfile(t *testing.T) {
	final := dockerfile(t)
	stages := 0
	for i, in := range slices.Backward(final) {
		if in.name == "FROM" {
			if stages++; stages == 1 {
				if !strings.HasPrefix(in.args, "gcr.io/distroless/static-debian") || !strings.HasSuffix(in.args, ":nonroot") {
					t.Errorf("from %s", in.args)
				}
				final = final[i+1:]
			}
		}
		if in.name == "RUN" && stages == 0 {
			t.Errorf("the image has no shell: %s", in.args)
		}
		if in.name == "RUN" && strings.Contains(in.args, "go build") && !strings.Contains(in.args, "CGO_ENABLED=0") {
			t.Errorf("not static: %s", in.args)
		}
	}
	if stages != 2 {
		t.Errorf("%d stages", stages)
	}
	got := map[string][]string{}
	for _, in := range final {
		got[in.name] = append(got[in.name], in.args)
	}
	for name, want := range map[string][]string{
		"COPY": {"--from=build /out/strikecache /strikecache", "--from=build --chown=65532:65532 /out/data /data"},
		"USER": {"nonroot"}, "EXPOSE": {"8080"}, "VOLUME": {"/data"}, "ENTRYPOINT": {`["/strikecache"]`},
		"CMD": {`["serve", "--listen", ":8080"]`}, "ENV": {"STRIKECACHE_LISTEN=:8080 STRIKECACHE_DATA_DIR=/data"},
		"HEALTHCHECK": {`--interval=30s --timeout=10s --start-period=2m --retries=3 CMD ["/strikecache", "verify", "--ready", "http://127.0.0.1:8080"]`},
	} {
		if !slices.Equal(got[name], want) {
			t.Errorf("%s %q, want %q", name, got[name], want)
		}
	}
	for _, in := range final {
		if _, form, ok := strings.Cut(in.args, "["); ok {
			var words []string
			if err := json.Unmarshal([]byte("["+form), &words); err != nil {
				t.Errorf("%s is not in exec form: %v", in.name, err)
			}
		}
	}
}

var flag = regexp.MustCompile(`--[a-z][a-z-]+`)

// strikecache builds the binary and returns its path and the help of its commands.
func strikecache(t *testing.T) (path, help string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "strikecache")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = need.Root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, command := range []string{"serve", "verify", "keys create"} {
		out, err := exec.Command(path, append(strings.Fields(command), "--help")...).Output()
		if err != nil {
			t.Fatal(command, err)
		}
		help += string(out)
	}
	return path, help
}

// Every flag and variable that the files name is one of the binary's.
func TestFlagsExist(t *testing.T) {
	_, help := strikecache(t)
	own := []string{"--now", "--pipe", "--reference", "--read-only", "--cap-drop", "--from", "--chown", "--interval", "--timeout", "--start-period", "--retries"}
	for _, file := range []string{"Dockerfile", "strikecache.service", "alerts.yml", "grafana.json"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(flag.FindAllString(string(b), -1), regexp.MustCompile(`STRIKECACHE_[A-Z_]+`).FindAllString(string(b), -1)...) {
			if !slices.Contains(own, name) && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(help) {
				t.Errorf("%s: %s is no flag or variable of strikecache", file, name)
			}
		}
	}
}

// The image is built, and its health check run, where there is an engine.
func TestImage(t *testing.T) {
	docker := need.Program(t, "docker")
	if out, err := exec.Command(docker, "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		t.Skipf("needs an engine: %s", strings.TrimSpace(string(out)))
	}
	docked := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(docker, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("docker %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	image := "strikecache-test:" + strings.ToLower(t.Name())
	docked("build", "-q", "-f", "Dockerfile", "-t", image, need.Root(t))
	defer docked("rmi", image)
	container := docked("run", "-d", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/data:uid=65532", image)
	defer docked("rm", "-f", container)
	var out []byte
	need.Until(t, "ready", func() bool {
		var err error
		out, err = exec.Command(docker, "exec", container, "/strikecache", "verify", "--ready", "http://127.0.0.1:8080").CombinedOutput()
		return err == nil
	}, func() string { return string(out) })
}

// settings returns the settings of the unit's service, each with its values.
func settings(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("strikecache.service")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			all[name] = append(all[name], value)
		}
	}
	return all
}

func TestUnit(t *testing.T) {
	got := settings(t)
	for name, want := range map[string]string{
		"Type": "notify", "WatchdogSec": "30", "DynamicUser": "yes", "StateDirectory": "strikecache", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
		"ProtectSystem": "strict", "ProtectHome": "yes", "PrivateDevices": "yes", "MemoryDenyWriteExecute": "yes", "SystemCallArchitectures": "native",
		"SystemCallFilter": "@system-service ~@privileged", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "RestrictNamespaces": "yes",
		"ExecStart": "/usr/local/bin/strikecache serve", "Environment": "STRIKECACHE_DATA_DIR=%S/strikecache",
	} {
		if have := strings.Join(got[name], " "); have != want {
			t.Errorf("%s=%s, want %s", name, have, want)
		}
	}
}

// What systemd says of the unit, with the binary in its place.
func TestUnitIsSound(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze")
	b, err := os.ReadFile("strikecache.service")
	if err != nil {
		t.Fatal(err)
	}
	path, _ := strikecache(t)
	unit := filepath.Join(t.TempDir(), "strikecache.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(b), "ExecStart=/usr/local/bin/strikecache", "ExecStart="+path)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "strikecache") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--help").CombinedOutput(); err != nil || !strings.Contains(string(out), "--threshold") {
		t.Skip("needs systemd-analyze security --offline, of systemd 250")
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", unit).CombinedOutput() // 2.0 of 10; a plain unit has 9.6
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
	if _, level, ok := strings.Cut(string(out), "exposure level for strikecache.service: "); ok {
		need.Figure(t, "systemd's exposure level is %s", strings.TrimSpace(level))
	}
}
