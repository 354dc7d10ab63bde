package snapshots

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// gunzip unpacks exactly one member.
func gunzip(t testing.TB, b []byte) []byte {
	t.Helper()
	in := bytes.NewReader(b)
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if in.Len() > 0 {
		t.Fatalf("%d bytes after the member", in.Len())
	}
	return out
}

// unzstd unpacks exactly one frame, without checksum, that any browser takes.
func unzstd(t testing.TB, b []byte) []byte {
	t.Helper()
	var h zstd.Header
	if err := h.Decode(b); err != nil || h.HasCheckSum || h.HasFCS || h.SingleSegment || h.WindowSize > 8<<20 {
		t.Fatalf("frame header %+v, %v", h, err)
	}
	for at := h.HeaderSize; ; {
		if at+3 > len(b) {
			t.Fatalf("no last block in %d bytes", len(b))
		}
		block := uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16
		size := int(block >> 3)
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if at += 3 + size; block&1 == 1 {
			if at != len(b) {
				t.Fatalf("the last block ends after %d of %d bytes", at, len(b))
			}
			break
		}
	}
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpack decodes a whole body strictly: nothing may be missing or follow.
func unpack(t testing.TB, c Coding, b []byte) []byte {
	t.Helper()
	switch c {
	case Gzip:
		return gunzip(t, b)
	case Brotli:
		out, err := io.ReadAll(brotli.NewReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		return out
	case Zstd:
		return unzstd(t, b)
	}
	return b
}

// noise is a JSON string of so many bytes that hardly compresses.
func noise(size int) string {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	b := bytes.Repeat([]byte{'"'}, max(size, 2))
	for i := 1; i < len(b)-1; i++ {
		for b[i] == '"' || b[i] == '\\' || b[i] == 0x7f {
			b[i] = 0x20 + byte(r.IntN(96))
		}
	}
	return string(b)
}

// texts are data of every kind, around the sizes at which compressors begin new blocks too.
func texts(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{"null": "null", "empty": `""`, "digit": "0", "1 MB of one letter": `"` + strings.Repeat("a", 1<<20) + `"`, "1 MB of noise": noise(1 << 20)}
	for _, size := range []int{20, 4_000, 100_000, 1 << 20} {
		out[fmt.Sprintf("table of %d", size)] = string(document(size))
	}
	frame := len(sealed(t, `""`).Prefix(Identity)) - 2
	for _, block := range []int{1 << 15, 1<<16 - 1, 1 << 16, 1 << 17, 1 << 18} {
		for _, size := range []int{block - 1, block, block + 1} {
			out[fmt.Sprintf("noise, prefix of %d", size)] = noise(size - frame)
			out[fmt.Sprintf("letters, prefix of %d", size)] = `"` + strings.Repeat("ab", size)[:size-frame-2] + `"`
		}
	}
	return out
}

func TestEveryCodingIsTheIdentityBody(t *testing.T) {
	for name, data := range texts(t) {
		s := sealed(t, data)
		for c := range Codings {
			if !s.Has(c) {
				t.Errorf("%s: not sealed in %v", name, c)
			}
			if got := unpack(t, c, s.Body(c)); !bytes.Equal(got, s.Body(Identity)) {
				t.Errorf("%s: %v unpacks to %d bytes, want %d", name, c, len(got), len(s.Body(Identity)))
			}
			if p := s.Prefix(c); len(p) == 0 || &p[0] != &s.Body(c)[0] || len(p) >= len(s.Body(c)) || cap(p) != len(p) {
				t.Errorf("%s: %v prefix of %d bytes, room for %d, is no part of the body", name, c, len(p), cap(p))
			}
			if limit := len(s.Body(Identity)) / 2; c != Identity && strings.HasPrefix(name, "table") && len(data) >= 4000 && len(s.Body(c)) > limit {
				t.Errorf("%s: %d bytes in %v take %d", name, len(s.Body(Identity)), c, len(s.Body(c)))
			}
		}
	}
}

func sealedIn(t testing.TB, data string, codings ...Coding) *Snapshot {
	t.Helper()
	s, err := SealIn([]byte(data), meta(), codings...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealIn(t *testing.T) {
	whole := sealed(t, `{"a":1}`)
	for _, in := range [][]Coding{nil, {Brotli}, {Zstd}, {Identity, Gzip}, {Zstd, Brotli, Zstd}, {Codings}} {
		s := sealedIn(t, `{"a":1}`, in...)
		again, err := s.Reseal(s.Meta)
		if err != nil {
			t.Fatal(err)
		}
		sameSnapshot(t, fmt.Sprintf("again in %v", in), again, s)
		for c := range Codings {
			want := c <= Gzip || slices.Contains(in, c)
			if s.Has(c) != want || (s.Body(c) != nil) != want || (s.Prefix(c) != nil) != want {
				t.Errorf("in %v: has %v: %t", in, c, s.Has(c))
			}
			if want && !bytes.Equal(s.Body(c), whole.Body(c)) {
				t.Errorf("in %v: %v is another body", in, c)
			}
			if got := string(s.AppendTail([]byte("x"), c, []byte("1"))); !want && got != "x" {
				t.Errorf("in %v: tail %q in %v", in, got, c)
			}
			if s.ETag(c) != whole.ETag(c) {
				t.Errorf("in %v: tag %s in %v", in, s.ETag(c), c)
			}
		}
	}
}

// What decodes to more than it may is refused, however small it is.
func TestDecompressIsBounded(t *testing.T) {
	s := sealed(t, `"`+strings.Repeat("a", 1<<20)+`"`)
	size := len(s.Body(Identity))
	for c := range Codings {
		if out, err := decompress(c, s.Body(c), size); err != nil || !bytes.Equal(out, s.Body(Identity)) {
			t.Errorf("%v: %d bytes, %v", c, len(out), err)
		}
		if out, err := decompress(c, s.Body(c), size-1); err == nil {
			t.Errorf("%v: %d bytes where %d are allowed", c, len(out), size-1)
		}
	}
}

// foreign decodes bodies with a program that is not ours: all in one run, each behind its length; one alone
// without.
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

const inPython = `
import sys, struct, zlib
b, out = sys.stdin.buffer.read(), sys.stdout.buffer
while b:
    n = struct.unpack("<I", b[:4])[0]
    z = zlib.decompressobj(31)
    d = z.decompress(b[4:4+n]) + z.flush()
    if not z.eof or z.unused_data:
        sys.exit("not one whole member")
    out.write(struct.pack("<I", len(d)) + d)
    b = b[4+n:]
`

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

// Browsers and tools decode what we send; none of these programs shares a line with our encoders.
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
		{Gzip, "python3", []string{"-c", inPython}, ""},
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
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("body %d: %d bytes, want %d", i, len(got[i]), len(want[i]))
				}
			}
		})
	}
}
