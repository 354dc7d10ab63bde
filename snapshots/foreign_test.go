package snapshots

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// foreign decodes bodies in one run of a foreign program. Each body follows its length. A single body has no length.
func foreign(t *testing.T, bodies [][]byte, program string, args ...string) [][]byte {
	t.Helper()
	var in, stderr bytes.Buffer
	bare := len(bodies) == 1
	for _, b := range bodies {
		if !bare {
			binary.Write(&in, binary.LittleEndian, uint32(len(b)))
		}
		in.Write(b)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if bare {
		return [][]byte{out}
	}
	var decoded [][]byte
	for len(out) >= 4 {
		n := int(binary.LittleEndian.Uint32(out)) + 4
		if n > len(out) {
			t.Fatal("the output is cut off")
		}
		decoded, out = append(decoded, out[4:n]), out[n:]
	}
	return decoded
}

const inNode = `
const zlib = require("zlib"), unpack = zlib[process.argv[1]]
let b = require("fs").readFileSync(0)
const out = []
for (; b.length; ) {
  const n = b.readUInt32LE(0), {buffer, engine} = unpack(b.subarray(4, 4 + n), {info: true}), size = Buffer.alloc(4)
  if (engine.bytesWritten !== n) throw new Error("took " + engine.bytesWritten + " of " + n + " bytes")
  size.writeUInt32LE(buffer.length)
  out.push(size, buffer)
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
		{Zstd, "zstd", []string{"-dc"}, ""},
		{Zstd, "node", []string{"-e", inNode, "zstdDecompressSync"}, `require("zlib").zstdDecompressSync.name`},
	} {
		t.Run(p.coding.String()+" in "+p.program, func(t *testing.T) {
			path := program(t, p.program)
			if p.probe != "" && exec.Command(path, "-e", p.probe).Run() != nil {
				t.Skipf("needs %s with %v: this one is too old", p.program, p.coding)
			}
			var bodies, want [][]byte
			for _, s := range snapshots {
				bodies, want = append(bodies, s.Body(p.coding)), append(want, s.Body(Identity))
			}
			for _, size := range usageSizes {
				bodies = append(bodies, keyed(continued, p.coding, usageOf(size)))
				want = append(want, keyed(continued, Identity, usageOf(size)))
			}
			if p.program == "zstd" { // decodes frame after frame, and knows no lengths
				bodies, want = [][]byte{bytes.Join(bodies, nil)}, [][]byte{bytes.Join(want, nil)}
			}
			got := foreign(t, bodies, path, p.args...)
			if len(got) != len(want) {
				t.Fatalf("%d bodies, want %d", len(got), len(want))
			}
			for i := range got {
				failIf(t, !bytes.Equal(got[i], want[i]), "body %d: %d bytes, want %d", i, len(got[i]), len(want[i]))
			}
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
		got := foreign(t, [][]byte{now.Delta(announced(earlier)).Body}, path, append(with, "-dcq", "--memory=8MB")...)
		failIf(t, !bytes.Equal(got[0], now.Body(Identity)), "%q: %d bytes, want %d", with, len(got[0]), len(now.Body(Identity)))
	}
}
