package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"strikecache/snapshots"
)

const plenty = 1 << 30

func open(t testing.TB, dir string, maxBytes int64) *Archive {
	t.Helper()
	a, err := Open(dir, maxBytes, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// document returns a document whose bytes do not compress.
func document(seed uint64, size int) *Document {
	body := make([]byte, size)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	return &Document{Input{Name: fmt.Sprintf("options/%d.json", seed), SHA256: hexDigest(body)}, body, nil}
}

func recipe(product, date string, documents ...*Document) Recipe {
	r := Recipe{Product: product, Date: date, Method: "test/1", ComputedAt: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC), Parameters: []byte(`{"rate":1.5}`)}
	for _, d := range documents {
		r.Inputs = append(r.Inputs, d.Input)
	}
	return r
}

func put(t testing.TB, a *Archive, product, date string, documents ...*Document) {
	t.Helper()
	if err := a.Put([]Recipe{recipe(product, date, documents...)}, documents); err != nil {
		t.Fatal(err)
	}
}

// files returns the names of the files in the directory of an archive, and the Name of each known document. It checks that
// the archive knows their size.
func files(t testing.TB, a *Archive, known ...*Document) []string {
	t.Helper()
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		name := e.Name()
		for _, d := range known {
			if name == d.SHA256+documentSuffix {
				name = d.Name
			}
		}
		out = append(out, name)
	}
	if a.bytes() != size {
		t.Errorf("says %d bytes, the directory has %d", a.bytes(), size)
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, when string, got []string, wanted ...string) {
	t.Helper()
	if slices.Sort(wanted); !slices.Equal(got, wanted) {
		t.Errorf("%s: %q, want %q", when, got, wanted)
	}
}

func TestWhatIsPutIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "archive")
	a := open(t, dir, plenty)
	chain, quote := document(1, 100_000), document(2, 300)
	put(t, a, "gex/spx", "2026-11-20", chain, quote)
	r, err := ReadRecipe(dir, "gex/spx", "2026-11-20")
	if err != nil {
		t.Fatal(err)
	}
	if wanted := recipe("gex/spx", "2026-11-20", chain, quote); fmt.Sprint(*r) != fmt.Sprint(wanted) {
		t.Errorf("read %+v, want %+v", *r, wanted)
	}
	for _, d := range []*Document{chain, quote} {
		if body, err := ReadDocument(dir, d.SHA256); err != nil || string(body) != string(d.Body) {
			t.Errorf("%s: %d bytes, %v", d.Name, len(body), err)
		}
	}
	if _, err := ReadRecipe(dir, "gex/spx", "2026-11-19"); !errors.Is(err, ErrGone) {
		t.Errorf("another date: %v", err)
	}
	if _, err := ReadDocument(dir, strings.Repeat("0", 64)); !errors.Is(err, ErrGone) {
		t.Errorf("another document: %v", err)
	}
	if !a.Holds("gex/spx", "2026-11-20", []string{chain.SHA256, quote.SHA256}) || a.Holds("gex/spx", "2026-11-20", []string{quote.SHA256}) ||
		a.Holds("gex/spx", "2026-11-19", []string{chain.SHA256}) {
		t.Error("Holds says otherwise")
	}
}

// What the upstream sent as gzip is stored as it came.
func TestGzipOfTheUpstreamIsKept(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, plenty)
	text := bytes.Repeat([]byte(`{"bid":1.25,"ask":1.3}`), 1000)
	packed := func(level, members int) []byte {
		var b bytes.Buffer
		for i := range members {
			z, _ := gzip.NewWriterLevel(&b, level)
			z.Comment = strconv.Itoa(i)
			z.Write(text[len(text)*i/members : len(text)*(i+1)/members])
			z.Close()
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name   string
		body   []byte
		gzip   []byte
		stored bool
	}{
		{"one member", text, packed(9, 1), true},
		{"many members", text[:len(text):len(text)], packed(1, 7), true},
		{"none", document(8, 100).Body, nil, false},
	} {
		d := &Document{Input{Name: "options/_SPX.json", SHA256: hexDigest(c.body)}, c.body, c.gzip}
		if c.stored {
			d.Body = nil
		}
		put(t, a, "gex/spx", "2026-11-20", d)
		file, err := os.ReadFile(filepath.Join(dir, d.SHA256+".gz"))
		if err != nil || bytes.Equal(file, c.gzip) != c.stored {
			t.Errorf("%s: %d bytes are stored, %d were sent, %v", c.name, len(file), len(c.gzip), err)
		}
		if body, err := a.Body(d.Input); err != nil || !bytes.Equal(body, c.body) {
			t.Errorf("%s: read %d bytes, %v", c.name, len(body), err)
		}
		put(t, a, "gex/spx", "2026-11-20", document(1, 10)) // removes it
	}
}

// Documents of earlier versions, in zstd, are read, named, verified, held and removed as others are.
func TestOlderDocuments(t *testing.T) {
	data := t.TempDir()
	dir := Dir(data, "cboe")
	one, two := document(1, 5000), document(2, 5000)
	put(t, open(t, dir, plenty), "gex/spx", "2026-11-19", one)
	z, _ := zstd.NewWriter(nil)
	older := filepath.Join(dir, one.SHA256+".zst")
	if err := os.Rename(filepath.Join(dir, one.SHA256+".gz"), older); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(older, z.EncodeAll(one.Body, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	a := open(t, dir, plenty)
	put(t, a, "spx-max-pain", "2026-11-19", one)
	if body, err := a.Body(one.Input); err != nil || !bytes.Equal(body, one.Body) || !a.Holds("spx-max-pain", "2026-11-19", []string{one.SHA256}) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if _, err := os.Stat(filepath.Join(dir, one.SHA256+".gz")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is stored twice: %v", err)
	}
	if n, bad, err := Verify(data); n != 3 || bad != nil || err != nil {
		t.Errorf("%d files, %v bad, %v", n, bad, err)
	}
	newer := filepath.Join(dir, one.SHA256+".gz") // as after a way back to an earlier version, and forth again
	if err := os.WriteFile(newer, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if body, err := a.Body(one.Input); err != nil || !bytes.Equal(body, one.Body) {
		t.Errorf("beside a damaged one: %d bytes, %v", len(body), err)
	}
	if _, bad, _ := Verify(data); len(bad) != 1 || bad[0].Path != newer {
		t.Errorf("a damaged one beside it: %v", bad)
	}
	if err := os.Remove(newer); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(older, one.Body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, bad, _ := Verify(data); len(bad) != 1 || !errors.Is(bad[0].Err, ErrAltered) {
		t.Errorf("an altered one: %v", bad)
	}
	put(t, a, "gex/spx", "2026-11-19", two)
	put(t, a, "spx-max-pain", "2026-11-19", two)
	if _, err := os.Stat(older); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no recipe names it: %v", err)
	}
}

// A new recipe replaces the older one of its product and date. A document that only the older one named is removed; a
// document that another recipe names stays.
func TestDocumentsAreStoredOnceAndShared(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, plenty)
	one, two, shared := document(1, 1000), document(2, 1000), document(3, 1000)
	all := []*Document{one, two, shared}
	put(t, a, "gex/spx", "2026-11-19", one, shared)
	put(t, a, "spx-max-pain", "2026-11-19", one)
	put(t, a, "gex/spx", "2026-11-19", one, shared)
	want(t, "put twice", files(t, a, all...), "options/1.json", "options/3.json", "2026-11-19_gex-spx.json", "2026-11-19_spx-max-pain.json")
	put(t, a, "gex/spx", "2026-11-19", two, &Document{Input: shared.Input}) // an earlier put had its bytes
	want(t, "the older recipe is replaced", files(t, a, all...), "options/1.json", "options/2.json", "options/3.json", "2026-11-19_gex-spx.json", "2026-11-19_spx-max-pain.json")
	put(t, a, "spx-max-pain", "2026-11-19", two)
	put(t, a, "gex/spx", "2026-11-20", shared)
	want(t, "no recipe names 1", files(t, a, all...), "options/2.json", "options/3.json", "2026-11-19_gex-spx.json", "2026-11-19_spx-max-pain.json", "2026-11-20_gex-spx.json")
	a = open(t, dir, plenty)
	a.Expire("2026-11-20")
	want(t, "the recipe that stays names 3", files(t, a, all...), "options/3.json", "2026-11-20_gex-spx.json")
}

func TestBoundsEvictOldestFirst(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, 35_000)
	days := []string{"2026-11-16", "2026-11-17", "2026-11-18", "2026-11-19", "2026-11-20"}
	for i, date := range days {
		put(t, a, "gex/spx", date, document(uint64(i), 10_000))
		if a.bytes() > 35_000 {
			t.Errorf("%s: %d bytes", date, a.bytes())
		}
	}
	want(t, "three fit", a.dates(), days[2:]...)
	a.Expire("2026-11-19")
	want(t, "by age", a.dates(), days[3:]...)
	a.Expire("2027-01-01")
	want(t, "the newest stays", a.dates(), days[4])
	if got := len(files(t, a)); got != 2 {
		t.Errorf("%d files, want a recipe and a document", got)
	}
	small := open(t, dir, 100)
	put(t, small, "gex/spx", "2026-11-21", document(9, 1000))
	want(t, "nothing fits", files(t, small))
}

// A recipe of a newer version cannot be read and may name any document, so all documents stay. The unfinished file of a
// killed process is removed.
func TestUnreadableRecipesKeepDocuments(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, plenty)
	one, two := document(1, 1000), document(2, 1000)
	put(t, a, "gex/spx", "2026-11-19", one)
	path := filepath.Join(dir, "2026-11-19_gex-spx.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(b), `"format":2`, `"format":3`, 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecipe(dir, "gex/spx", "2026-11-19"); !errors.Is(err, snapshots.ErrNewerFormat) {
		t.Errorf("read with %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".tmp-x-1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	a = open(t, dir, plenty)
	put(t, a, "gex/spx", "2026-11-20", two)
	want(t, "both stay", files(t, a, one, two), "options/1.json", "options/2.json", "2026-11-19_gex-spx.json", "2026-11-20_gex-spx.json")
}

func TestAlteredFilesAreDetected(t *testing.T) {
	data := t.TempDir()
	dir := Dir(data, "simulated")
	one := document(1, 5000)
	put(t, open(t, dir, plenty), "gex/spx", "2026-11-19", one)
	if n, bad, err := Verify(data); n != 2 || bad != nil || err != nil {
		t.Fatalf("%d files, %v bad, %v", n, bad, err)
	}
	for name, read := range map[string]func() error{
		"2026-11-19_gex-spx.json":   func() error { _, err := ReadRecipe(dir, "gex/spx", "2026-11-19"); return err },
		one.SHA256 + documentSuffix: func() error { _, err := ReadDocument(dir, one.SHA256); return err },
	} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flipped := slices.Clone(whole)
		flipped[len(flipped)/2] ^= 1
		for how, b := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)-9], "empty": {}} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read(); !errors.Is(err, ErrAltered) {
				t.Errorf("%s, %s: %v", name, how, err)
			}
			if _, bad, err := Verify(data); len(bad) != 1 || bad[0].Path != path || err != nil {
				t.Errorf("%s, %s: verify finds %v, %v", name, how, bad, err)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	moved := filepath.Join(dir, "2026-11-18_gex-spx.json")
	if err := os.Rename(filepath.Join(dir, "2026-11-19_gex-spx.json"), moved); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecipe(dir, "gex/spx", "2026-11-18"); !errors.Is(err, ErrAltered) {
		t.Errorf("a recipe under another date: %v", err)
	}
}

// disk is a disk on which some writes succeed. All later ones fail and leave the file as it was.
type disk struct {
	left   int // writes that succeed; -1: all
	failed int
}

func (d *disk) write(batch []snapshots.Write) (errs []error) {
	for _, w := range batch {
		if d.left == 0 {
			d.failed++
			errs = append(errs, syscall.ENOSPC)
			continue
		}
		d.left--
		errs = append(errs, snapshots.WriteFile(w.Dir, w.Name, w.Body))
	}
	return errs
}

// On a full disk the older recipe stays whole. Only the newest recipe and its document wait in memory. They are written as
// soon as there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir, plenty)
	old := document(1, 1000)
	put(t, a, "gex/spx", "2026-11-20", old)
	full := &disk{}
	a.write = full.write
	var newest *Document
	for i := range uint64(20) {
		newest = document(10+i, 1000)
		if err := a.Put([]Recipe{recipe("gex/spx", "2026-11-20", newest)}, []*Document{newest}); !errors.Is(err, syscall.ENOSPC) || !errors.Is(a.Err(), syscall.ENOSPC) {
			t.Fatalf("put with %v, error %v", err, a.Err())
		}
		if len(a.pending) != 2 { // the newest recipe and its document
			t.Fatalf("%d files are pending", len(a.pending))
		}
	}
	if full.failed != 20 {
		t.Fatalf("%d writes failed", full.failed)
	}
	if named := namedBy(t, dir, "2026-11-20_gex-spx.json"); named != old.SHA256 {
		t.Errorf("the recipe on the full disk names %s", named)
	}
	full.left = -1
	put(t, a, "vix-term-structure", "2026-11-20", document(2, 100))
	if a.Err() != nil {
		t.Errorf("still %v", a.Err())
	}
	if named := namedBy(t, dir, "2026-11-20_gex-spx.json"); named != newest.SHA256 {
		t.Errorf("the recipe after the outage names %s", named)
	}
	if _, err := ReadDocument(dir, old.SHA256); !errors.Is(err, ErrGone) {
		t.Errorf("the superseded document: %v", err)
	}
}

// Whatever write a crash comes before, the archive has the inputs of the answer that is in the file of the date: of the old
// answer until the file is written, which is after the recipe with the suffix, of the new answer from then on.
func TestFaultCrashWhileAFileIsReplaced(t *testing.T) {
	for writes := 0; ; writes++ {
		dir := t.TempDir()
		a := open(t, dir, plenty)
		old, replaced := document(1, 1000), document(2, 1000)
		put(t, a, "gex/spx", "2026-11-20", old)
		d := &disk{left: writes}
		a.write = d.write
		inFile := old
		if a.Put([]Recipe{recipe("gex/spx"+Next, "2026-11-20", replaced)}, []*Document{replaced}) == nil {
			inFile = replaced
		}
		for range 2 { // as the crash leaves the directory, and as the next start leaves it
			found := false
			for _, product := range []string{"gex/spx", "gex/spx" + Next} {
				if r, err := ReadRecipe(dir, product, "2026-11-20"); err == nil && r.Inputs[0].SHA256 == inFile.SHA256 {
					_, err := ReadDocument(dir, inFile.SHA256)
					found = err == nil
				}
			}
			if !found {
				t.Errorf("crash after %d writes: the inputs of %s are gone", writes, inFile.Name)
			}
			if d.failed == 0 && a.Put([]Recipe{recipe("gex/spx", "2026-11-20", replaced)}, nil) == nil {
				want(t, "no crash", files(t, a, old, replaced), "options/2.json", "2026-11-20_gex-spx.json")
				return
			}
			a = open(t, dir, plenty)
			if !a.Holds("gex/spx", "2026-11-20", []string{inFile.SHA256}) {
				t.Errorf("crash after %d writes: the next start lacks the inputs of %s", writes, inFile.Name)
			}
		}
	}
}

// namedBy reads a recipe and all its documents, and returns their digests.
func namedBy(t testing.TB, dir, file string) string {
	t.Helper()
	r, err := readRecipe(dir, file)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return ""
	}
	for _, digest := range r.digests() {
		if _, err := ReadDocument(dir, digest); err != nil {
			t.Errorf("%s: document %s: %v", file, digest, err)
		}
	}
	return strings.Join(r.digests(), " ")
}

// A crash may come before any write: every recipe on the disk is then an intact one that was put, with all its documents.
// The next start removes the documents that no recipe names.
func TestFaultCrashBetweenArchiveWrites(t *testing.T) {
	crashes := 0
	rounds := 20
	if os.Getenv("STRIKECACHE_FULL") != "" {
		rounds = 200
	}
	for n := range rounds {
		random := rand.New(rand.NewPCG(uint64(n), 1))
		dir := t.TempDir()
		acknowledged, attempted := map[string]bool{}, map[string][]string{} // attempted: recipe → digests since the last success
		for round := range 6 {
			a := open(t, dir, plenty)
			d := &disk{left: random.IntN(12)}
			a.write = d.write
			for step := 0; d.failed == 0 && step < 12; step++ {
				product, date := []string{"gex/spx", "spx-max-pain"}[random.IntN(2)], fmt.Sprintf("2026-11-1%d", random.IntN(3))
				documents := []*Document{document(uint64(random.IntN(8)), 200), document(uint64(100*round+step+1000), 200)}
				key := recipeFile(product, date)
				r := recipe(product, date, documents...)
				digests := strings.Join(r.digests(), " ")
				attempted[key] = append(attempted[key], digests)
				if err := a.Put([]Recipe{r}, documents); err == nil {
					acknowledged[key], attempted[key] = true, []string{digests}
				}
			}
			crashes += d.failed // the process ends here, without Close
			for file := range acknowledged {
				if named := namedBy(t, dir, file); !slices.Contains(attempted[file], named) {
					t.Errorf("%s has none of the recipes put since the last successful put", file)
				}
			}
		}
		a := open(t, dir, plenty)
		for file := range a.files {
			if digest := documentDigest(file); digest != "" && !a.named()[digest] {
				t.Errorf("run %d: no recipe names %s", n, file)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if crashes == 0 {
		t.Fatal("no crash came")
	}
	t.Logf("figure: archive: %d crashes between writes, no recipe torn or without its documents", crashes)
}
