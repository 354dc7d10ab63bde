package snapshots

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// quote returns a JSON string without its quotes.
func quote(random *rand.Rand, n int) string {
	switch random.IntN(5) {
	case 0:
		return strings.Repeat(string(rune('a'+random.IntN(3))), n) // the first match has the distance 1
	case 1:
		return strings.Repeat("abcdefgh"[:1+random.IntN(8)], n)[:n] // distances 1 to 8
	case 2:
		return string(document(n))[:n]
	}
	b := make([]byte, n)
	letters := 1 + random.IntN(60)
	for i := range b {
		b[i] = 'A' + byte(random.IntN(letters))
		if b[i] == '\\' {
			b[i] = ' '
		}
	}
	return string(b)
}

// randomText returns a JSON string in pieces of every kind, of which some stand in it more than once.
func randomText(t testing.TB, random *rand.Rand, size int) Text {
	var known Text
	text := Text{Plain([]byte(`"`))}
	for range 1 + random.IntN(8) {
		piece := []byte(strings.ReplaceAll(quote(random, random.IntN(size)), `"`, "'"))
		switch kind := random.IntN(5); {
		case kind == 0:
			known = append(known, Plain(piece))
		case kind == 1 && len(known) > 0:
			known = append(known, known[random.IntN(len(known))])
		case kind == 2:
			run := prefixes(t, random, piece)
			known = append(known, run[random.IntN(len(run))]...)
			if random.IntN(3) == 0 { // out of order
				known = append(known, run[len(run)-1][random.IntN(len(run[len(run)-1]))])
			}
		default:
			p, err := Compress(piece)
			must(t, err)
			known = append(known, p)
		}
		text = append(text, known[len(known)-1])
		if random.IntN(2) == 0 {
			text = append(text, known[random.IntN(len(known))])
		}
	}
	text = append(text, known...)
	return append(text, Plain([]byte(`"`)))
}

// checkPieces fails the test unless the snapshot of a text in pieces is that of its bytes, but for the compressed bytes.
func checkPieces(t testing.TB, name string, text Text, codings ...Coding) *Snapshot {
	t.Helper()
	z, err := NewSealer(meta())
	must(t, err)
	got := z.Seal(text, codings...)
	want, err := SealIn(text.Bytes(), meta(), codings...)
	must(t, err)
	if !text.Equal(got.Data()) || text.Equal(append(bytes.Clone(got.Data()), ' ')) || text.Equal(got.Data()[1:]) {
		t.Errorf("%s: Equal is wrong", name)
	}
	for c := range Codings {
		if got.ETag(c) != want.ETag(c) || got.Has(c) != want.Has(c) {
			t.Fatalf("%s: %v: tag %s, want %s", name, c, got.ETag(c), want.ETag(c))
		}
		if got.Has(c) && !bytes.Equal(unpack(t, c, got.Body(c)), want.Body(Identity)) {
			t.Fatalf("%s: %v body differs", name, c)
		}
		usage := []byte(`{"tier":"key"}`)
		if got.Has(c) && !bytes.Equal(unpack(t, c, got.AppendTail(bytes.Clone(got.Prefix(c)), c, usage)), want.AppendTail(bytes.Clone(want.Prefix(Identity)), Identity, usage)) {
			t.Fatalf("%s: %v body with another usage differs", name, c)
		}
	}
	if _, err := parse(got.bodies); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := got.verify(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return got
}

func TestSealOfPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		text := randomText(t, random, []int{10, 200, 5_000, 100_000}[i%4])
		checkPieces(t, fmt.Sprint("text ", i), text, Brotli, Zstd)
	}
	checkPieces(t, "one piece", Text{Plain(document(1000))}, Brotli, Zstd)
	large, err := Compress(document(1 << 20))
	must(t, err)
	checkPieces(t, "1 MB, twice", Text{Plain([]byte(`[`)), large, Plain([]byte(`,`)), large, Plain([]byte(`]`))}, Brotli, Zstd)
}

// prefixes returns the prefixes of up to 30 parts of a text.
func prefixes(t testing.TB, random *rand.Rand, text []byte) []Text {
	t.Helper()
	var parts [][]byte
	for n := 1 + random.IntN(30); n > 0; n-- {
		size := len(text) / n
		parts, text = append(parts, text[:size]), text[size:]
	}
	out, err := Prefixes(parts...)
	must(t, err)
	for i, prefix := range out {
		if want := bytes.Join(parts[:i+1], nil); !bytes.Equal(prefix.Bytes(), want) {
			t.Fatalf("prefix %d of %d is wrong", i, len(out))
		}
	}
	return out
}

func TestSealOfPrefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 30 {
		piece := []byte(strings.ReplaceAll(quote(random, random.IntN(60_000)), `"`, "'"))
		for j, prefix := range prefixes(t, random, piece) {
			checkPieces(t, fmt.Sprintf("text %d, prefix %d", i, j), append(append(Text{Plain([]byte(`"`))}, prefix...), Plain([]byte(`"`))))
		}
	}
	if out, err := Prefixes(); err != nil || len(out) > 0 {
		t.Errorf("%d prefixes of nothing, %v", len(out), err)
	}
}

// The usual programs decode the bodies.
func TestProgramsDecodePieces(t *testing.T) {
	p, err := Compress(document(50_000))
	must(t, err)
	s := checkPieces(t, "table", Text{Plain([]byte(`[`)), p, Plain([]byte(`,1,`)), p, Plain([]byte(`]`))}, Brotli, Zstd)
	for c, program := range map[Coding]string{Gzip: "gzip", Brotli: "brotli", Zstd: "zstd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not installed", program)
			continue
		}
		path := filepath.Join(t.TempDir(), "body")
		must(t, os.WriteFile(path, s.Body(c), 0o600))
		in, err := os.Open(path)
		must(t, err)
		defer in.Close()
		cmd := exec.Command(program, "-dc")
		cmd.Stdin = in
		if out, err := cmd.Output(); err != nil || !bytes.Equal(out, s.Body(Identity)) {
			t.Errorf("%s: %d bytes, %v", program, len(out), err)
		}
	}
}

// What repeats a distance that it has not set itself does not stand alone.
func TestStandAlone(t *testing.T) {
	for _, text := range []string{strings.Repeat("a", 1000), strings.Repeat("abcd", 300), strings.Repeat("abcdefgh", 300), string(document(5000))} {
		z, err := compress(Zstd, []byte(text), 0)
		must(t, err)
		blocks := z[len(streamHeads[Zstd]):]
		frame := append([]byte(streamHeads[Zstd]), zstdCopyOf(t, text)...)
		frame = append(append(frame, blocks...), 1, 0, 0)
		out, err := zstdDecoder.DecodeAll(frame, nil)
		right := err == nil && bytes.HasSuffix(out, []byte(text))
		if alone := standAlone(blocks, []byte(text)); alone && !right {
			t.Errorf("%.10s stands alone, but not behind other distances", text)
		}
	}
	if standAlone([]byte{byte(10<<3 | 4), 0, 0}, []byte("0123456789")) {
		t.Error("what does not decode stands alone")
	}
}

// zstdCopyOf returns blocks that set three distances of 300, 400 and 500.
func zstdCopyOf(t testing.TB, text string) (blocks []byte) {
	blocks = appendPlain(nil, Zstd, bytes.Repeat([]byte("0123456789"), 60+len(text)/10))
	for _, distance := range []int{300, 400, 500} {
		blocks = append(blocks, zstdCopy(minCopy, distance)...)
	}
	return blocks
}

func TestCopies(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{63, 64, 130, 131, 132, 255, 256, 257, 4098, 65_534, 65_535, 65_536, 65_600, 65_790, 65_791, 65_792, 131_070, 131_071, 200_000, 400_000} {
		p, err := Compress([]byte(strings.ReplaceAll(quote(random, n), `"`, "'")))
		must(t, err)
		checkPieces(t, fmt.Sprint(n, " bytes"), Text{Plain([]byte(`"`)), p, Plain([]byte(`x`)), p, p, Plain([]byte(`"`))}, Brotli, Zstd)
	}
}

// A sealer that has sealed some prefixes seals the others as one that has sealed none.
func TestSealerReusesSums(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	runs := [][]Text{prefixes(t, random, document(9000)), prefixes(t, random, document(3000))}
	z, err := NewSealer(meta())
	must(t, err)
	for range 200 {
		run := runs[random.IntN(len(runs))]
		text := append(Text{}, run[random.IntN(len(run))]...)
		if random.IntN(4) == 0 {
			text = append(Text{Plain([]byte("  "))}, text...)
		}
		if text = append(text, Plain([]byte("]}"))); random.IntN(4) == 0 {
			text = append(text, run[len(run)-1]...)
		}
		if got, want := z.Seal(text).Meta.Receipt.DataSHA256, digest(text.Bytes()); got != want {
			t.Fatalf("digest %s, want %s", got, want)
		}
	}
}
