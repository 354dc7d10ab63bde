package snapshots

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// foreign returns what a foreign program makes of its input.
func foreign(t *testing.T, in []byte, program string, args ...string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return out
}

// inNode decodes bodies, each after its length.
const inNode = `
const zlib = require("zlib"), unpack = zlib[process.argv[1]], out = []
for (let b = require("fs").readFileSync(0); b.length; ) {
  const n = b.readUInt32LE(0), {buffer, engine} = unpack(b.subarray(4, 4 + n), {info: true})
  if (engine.bytesWritten !== n) throw new Error("took " + engine.bytesWritten + " of " + n + " bytes")
  out.push(buffer)
  b = b.subarray(4 + n)
}
require("fs").writeFileSync(1, Buffer.concat(out))
`

// Browsers and tools can decode every coding: these programs share no code with our encoders.
func TestForeignDecoders(t *testing.T) {
	var snapshots []*Snapshot
	for _, data := range texts(t) {
		snapshots = append(snapshots, sealed(t, data))
	}
	continued := sealed(t, string(document(100_000)))
	for _, p := range []struct {
		coding  Coding
		program string
		args    []string
		probe   string // fails where the program lacks the coding
	}{
		{Gzip, "node", []string{"-e", inNode, "gunzipSync"}, ""},
		{Brotli, "node", []string{"-e", inNode, "brotliDecompressSync"}, ""},
		{Zstd, "zstd", []string{"-dc"}, ""}, // decodes frame after frame, and knows no lengths
		{Zstd, "node", []string{"-e", inNode, "zstdDecompressSync"}, `require("zlib").zstdDecompressSync.name`},
	} {
		t.Run(p.coding.String()+" in "+p.program, func(t *testing.T) {
			path := program(t, p.program)
			if p.probe != "" && exec.Command(path, "-e", p.probe).Run() != nil {
				t.Skipf("needs %s with %v: this one is too old", p.program, p.coding)
			}
			var in, want []byte
			add := func(body, identity []byte) {
				if p.program == "node" {
					in = binary.LittleEndian.AppendUint32(in, uint32(len(body)))
				}
				in, want = append(in, body...), append(want, identity...)
			}
			for _, s := range snapshots {
				add(s.Body(p.coding), s.Body(Identity))
			}
			for _, size := range usageSizes {
				add(keyed(continued, p.coding, usageOf(size)), keyed(continued, Identity, usageOf(size)))
			}
			sameBytes(t, foreign(t, in, path, p.args...), want, "all bodies")
		})
	}
}

// The zstd program decodes a delta, with the earlier answer as the dictionary and as the file to patch.
func TestZstdProgramDecodesDeltas(t *testing.T) {
	path, s, dictionary := program(t, "zstd"), openWithDeltas(t), filepath.Join(t.TempDir(), "dictionary")
	earlier := s.publishOne(t, delta, answerOf(t, 1, 100_000))
	now := s.publishOne(t, delta, answerOf(t, 2, 100_000))
	must(t, os.WriteFile(dictionary, earlier.Body(Identity), 0o600))
	for _, with := range [][]string{{"-D", dictionary}, {"--patch-from=" + dictionary}} {
		got := foreign(t, now.Delta(announced(earlier)).Body, path, append(with, "-dcq", "--memory=8MB")...)
		sameBytes(t, got, now.Body(Identity), "%q", with)
	}
}
