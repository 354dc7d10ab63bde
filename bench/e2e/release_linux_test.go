package e2e

import (
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	binaryName  = "strikecache-linux-" + runtime.GOARCH
	packageName = "strikecache_" + runtime.GOARCH + ".deb"
	imageName   = "strikecache-image-" + runtime.GOARCH + ".tar"
)

// release makes a release for this machine into a folder below scratch.
func release(folder string) (string, error) {
	out := filepath.Join(scratch, folder)
	cmd := exec.Command("go", "run", "./server/deploy/release", "--out", out, "--platforms", "linux/"+runtime.GOARCH)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return out, nil
}

var firstRelease = sync.OnceValues(func() (string, error) { return release("release") })

// released returns the content of a file of the release, and the version that its binary says.
func released(t *testing.T, name string) (content, version string) {
	t.Helper()
	dir, err := firstRelease()
	must(t, err)
	said := regexp.MustCompile(`^strikecache (\d\S+) go\S+ linux/` + runtime.GOARCH + `$`).FindStringSubmatch(prints(t, filepath.Join(dir, binaryName), "version"))
	if said == nil {
		t.Fatal("the binary of the release has no version")
	}
	return text(t, filepath.Join(dir, name)), said[1]
}

// A release has the files that SHA256SUMS names, with these digests, its binary is static, and a second run writes the same
// bytes.
func TestRelease(t *testing.T) {
	t.Parallel()
	sums, _ := released(t, "SHA256SUMS")
	var want strings.Builder
	for _, name := range []string{binaryName, packageName, imageName, "LICENSE"} {
		content, _ := released(t, name)
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256([]byte(content)), name)
	}
	equal(t, sums, want.String(), "SHA256SUMS")
	again, err := release("again")
	must(t, err)
	equal(t, text(t, filepath.Join(again, "SHA256SUMS")), sums, "SHA256SUMS of the second run")
	binary, _ := released(t, binaryName)
	file, err := elf.NewFile(strings.NewReader(binary))
	must(t, err)
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("the binary is not static")
	}
}

// dpkg installs the package into a folder as the root of a system, with its user, and removes it. systemctl enables the units
// in that folder. The scripts of the package see that it is not the system that runs: nothing outside of the folder changes.
// A running systemd is not tried.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	dpkg, sysusers, systemctl := installed(t, "dpkg"), installed(t, "systemd-sysusers"), installed(t, "systemctl")
	if os.Getuid() != 0 {
		t.Skip("needs root, for the owners of files")
	}
	binary, version := released(t, binaryName)
	root := t.TempDir()
	prints(t, "sh", "-c", "cd "+root+" && mkdir -p etc var/lib/dpkg/info var/lib/dpkg/updates var/lib/strikecache && touch var/lib/dpkg/status var/lib/strikecache/keys.json")
	do := func(args ...string) {
		prints(t, dpkg, append([]string{"--root=" + root, "--log=/dev/null", "--force-script-chrootless"}, args...)...)
	}
	for range 2 { // the second time is an upgrade
		do("--install", filepath.Join(scratch, "release", packageName))
	}
	for path, want := range map[string]string{
		"usr/bin/strikecache": binary, "usr/lib/systemd/system/strikecache.service": text(t, "server/deploy/strikecache.service"),
		"usr/lib/systemd/system/strikecache.socket": text(t, "server/deploy/strikecache.socket"), "usr/share/doc/strikecache/changelog": text(t, "server/deploy/CHANGELOG.md"),
	} {
		if text(t, filepath.Join(root, path)) != want {
			t.Errorf("%s is not the project's", path)
		}
	}
	if got := prints(t, "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-W", "-f", "${Version} ${db:Status-Status}"); strings.NewReplacer("~", "-", ".", "-").Replace(got) != strings.ReplaceAll(version, ".", "-")+" installed" {
		t.Errorf("package %s, version %s", got, version)
	}
	prints(t, dpkg, "--compare-versions", "0.0.0~20261126081301.2ef1f4323523", "lt", "0.0.0")
	if users := text(t, filepath.Join(root, "etc", "passwd")); !regexp.MustCompile(`(?m)^strikecache:x:\d+:\d+:[^:]*:/var/lib/strikecache:\S*nologin$`).MatchString(users) {
		t.Errorf("%s made the users\n%s", sysusers, users)
	}
	prints(t, systemctl, "--root="+root, "enable", "strikecache.socket", "strikecache.service")
	links := func() int {
		found, _ := filepath.Glob(filepath.Join(root, "etc/systemd/system/*/strikecache.*"))
		return len(found)
	}
	equal(t, links(), 2, "enabled units")
	do("--purge", "strikecache")
	equal(t, links(), 0, "enabled units of the removed package")
	if _, err := os.Stat(filepath.Join(root, "usr")); !os.IsNotExist(err) {
		t.Errorf("files stay below /usr: %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "var/lib/strikecache/keys.json")); err != nil {
		t.Errorf("the stored data: %v", err)
	}
}

// descriptor names a blob of an image.
type descriptor struct {
	Digest   string
	Size     int
	Platform struct{ Architecture, OS string }
}

// imageConfig has the fields of an image's configuration that the tests read.
type imageConfig struct {
	Architecture, OS string
	RootFS           struct {
		DiffIDs []string `json:"diff_ids"`
	}
	Config struct {
		User                  string
		Env, Entrypoint, Cmd  []string
		ExposedPorts, Volumes map[string]any
		Labels                map[string]string
		Healthcheck           struct {
			Test                           []string
			Interval, Timeout, StartPeriod time.Duration
			Retries                        int
		}
	}
}

// unpackImage checks every digest of the image, unpacks its layer into the folder root, and returns its configuration.
func unpackImage(t *testing.T) (config imageConfig, root string) {
	t.Helper()
	_, _ = released(t, imageName)
	dir := t.TempDir()
	root = filepath.Join(dir, "root")
	prints(t, "tar", "-x", "-C", dir, "-f", filepath.Join(scratch, "release", imageName))
	decode := func(name string, v any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text(t, filepath.Join(dir, name))), v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	blob := func(d descriptor) string {
		t.Helper()
		name := "blobs/" + strings.Replace(d.Digest, ":", "/", 1)
		if content := text(t, filepath.Join(dir, name)); fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))) != d.Digest || len(content) != d.Size {
			t.Fatalf("%s does not have the digest and the size of its descriptor", name)
		}
		return name
	}
	var index struct{ Manifests []descriptor }
	decode("index.json", &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.OS != "linux" || index.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("%+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(blob(index.Manifests[0]), &manifest)
	decode(blob(manifest.Config), &config)
	var saved []struct {
		Config           string
		Layers, RepoTags []string
	}
	decode("manifest.json", &saved)
	if len(manifest.Layers) != 1 || len(saved) != 1 || saved[0].Config != blob(manifest.Config) || !slices.Equal(saved[0].Layers, []string{blob(manifest.Layers[0])}) || saved[0].RepoTags[0] != "strikecache:latest" {
		t.Fatalf("index.json leads to %+v, manifest.json to %+v", manifest, saved)
	}
	layer := filepath.Join(dir, saved[0].Layers[0])
	if got, _, _ := strings.Cut(prints(t, "sh", "-c", "gzip -dc "+layer+" | sha256sum"), " "); !slices.Equal(config.RootFS.DiffIDs, []string{"sha256:" + got}) {
		t.Fatalf("the configuration names the layers %q, not %s", config.RootFS.DiffIDs, got)
	}
	prints(t, "mkdir", root)
	prints(t, "tar", "-xz", "-C", root, "-f", layer) // as root, the files belong to the users of the layer
	return config, root
}

// The image has the settings of the Dockerfile, the version and the binary of the release, and the public authorities.
func TestReleaseImage(t *testing.T) {
	t.Parallel()
	binary, version := released(t, binaryName)
	image, root := unpackImage(t)
	c := image.Config
	if c.Labels["org.opencontainers.image.version"] != version || image.Architecture != runtime.GOARCH || image.OS != "linux" {
		t.Errorf("version %s: %+v", version, image)
	}
	list := func(words []string) string { return `["` + strings.Join(words, `", "`) + `"]` }
	ports := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(c.ExposedPorts)), " "), "/tcp", "")
	health := c.Healthcheck
	for _, line := range []string{
		"ENV " + strings.Join(c.Env, " "), "USER " + c.User, "EXPOSE " + ports, "VOLUME " + strings.Join(slices.Collect(maps.Keys(c.Volumes)), " "),
		fmt.Sprintf("HEALTHCHECK --interval=%v --timeout=%v --start-period=%s --retries=%d CMD %s", health.Interval, health.Timeout, strings.TrimSuffix(health.StartPeriod.String(), "0s"), health.Retries, list(health.Test[1:])),
		"ENTRYPOINT " + list(c.Entrypoint), "CMD " + list(c.Cmd),
	} {
		if !strings.Contains(text(t, "server/deploy/Dockerfile")+"\n", "\n"+line+"\n") {
			t.Errorf("the Dockerfile does not say %s", line)
		}
	}
	if text(t, filepath.Join(root, c.Entrypoint[0])) != binary {
		t.Error("the binary of the image is not that of the release")
	}
	authorities := text(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	if n := strings.Count(authorities, "BEGIN CERTIFICATE"); n < 100 || !x509.NewCertPool().AppendCertsFromPEM([]byte(authorities)) {
		t.Errorf("%d certificates, or none that can be used", n)
	}
}

// The server of the image becomes ready with nothing but the files of the layer: as the root of its file system, and as the
// user of the image. Both need root; without it, the server of the layer runs as any program.
func TestReleaseImageServes(t *testing.T) {
	t.Parallel()
	image, root := unpackImage(t)
	c := image.Config
	args := append(slices.Clone(c.Cmd), "--listen", "127.0.0.1:0", "--admin-listen", "", "--sim-small")
	cmd := exec.Command(c.Entrypoint[0], args...)
	if os.Getuid() == 0 {
		var id syscall.Credential
		if _, err := fmt.Sscanf(c.User, "%d:%d", &id.Uid, &id.Gid); err != nil || id.Uid == 0 {
			t.Fatalf("the user of the image is %s: %v", c.User, err)
		}
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root, Credential: &id}
	} else {
		cmd = exec.Command(filepath.Join(root, c.Entrypoint[0]), append(args, "--data-dir", filepath.Join(root, "data"))...)
	}
	cmd.Env = c.Env
	p := serveWith(t, cmd)
	p.ready()
	p.stop()
}
