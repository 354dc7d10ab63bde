package snapshots

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzAltered: a stored file is accepted as it was written and in no other form: changed, cut, lengthened, with parts
// swapped, or in the place of another.
func FuzzAltered(f *testing.F) {
	many := Edition{Default: sealed(f, `{"strike":1}`)}
	many.Variants = map[string]*Snapshot{"2026-11-20": many.Default, "2026-11-27": sealedIn(f, `{"strike":2}`)}
	good := encoded(f, gamma, File{Edition: &many, Content: "00ff", Summary: []byte(`["2026-11-20",7000]`)})
	for i, part := range []string{"", "\n", "0", `{"format":1,`, `"sha256":"`, strings.Repeat("\x00", 64), `"product":"gex/spx"`} {
		f.Add(uint16(i*40), uint16(i), []byte(part))
	}
	f.Add(uint16(0), uint16(1), []byte("["))
	f.Add(uint16(10), uint16(1), []byte("2"))
	f.Add(uint16(len(good)), uint16(0), []byte("x"))
	f.Add(uint16(len(good)-1), uint16(9), []byte(nil))
	f.Add(uint16(0), uint16(len(good)), good[:len(good)/2])
	f.Fuzz(func(t *testing.T, at, remove uint16, insert []byte) {
		start := min(int(at), len(good))
		end := min(start+int(remove), len(good))
		b := bytes.Join([][]byte{good[:start], insert, good[end:]}, nil)
		got, err := decodeFile(b, gamma, friday)
		if bytes.Equal(b, good) {
			if err != nil {
				t.Fatalf("refused as it was written: %v", err)
			}
			sameFile(t, got, File{Edition: &many, Content: "00ff", Summary: []byte(`["2026-11-20",7000]`)})
			for _, place := range [][2]string{{pain, friday}, {gamma, "2026-11-19"}, {"", ""}} {
				if _, err := decodeFile(b, place[0], place[1]); !errors.Is(err, ErrTorn) {
					t.Errorf("as %q: %v", place, err)
				}
			}
			return
		}
		if !errors.Is(err, ErrTorn) && !errors.Is(err, ErrNewerFormat) {
			t.Fatalf("bytes %d to %d replaced by %q: %v", start, end, insert, err)
		}
	})
}
