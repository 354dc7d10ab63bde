// Command release writes what people install, into the folder dist: a static binary for each platform, Debian packages,
// container images, and the SHA-256 of each file. It needs Go and git, and no container engine. Run it from the project's root.
// Two runs on one commit, with one version of Go, write the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "dist", "folder of the files; files of an earlier run are replaced")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64", "what to build for")
	flag.Parse()
	r := &release{out: *out}
	r.identify()
	fmt.Printf("strikecache %s, files of %s\n", r.version, r.time.Format(time.RFC3339))
	check(os.MkdirAll(r.out, 0o755))
	for platform := range strings.FieldsSeq(*platforms) {
		system, arch, _ := strings.Cut(platform, "/")
		binary := r.build(system, arch)
		if system == "linux" {
			r.write("strikecache_"+arch+".deb", r.deb(arch, binary))
			r.write("strikecache-image-"+arch+".tar", r.image(arch, binary))
		}
	}
	r.write("LICENSE", must(os.ReadFile("LICENSE"))) // whoever passes a binary on has to pass on the notices in it
	r.write("SHA256SUMS", []byte(r.sums.String()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

type release struct {
	out     string
	version string    // such as 1.2.0
	time    time.Time // of every file in a package or an image
	sums    strings.Builder
}

// identify sets version and time. A commit with a tag such as v1.2.0 has the version 1.2.0, which server/deploy/CHANGELOG.md
// must describe. Any other has the version that Go gives to it: 0.0.0-TIME-COMMIT. Changes that are not committed add +dirty.
// SOURCE_DATE_EPOCH, in Unix seconds, replaces the time of the commit.
func (r *release) identify() {
	seconds, commit, _ := strings.Cut(must(git("show", "--no-patch", "--format=%ct %H", "HEAD")), " ")
	r.version = "0.0.0-" + clock(seconds).Format("20060102150405") + "-" + commit[:12]
	r.time = clock(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), seconds))
	if tag, err := git("describe", "--tags", "--exact-match", "--match", "v[0-9]*"); err == nil {
		r.version = tag[1:]
		if !bytes.Contains(must(os.ReadFile("server/deploy/CHANGELOG.md")), []byte("\n## ["+r.version+"] - ")) {
			check(fmt.Errorf("the commit has the tag %s, and server/deploy/CHANGELOG.md no heading \"## [%s] - DATE\"", tag, r.version))
		}
	}
	if must(git("status", "--porcelain")) != "" {
		r.version += "+dirty"
	}
}

func clock(seconds string) time.Time {
	return time.Unix(must(strconv.ParseInt(seconds, 10, 64)), 0).UTC()
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		err = fmt.Errorf("the version is that of the git commit: git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), err
}

func (r *release) build(system, arch string) []byte {
	name := "strikecache-" + system + "-" + arch
	if system == "windows" {
		name += ".exe"
	}
	file := filepath.Join(r.out, name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.release="+r.version, "-o", file, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		check(fmt.Errorf("build for %s/%s: %w", system, arch, err))
	}
	binary := must(os.ReadFile(file))
	r.write(name, binary) // which leaves it executable
	return binary
}

// write writes and reports a file, and adds its digest to the sums.
func (r *release) write(name string, content []byte) {
	check(os.WriteFile(filepath.Join(r.out, name), content, 0o644))
	fmt.Fprintf(&r.sums, "%x  %s\n", sha256.Sum256(content), name)
	fmt.Printf("%s  %.1f MB\n", filepath.Join(r.out, name), float64(len(content))/1e6)
}

// entry is a file of a package or an image, or a folder, whose path ends in a slash.
type entry struct {
	path    string // relative to the root of the file system
	mode    int64
	owner   int // user and group
	content []byte
}

// file returns an entry for everyone to read, with the content of a file of the project.
func file(path, source string) entry {
	return entry{path, 0o644, 0, must(os.ReadFile(source))}
}

// archive returns a tar of the entries, in their order. The folders that lead to an entry come before it.
func (r *release) archive(entries ...entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(e entry) {
		check(w.WriteHeader(&tar.Header{
			Name: "./" + e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.content)), ModTime: r.time, Format: tar.FormatUSTAR,
		}))
		must(w.Write(e.content))
	}
	known := map[string]bool{}
	for _, e := range entries {
		for i := range len(e.path) - 1 {
			if folder := e.path[:i+1]; e.path[i] == '/' && !known[folder] {
				known[folder] = true
				add(entry{path: folder, mode: 0o755})
			}
		}
		add(e)
	}
	check(w.Close())
	return out.Bytes()
}

// compressed returns the content in gzip, without a name and a time.
func compressed(content []byte) []byte {
	var out bytes.Buffer
	w := must(gzip.NewWriterLevel(&out, gzip.BestCompression))
	must(w.Write(content))
	check(w.Close())
	return out.Bytes()
}
