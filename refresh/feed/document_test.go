package feed

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

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
	market := simulated.New(simulated.Config{Seed: 1, Now: func() time.Time { return at }, Calendar: cal})
	for _, name := range []upstream.Name{upstream.Options("XLF"), upstream.Quotes("XLF")} {
		whole, err := market.Fetch(t.Context(), name, nil)
		must(t, err)
		text := whole.Body
		want, err := New(whole)
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
			got, err := New(&upstream.Document{Name: name, Gzip: c.gzip})
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
			if got.SHA256 != want.SHA256 || got.Chain != nil && len(got.Chain.Contracts) != len(want.Chain.Contracts) {
				t.Errorf("%s, %s: digest %s, want %s", name, c.what, got.SHA256, want.SHA256)
			}
			if keeps := map[bool]string{true: "gzip", false: "text"}[got.Gzip != nil]; keeps != c.keeps || keeps == "text" && !bytes.Equal(got.Body, text) {
				t.Errorf("%s, %s: keeps the %s, want the %s", name, c.what, keeps, c.keeps)
			}
		}
	}
}

// Numbers that no market has count as absent, and are counted. Those of VIX have bounds of their own.
func TestBadNumbersOfDocuments(t *testing.T) {
	const quote = `{"timestamp":"2026-11-20 16:00:00","data":{"symbol":"SYMBOL","current_price":1000.5,"close":1e7,"price_change_percent":1e4,"last_trade_time":"2026-11-20T10:45:00"}}`
	const history = `{"data":[{"date":"2000-01-03","close":0},{"date":"2026-11-17","close":17.5},{"date":"2026-11-18","close":"5000.0"},{"date":"2026-11-19","close":1e300}]}`
	for name, want := range map[upstream.Name]struct {
		body        string
		closes, bad int
	}{
		upstream.Quotes("XLK"): {strings.Replace(quote, "SYMBOL", "XLK", 1), 0, 2}, upstream.History("XLK"): {history, 2, 1}, upstream.History("_VIX"): {history, 1, 2},
	} {
		d, err := New(&upstream.Document{Name: name, Body: []byte(want.body)})
		if err != nil || len(d.Closes) != want.closes || d.Bad != want.bad {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	_, err := New(&upstream.Document{Name: upstream.Quotes("_VIX"), Body: []byte(strings.Replace(quote, "SYMBOL", "^VIX", 1))})
	if upstream.ReasonOf(err) != upstream.Empty {
		t.Errorf("a quote of VIX without a usable price: %v", err)
	}
}
