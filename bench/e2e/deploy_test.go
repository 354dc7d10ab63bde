package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// Every flag and variable that a file of server/deploy names belongs to strikecache, or is listed here as a flag of another program.
func TestFlagsExist(t *testing.T) {
	var help string
	for _, command := range []string{"serve", "verify", "keys create"} {
		help += does(t, append(strings.Fields(command), "--help")...)
	}
	others := strings.Fields("--addr --all --build --cap-drop --chown --config --from --http-listen --interval --jetstream --name --now --pass --price --profile --read-only --reference --retries --start-period --store --symbol --timeout --user --web")
	named := regexp.MustCompile(`--[a-z][a-z-]+|STRIKECACHE_[A-Z_]+`)
	files, _ := filepath.Glob(filepath.Join(root, "server", "deploy", "[^r]*")) // all but the folder release
	if len(files) < 13 {
		t.Fatalf("only %q", files)
	}
	for _, file := range files {
		today, _, _ := strings.Cut(text(t, file), "### Removed") // a changelog also names flags of before
		for _, name := range named.FindAllString(today, -1) {
			if !slices.Contains(others, name) && name != "STRIKECACHE_REQUIRE" && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(help) {
				t.Errorf("%s: %s is no flag or variable of strikecache", file, name)
			}
		}
	}
}

// The image is built without the files that git ignores.
func TestDockerignore(t *testing.T) {
	var ignored []string
	for line := range strings.Lines(text(t, ".gitignore")) {
		pattern := strings.TrimSuffix(strings.TrimSpace(line), "/")
		if !strings.Contains(pattern, "/") {
			pattern = "/**/" + pattern // below any folder
		}
		ignored = append(ignored, pattern[1:])
	}
	_, got, _ := strings.Cut(text(t, "server/deploy/Dockerfile.dockerignore"), "\n") // without its comment
	equal(t, got, strings.Join(ignored, "\n")+"\n", "ignored")
}

// The image has one static binary and no shell: its last stage can run only the binary.
func TestDockerfile(t *testing.T) {
	stages := 0
	for line := range strings.Lines(text(t, "server/deploy/Dockerfile")) {
		instruction, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "FROM":
			if stages++; stages == 2 && !strings.HasSuffix(args, ":nonroot") {
				t.Errorf("the image is made from %s", args)
			}
		case "RUN":
			if stages == 2 {
				t.Errorf("the image has no shell for %s", args)
			}
			if strings.Contains(args, "go build") && !strings.Contains(args, "CGO_ENABLED=0") {
				t.Errorf("not static: %s", args)
			}
		case "ENTRYPOINT", "CMD", "HEALTHCHECK":
			var words []string
			if err := json.Unmarshal([]byte(args[strings.Index(args, "["):]), &words); err != nil {
				t.Errorf("%s is not in exec form: %v", instruction, err)
			}
		}
	}
	equal(t, stages, 2, "stages")
}

// composeFile has the fields of a compose file that the tests read.
type composeFile struct {
	Services map[string]struct {
		Image          string
		Command        []string
		Environment    map[string]string
		Ports, Volumes []string
		Configs        []struct{ Source, Target string }
	}
	Configs map[string]struct{ File, Content string }
}

func compose(t *testing.T, name string) (c composeFile) {
	t.Helper()
	must(t, yaml.Unmarshal([]byte(text(t, "server/deploy/"+name)), &c))
	return c
}

// Every config exists and is mounted, Prometheus asks the admin listener of every server, and no service publishes that
// listener.
func TestCompose(t *testing.T) {
	for file, want := range map[string]string{
		"compose-single.yaml": "grafana prometheus strikecache",
		"compose.yaml":        "edge-1 edge-2 edge-3 grafana nats nginx prometheus refresher-1 refresher-2",
	} {
		c := compose(t, file)
		equal(t, strings.Join(slices.Sorted(maps.Keys(c.Services)), " "), want, "%s: services", file)
		mounted, directories := map[string]bool{}, map[string]string{}
		for name, service := range c.Services {
			for _, config := range service.Configs {
				mounted[config.Source] = true
				if source, ok := c.Configs[config.Source]; !ok || source.File != "" && text(t, "server/deploy/"+source.File) == "" {
					t.Errorf("%s: %s: no config %s", file, name, config.Source)
				}
			}
			for _, port := range service.Ports {
				if !strings.HasPrefix(port, "127.0.0.1:") || strings.HasSuffix(port, ":9090") {
					t.Errorf("%s: %s publishes %s", file, name, port)
				}
			}
			if service.Image != "strikecache" {
				continue
			}
			if !strings.Contains(c.Configs["prometheus"].Content, `"`+name+`:9090"`) {
				t.Errorf("%s: Prometheus does not ask %s", file, name)
			}
			if len(service.Volumes) != 1 || !strings.HasSuffix(service.Volumes[0], ":/data") || directories[service.Volumes[0]] != "" {
				t.Errorf("%s: %s has the volumes %q, of which %q has one", file, name, service.Volumes, directories[service.Volumes[0]])
			}
			directories[service.Volumes[0]] = name
		}
		equal(t, len(mounted), len(c.Configs), "%s: configs mounted", file)
	}
	if !strings.Contains(text(t, "server/deploy/Dockerfile"), "STRIKECACHE_ADMIN_LISTEN=:9090 ") {
		t.Error("Prometheus does not ask the admin listener of the image")
	}
}

// Every member of the fleet joins it, only the edges are edges, NATS asks for the password of the members and is of the
// version that the tests use, and nginx asks the edges.
func TestComposeFleet(t *testing.T) {
	c := compose(t, "compose.yaml")
	for name, service := range c.Services {
		if service.Image != "strikecache" {
			continue
		}
		edge := service.Environment["STRIKECACHE_EDGE"] == "true"
		if edge != strings.HasPrefix(name, "edge-") || !strings.HasPrefix(service.Environment["STRIKECACHE_NATS"], "nats://strikecache:${NATS_PASSWORD:?") {
			t.Errorf("%s: %q", name, service.Environment)
		}
	}
	version := regexp.MustCompile(`nats-server/v2 v(\S+)`).FindStringSubmatch(text(t, "go.mod"))
	if nats := c.Services["nats"]; nats.Image != "nats:"+version[1]+"-alpine" || !slices.Contains(nats.Command, "--pass=${NATS_PASSWORD}") || !slices.Contains(nats.Command, "--user=strikecache") {
		t.Errorf("%+v, and the tests use %s", nats, version[1])
	}
	script := regexp.MustCompile(`^(sed .*) \S+ > `).FindStringSubmatch(c.Services["nginx"].Command[2])
	if script == nil {
		t.Fatalf("%q", c.Services["nginx"].Command)
	}
	config := prints(t, "sh", "-c", "cd "+filepath.Join(root, "server", "deploy")+" && "+script[1]+" "+c.Configs["nginx"].File)
	for _, edge := range []string{"edge-1", "edge-2", "edge-3"} {
		if !strings.Contains(config, "server "+edge+":8080;") {
			t.Errorf("nginx does not ask %s", edge)
		}
	}
	if strings.Contains(config, "server 127.0.0.1:") {
		t.Error("nginx asks a server that is not there")
	}
	onMachine := regexp.MustCompile(`(?m)^(sed .*) > /etc/nginx/`).FindStringSubmatch(text(t, "server/deploy/README.md"))
	if onMachine == nil || !strings.Contains(prints(t, "sh", "-c", "cd "+root+" && "+onMachine[1]), "server 127.0.0.1:8083; server 127.0.0.1:8084; server 127.0.0.1:8085;") {
		t.Errorf("README.md: %q", onMachine)
	}
}

// The image can be built, and its health check succeeds. This needs a container engine.
func TestImage(t *testing.T) {
	docker := installed(t, "docker")
	if out, err := exec.Command(docker, "version", "--format", "{{.Server.Version}}").CombinedOutput(); err != nil {
		t.Skipf("needs a container engine: %s", strings.TrimSpace(string(out)))
	}
	prints(t, docker, "build", "-q", "-f", filepath.Join(root, "server", "deploy", "Dockerfile"), "-t", "strikecache-test", root)
	defer prints(t, docker, "rmi", "strikecache-test")
	container := prints(t, docker, "run", "-d", "--read-only", "--cap-drop", "ALL", "--tmpfs", "/data:uid=65532", "strikecache-test")
	defer prints(t, docker, "rm", "-f", container)
	until(t, "ready", func() bool {
		return exec.Command(docker, "exec", container, "/strikecache", "verify", "--ready", "http://127.0.0.1:9090").Run() == nil
	})
}

// The units have the lines that the program expects, and systemd finds no fault in them.
func TestUnit(t *testing.T) {
	unit := text(t, "server/deploy/strikecache.service")
	for _, line := range []string{"Type=notify", "Restart=always", "ExecReload=/bin/kill -HUP $MAINPID", "RestartSec=1", "StartLimitIntervalSec=0", "TimeoutStartSec=infinity"} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("no %s", line)
		}
	}
	if strings.Contains(unit, "Watchdog") {
		t.Error("systemd would end the service: the program feeds no watchdog")
	}
	analyze := installed(t, "systemd-analyze")
	path := filepath.Join(t.TempDir(), "strikecache.service")
	unit = strings.ReplaceAll(unit, "ExecStart=strikecache", "ExecStart="+binary)
	must(t, os.WriteFile(path, []byte(unit), 0o600))
	socket := filepath.Join(filepath.Dir(path), "strikecache.socket") // it belongs to the service of the same name
	must(t, os.WriteFile(socket, []byte(text(t, "server/deploy/strikecache.socket")), 0o600))
	if out := prints(t, analyze, "verify", path, socket); strings.Contains(out, "strikecache") {
		t.Errorf("verify: %s", out)
	}
	equal(t, strings.Count(text(t, "server/deploy/strikecache.socket"), "\nListenStream="), 1, "addresses of the socket unit, of which the server takes one")
	if !strings.Contains(prints(t, analyze, "security", "--help"), "--threshold") {
		t.Skip("needs systemd-analyze security --offline, of systemd 250")
	}
	prints(t, analyze, "security", "--offline=true", "--threshold=20", path) // 2.0 of 10; a plain unit has 9.6
}

// The unit allows every system call that a server makes from its start through a refresh to its end.
func TestUnitAllowsWhatTheServerCalls(t *testing.T) {
	t.Parallel()
	analyze, trace, cmd := installed(t, "systemd-analyze"), filepath.Join(t.TempDir(), "trace"), command(t, "serve", "--admin-listen", "127.0.0.1:0")
	traced(t, cmd, "-c", "-o", trace)
	privileged := callsOf(t, analyze, "@privileged")
	allowed := slices.DeleteFunc(callsOf(t, analyze, "@system-service"), func(c string) bool { return slices.Contains(privileged, c) })
	allowed = append(allowed, callsOf(t, analyze, "@default")...)
	if len(allowed) < 200 || len(privileged) < 20 {
		t.Fatalf("%d calls are allowed, %d are privileged", len(allowed), len(privileged))
	}
	p := serveWith(t, cmd)
	p.until("a refresh", func() bool { return strings.Contains(p.logged(), "msg=refreshed job=vix") })
	p.stop()
	made := 0
	for line := range strings.Lines(text(t, trace)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.Contains(fields[0], ".") || fields[len(fields)-1] == "total" {
			continue
		}
		made++
		if call := fields[len(fields)-1]; !slices.Contains(allowed, call) {
			t.Errorf("the unit forbids %s", call)
		}
	}
	if made < 20 {
		t.Errorf("%d calls traced:\n%s", made, text(t, trace))
	}
}

// callsOf returns the system calls of a set, and of the sets in it.
func callsOf(t *testing.T, analyze, set string) (calls []string) {
	t.Helper()
	for line := range strings.Lines(prints(t, analyze, "syscall-filter", set)) {
		switch word := strings.TrimSpace(line); {
		case word == set, word == "", strings.HasPrefix(word, "#"):
		case strings.HasPrefix(word, "@"):
			calls = append(calls, callsOf(t, analyze, word)...)
		default:
			calls = append(calls, word)
		}
	}
	return calls
}
