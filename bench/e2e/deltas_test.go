package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// deltaPaths are the paths whose answers come with deltas.
var deltaPaths = []string{trackPath, seriesPath, painPath, flowPath, flowPath + "?limit=100", sectorsPath}

// quickly are arguments of a server that refreshes every resource every 5 seconds, in which a minute of the market passes.
var quickly = []string{"--gex-every", "60s", "--sim-speed", "12"}

// accepted is what Chromium accepts when it has a dictionary.
const accepted = "gzip, deflate, br, zstd, dcb, dcz"

// announced is the Available-Dictionary of a client that has an uncompressed answer.
func announced(answer []byte) string {
	digest := sha256.Sum256(answer)
	return ":" + base64.StdEncoding.EncodeToString(digest[:]) + ":"
}

// decodeWith decodes an answer in any coding. dictionary is the answer that the client has announced. It checks that the tag
// belongs to the coding, the dictionary and the bytes.
func decodeWith(resp *http.Response, body, dictionary []byte) (plain []byte, err error) {
	coding := resp.Header.Get("Content-Encoding")
	suffix := suffixes[coding]
	if coding == "dcz" {
		digest := sha256.Sum256(dictionary)
		suffix = "-dcz-" + hex.EncodeToString(digest[:8])
		if !strings.HasPrefix(string(body), "\x5e\x2a\x4d\x18\x20\x00\x00\x00"+string(digest[:])) {
			return nil, fmt.Errorf("the delta is against another answer: %x", body[:min(40, len(body))])
		}
		z, failed := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, dictionary))
		if failed != nil {
			return nil, failed
		}
		defer z.Close()
		plain, err = z.DecodeAll(body, nil)
	} else {
		plain, err = decode(resp, body)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", coding, err)
	}
	a, err := parseAnswer(plain)
	if err != nil {
		return nil, err
	}
	if tag, want := resp.Header.Get("ETag"), a.tagOf(plain, suffix); tag != want || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%d with the tag %s, want %s for these bytes", resp.StatusCode, tag, want)
	}
	return plain, nil
}

// poller is a client that polls a path through a cache, as a browser does: it announces an answer that it has.
type poller struct {
	p       *process
	path    string
	accepts string
	behind  int // 0: announces its last answer; 1: the answer before, and so on; -1: none; -2: one that the server never sent

	have   [][]byte // different answers, newest first
	deltas int      // answers in dcz
}

// poll asks once, decodes the answer, and asks again with the tag.
func (c *poller) poll() error {
	var dictionary []byte
	headers := []string{"Accept-Encoding", c.accepts}
	if c.behind == -2 {
		dictionary = []byte("never sent")
	} else if c.behind >= 0 && len(c.have) > c.behind {
		dictionary = c.have[c.behind]
	}
	if dictionary != nil {
		headers = append(headers, "Available-Dictionary", announced(dictionary))
	}
	resp, body := c.p.get(c.path, headers...)
	plain, err := decodeWith(resp, body, dictionary)
	if err != nil {
		return err
	}
	if coding := resp.Header.Get("Content-Encoding"); coding == "dcz" {
		c.deltas++
	} else if !strings.Contains(c.accepts, coding) {
		return fmt.Errorf("%s is not in %s", coding, c.accepts)
	}
	if again, _ := c.p.get(c.path, append(headers, "If-None-Match", resp.Header.Get("ETag"))...); again.StatusCode != http.StatusNotModified && again.StatusCode != http.StatusOK {
		return fmt.Errorf("with its tag: %d", again.StatusCode)
	}
	if len(c.have) == 0 || string(c.have[0]) != string(plain) {
		c.have = append([][]byte{plain}, c.have[:min(len(c.have), 4)]...)
	}
	return nil
}

// Through nginx and Varnish, each client gets bytes that it can decode: clients that have announced different answers, none,
// or one that the server never sent. The caches store deltas too.
func TestDeltasThroughCaches(t *testing.T) {
	t.Parallel()
	p := serveReady(t, "--gex-every", "5s") // an answer may stay in a cache until the next one, and not longer
	for name, start := range map[string]func(origin string) *process{
		"nginx":    func(origin string) *process { return nginx(t, origin) },
		"varnishd": func(origin string) *process { return varnish(t, origin, "-p", "http_gzip_support=off") },
	} {
		t.Run(name, func(t *testing.T) {
			installed(t, name)
			origin := newFront(t, p.url, nil)
			cache := start(origin.URL)
			var clients []*poller
			for _, path := range []string{painPath, flowPath, flowPath + "?limit=100"} {
				for _, c := range []poller{
					{accepts: accepted}, {accepts: accepted}, {accepts: accepted, behind: 1}, {accepts: "dcz", behind: 2}, {accepts: accepted, behind: -1},
					{accepts: accepted, behind: -2}, {accepts: "zstd", behind: 0}, {accepts: "br", behind: -1}, {accepts: "identity", behind: -1},
				} {
					clients = append(clients, &poller{p: cache, path: path, accepts: c.accepts, behind: c.behind})
				}
			}
			want := count(20)
			cache.until("every client that can gets deltas", func() bool {
				var all sync.WaitGroup
				for _, c := range clients {
					all.Go(func() {
						if err := c.poll(); err != nil {
							t.Errorf("%s, accepts %s, %d behind: %v", c.path, c.accepts, c.behind, err)
						}
					})
				}
				all.Wait()
				return t.Failed() || !slices.ContainsFunc(clients, func(c *poller) bool {
					return c.behind >= 0 && strings.Contains(c.accepts, "dcz") && c.deltas < want
				})
			})
			sent, received := 0, 0
			for _, x := range origin.exchanges(http.StatusOK) {
				if x.answered.Get("Content-Encoding") == "dcz" {
					sent++
				}
			}
			for _, c := range clients {
				if received += c.deltas; c.deltas > 0 && (c.behind < 0 || !strings.Contains(c.accepts, "dcz")) {
					t.Errorf("%s, accepts %s, %d behind: %d deltas", c.path, c.accepts, c.behind, c.deltas)
				}
			}
			if sent >= received {
				t.Errorf("the origin sent %d deltas, the clients got %d: the cache stores none", sent, received)
			}
			figure(t, "%s: %d deltas of the origin answered %d requests, each decoded to the answer of its tag", name, sent, received)
		})
	}
}

// The zstd program decodes the deltas, with the earlier answer as the dictionary and as the file to patch.
func TestZstdProgramDecodesDeltas(t *testing.T) {
	t.Parallel()
	program := installed(t, "zstd")
	p := serveReady(t, quickly...)
	dir := t.TempDir()
	for _, path := range deltaPaths {
		resp, body := p.get(path)
		earlier, err := decodeWith(resp, body, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.until("a delta of "+path, func() bool {
			resp, body = p.get(path, "Accept-Encoding", accepted, "Available-Dictionary", announced(earlier))
			return resp.Header.Get("Content-Encoding") == "dcz"
		})
		want, err := decodeWith(resp, body, earlier)
		if err != nil {
			t.Fatal(err)
		}
		dictionary, delta := filepath.Join(dir, "dictionary"), filepath.Join(dir, "delta")
		for _, file := range []struct {
			path string
			text []byte
		}{{dictionary, earlier}, {delta, body}} {
			if err := os.WriteFile(file.path, file.text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, with := range [][]string{{"-D", dictionary}, {"--patch-from=" + dictionary}} {
			args := append([]string{"-dcq", "--memory=8MB"}, append(with, delta)...)
			if got, err := exec.Command(program, args...).Output(); err != nil || string(got) != string(want) {
				t.Errorf("%s: zstd %q: %v, %d bytes, want %d", path, args, err, len(got), len(want))
			}
		}
	}
}
