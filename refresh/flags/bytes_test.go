package flags

import "testing"

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1000000": 1e6, "500MB": 5e8, "5GiB": 5 << 30, "1KiB": 1024, "2TB": 2e12, "64MiB": minArchive,
		"": -1, "5": 5, "GiB": -1, "-1": -1, "1.5GiB": -1, "5 GiB": -1, "5gib": -1, "99999999999GiB": -1, "9223372036854775807": -1,
	} {
		var b Bytes
		err := b.UnmarshalText([]byte(text))
		if (err != nil) != (want < 0) || err == nil && b != want {
			t.Errorf("%q is %d, %v; want %d", text, b, err, want)
		}
	}
}
