package snapshots

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-json"
)

// storedForms are the forms in which products are stored.
func storedForms(t testing.TB) map[string]File {
	t.Helper()
	apart := variants(t)
	apart.Default = sealed(t, `{"all":true}`)
	one := sealed(t, `{"expiration":"only"}`)
	mixed := variants(t)
	mixed.Variants["2026-11-27"] = sealedIn(t, `{"expiration":"first"}`)
	mixed.Variants["2027-01-15"] = sealedIn(t, `{"expiration":"last"}`, Zstd)
	forms := variants(t)
	forms.Variants["2026-11-27"] = formed(t, forms.Variants["2026-11-27"])
	forms.Variants["2026-12-18"] = formed(t, forms.Default)
	forms.Default = forms.Variants["2026-12-18"]
	return map[string]File{
		"one": single(t, `{"a":1}`),
		"inputs": {Edition: &Edition{Default: sealed(t, `{"a":1}`)}, Inputs: []StoredInput{
			{Input: Input{`"<é>` + "\n", "00"}, Received: asOf, Generated: asOf.Add(time.Second), FileDate: friday},
			{Input: Input{"state/x", "11"}},
		}},
		"summary":                {Edition: &Edition{Default: sealed(t, `{"a":1}`)}, Summary: []byte("[1,\n2]\x00")},
		"variants":               {Edition: variants(t)},
		"variants, with all":     {Edition: variants(t), Build: "abc", Summary: []byte(`{"b":2}`)},
		"a default of its own":   {Edition: apart, Summary: []byte(`1`)},
		"one variant, by itself": {Edition: &Edition{Default: one, Variants: map[string]*Snapshot{"20": one}}},
		"one under many names":   {Edition: &Edition{Default: one, Variants: map[string]*Snapshot{"20": one, "50": one, "100": one}}},
		"fewer codings":          {Edition: mixed, Summary: []byte(`1`)},
		"large":                  single(t, string(document(300_000))),
		"null":                   single(t, `null`),
		"forms":                  {Edition: forms, Summary: []byte(`1`)},
	}
}

// A file reads as it was written, and equal content gives equal bytes. `sed -n 2p FILE` reads the default answer.
func TestFileRoundTrip(t *testing.T) {
	for name, f := range storedForms(t) {
		b := encoded(t, pain, f)
		got, err := decodeFile(b, keyOf(pain))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sameFile(t, got, f)
		for range 10 { // maps have no order
			if !bytes.Equal(encoded(t, pain, got), b) || !bytes.Equal(encoded(t, pain, f), b) {
				t.Fatalf("%s: the same file has other bytes", name)
			}
		}
		lines := bytes.SplitN(b, []byte{'\n'}, 3)
		failIf(t, len(lines) != 3 || !bytes.Equal(lines[1], f.Edition.Default.Body(Identity)), "%s: line 2 is %.200q", name, lines[1])
		rest, ok := bytes.CutPrefix(b, []byte(`{"format":1,"sha256":"`))
		if !ok || sha(rest[64:]) != string(rest[:64]) || !bytes.HasPrefix(rest[64:], []byte(`","product":"`+pain+`","date":"`+friday+`"`)) {
			t.Errorf("%s: line 1 is %s", name, lines[0])
		}
		// The default is one of the variants, not a copy: both cost memory once.
		first := slices.IndexFunc(f.Edition.Names(), func(n string) bool { return f.Edition.Variants[n] == f.Edition.Default })
		failIf(t, first >= 0 && got.Edition.Default != got.Edition.Variants[f.Edition.Names()[first]], "%s: the default is a copy of its variant", name)
	}
}

func TestFilesWithoutADefault(t *testing.T) {
	for _, e := range []*Edition{nil, {}} {
		failIf(t, open(t, t.TempDir()).Save([]File{{Product: gamma, Edition: e, Current: true}}, nil) == nil, "saved %v", e)
	}
}

func refused(err error) bool { return errors.Is(err, ErrTorn) || errors.Is(err, ErrNewerFormat) }

// reframed returns a file with an altered header and the right digest.
func reframed(t testing.TB, payload string, alter func(*fileHeader)) []byte {
	t.Helper()
	h := fileHeader{Format: fileFormat, SHA256: strings.Repeat("0", digestLen), Product: gamma, Date: friday}
	alter(&h)
	line, err := json.Marshal(h)
	must(t, err)
	b := []byte(string(line) + "\n" + payload)
	at := bytes.Index(b, []byte(digestMark)) + len(digestMark)
	copy(b[at:], Digest(b[at+digestLen:]))
	return b
}

func TestForeignFiles(t *testing.T) {
	whole := string(encoded(t, gamma, single(t, `{"a":1}`)))
	s := sealed(t, `{"a":1}`)
	body, packed, br := string(s.Body(Identity)), string(s.Body(Gzip)), string(s.Body(Brotli))
	other := string(sealed(t, `{"a":2}`).Body(Gzip))
	entry := func(identity, gzip int) func(*fileHeader) {
		return func(h *fileHeader) { h.Entries = []fileEntry{{Lengths: [Codings]int{identity, gzip}}} }
	}
	for name, b := range map[string]string{
		"empty": "", "a newline": "\n", "text": "hello\nworld\n", "JSON": "{}\n{}", "a body": body, "a number": "1\n", "null": "null\n",
		"format 0": strings.Replace(whole, `"format":1`, `"format":0`, 1), "format -1": strings.Replace(whole, `"format":1`, `"format":-1`, 1),
		"no format":         strings.Replace(whole, `"format":1,`, ``, 1),
		"an overflow":       strings.Replace(whole, `"format":1`, `"format":18446744073709551617`, 1),
		"a second value":    strings.Replace(whole, "\n", "{}\n", 1),
		"another product":   string(encoded(t, pain, single(t, `{"a":1}`))),
		"no digest":         strings.Replace(whole, `"sha256"`, `"sha255"`, 1),
		"no entries":        string(reframed(t, body+"\n"+packed, func(*fileHeader) {})),
		"no body":           string(reframed(t, "", entry(0, 0))),
		"a short body":      string(reframed(t, body+"\n"+packed, entry(len(body)-1, len(packed)))),
		"past the end":      string(reframed(t, body+"\n"+packed, entry(math.MaxInt, len(packed)))),
		"a negative length": string(reframed(t, body+"\n"+packed, entry(-1, len(packed)))),
		"another envelope":  string(reframed(t, `{"data":1,"success":true}`+"\n", entry(25, 0))),
		"another beginning": string(reframed(t, strings.Replace(body, "success", "failure", 1)+"\n"+packed, entry(len(body), len(packed)))),
		"altered data":      string(reframed(t, strings.Replace(body, `"a":1`, `"a":2`, 1)+"\n"+packed, entry(len(body), len(packed)))),
		"no gzip": string(reframed(t, body+"\n"+packed+"garbage", func(h *fileHeader) {
			h.Entries = []fileEntry{{Lengths: [Codings]int{len(body), len(packed)}}, {Name: "20", Lengths: [Codings]int{Gzip: 7}}}
		})),
		"half a gzip": string(reframed(t, body+"\n"+packed+packed, func(h *fileHeader) {
			h.Entries = []fileEntry{{Lengths: [Codings]int{len(body), len(packed)}}, {Name: "20", Lengths: [Codings]int{Gzip: len(packed) - 1}}}
		})),
		"an ended gzip":  string(reframed(t, body+"\n"+ended(t, body), entry(len(body), len(ended(t, body))))),
		"gzip of others": string(reframed(t, body+"\n"+other, entry(len(body), len(other)))),
		"gzip alone":     string(reframed(t, "\n"+packed[:len(packed)-1], entry(0, len(packed)-1))),
		"no gzip at all": string(reframed(t, body+"\n", entry(len(body), 0))),
		"br without end": string(reframed(t, body+"\n"+packed+br[:len(br)-1], func(h *fileHeader) {
			h.Entries = []fileEntry{{Lengths: [Codings]int{len(body), len(packed), len(br) - 1}}}
		})),
	} {
		if f, err := decodeFile([]byte(b), keyOf(gamma)); !errors.Is(err, ErrTorn) {
			t.Errorf("%s: %v, %v", name, f.Edition, err)
		}
	}
	for _, format := range []string{"2", "10", "9223372036854775807"} {
		_, err := decodeFile([]byte(strings.Replace(whole, `"format":1`, `"format":`+format, 1)), keyOf(gamma))
		failIf(t, !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), format), "format %s: %v", format, err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	fails(t, second(readFile(filepath.Join(dir, "none"))), os.ErrNotExist, "no file")
	fails(t, second(readFile(dir)), ErrTorn, "a directory")
	path := filepath.Join(dir, "file")
	for size, want := range map[int64]error{0: nil, 1000: nil, MaxTransfer + 1: ErrTorn} {
		must(t, os.WriteFile(path, nil, 0o644))
		must(t, os.Truncate(path, size)) // a hole: takes no room on the disk
		if b, err := readFile(path); !errors.Is(err, want) || want == nil && int64(len(b)) != size {
			t.Errorf("%d bytes: %d, %v", size, len(b), err)
		}
	}
	if _, err := os.Stat("/dev/zero"); err == nil {
		fails(t, second(readFile("/dev/zero")), ErrTorn, "a device") // reading it would never end
	}
}

// ended is a gzip stream that ends as gzip writers end it: no tail can replace its end.
func ended(t testing.TB, body string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(body))
	z.Close()
	return b.String()
}
