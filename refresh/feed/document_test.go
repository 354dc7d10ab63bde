package refresh

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"strikecache/compute"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
)

// packed returns a text in gzip, with empty blocks before it.
func packed(t *testing.T, text []byte, blocks int) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for range blocks {
		must(t, z.Flush())
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	must(t, z.Close())
	return out.Bytes()
}

// A document of which only the gzip arrives is the same document, however it has to be unpacked, or is refused for its reason.
func TestPackedDocument(t *testing.T) {
	at := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	market := simulated.New(simulated.Config{Seed: 1, Now: func() time.Time { return at }, Calendar: compute.NewCalendar(nil, nil)})
	for _, name := range []upstream.Name{upstream.Options("XLF"), upstream.Quotes("XLF")} {
		whole, err := market.Fetch(t.Context(), name, nil)
		must(t, err)
		text := whole.Body
		want, err := newDocument(whole)
		must(t, err)
		good := packed(t, text, 0)
		damaged := slices.Clone(good)
		damaged[len(damaged)-5] ^= 1 // the checksum
		kind, _ := name.Split()
		space := bytes.Repeat([]byte{' '}, int(kind.MaxBody()))
		for _, c := range []struct {
			what   string
			gzip   []byte
			reason upstream.Reason
			keeps  string // what is stored
		}{
			{"whole", good, "", "gzip"},
			{"empty blocks", packed(t, text, len(text)), "", "text"},
			{"cut off", good[:len(good)-9], upstream.Truncated, ""},
			{"damaged", damaged, upstream.Truncated, ""},
			{"no gzip", text, upstream.Truncated, ""},
			{"of another symbol", packed(t, bytes.ReplaceAll(text, []byte("XLF"), []byte("XLK")), 0), upstream.Malformed, ""},
			{"text behind it", packed(t, append(slices.Clone(text), 'x'), 0), upstream.Malformed, ""},
			{"too large", packed(t, append(slices.Clone(text), space...), 0), upstream.TooLarge, ""},
			{"empty", []byte{}, upstream.Truncated, ""},
		} {
			got, err := newDocument(&upstream.Document{Name: name, Gzip: c.gzip})
			var failure *upstream.Error
			switch {
			case c.reason != "":
				if !errors.As(err, &failure) || failure.Reason != c.reason {
					t.Errorf("%s, %s: %v, want %s", name, c.what, err, c.reason)
				}
				continue
			case err != nil:
				t.Errorf("%s, %s: %v", name, c.what, err)
				continue
			}
			if got.SHA256 != want.SHA256 || got.chain != nil && len(got.chain.Contracts) != len(want.chain.Contracts) {
				t.Errorf("%s, %s: digest %s, want %s", name, c.what, got.SHA256, want.SHA256)
			}
			if keeps := map[bool]string{true: "gzip", false: "text"}[got.Gzip != nil]; keeps != c.keeps || keeps == "text" && !bytes.Equal(got.Body, text) {
				t.Errorf("%s, %s: keeps the %s, want the %s", name, c.what, keeps, c.keeps)
			}
		}
	}
}

// A panic on a thread of low priority is one of the caller.
func TestPanicOnAnotherThread(t *testing.T) {
	defer func() {
		if p := recover(); p != "lost" {
			t.Errorf("panic %v", p)
		}
	}()
	inBackground(func() { panic("lost") })
}
