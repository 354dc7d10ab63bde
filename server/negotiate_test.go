package server

import (
	"encoding/json"
	"strings"
	"testing"

	"strikecache/snapshots"
)

// sealed is a snapshot in every coding.
func sealed(t testing.TB) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(`"`+strings.Repeat("gamma and delta ", 500)+`"`), snapshots.Meta{Quality: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChoose(t *testing.T) {
	s := sealed(t)
	smallest := snapshots.Identity
	for c := range snapshots.Codings {
		if len(s.Body(c)) < len(s.Body(smallest)) {
			smallest = c
		}
	}
	for header, want := range map[string]snapshots.Coding{
		"":                              snapshots.Identity,
		"gzip":                          snapshots.Gzip,
		"GZip":                          snapshots.Gzip,
		"x-gzip":                        snapshots.Gzip,
		"br":                            snapshots.Brotli,
		"BR;q=0.2":                      snapshots.Brotli,
		"zstd":                          snapshots.Zstd,
		"gzip;q=0.5":                    snapshots.Gzip,
		"gzip; q=0.001":                 snapshots.Gzip,
		"gzip;q=0":                      snapshots.Identity,
		"gzip;q=0.000":                  snapshots.Identity,
		"gzip ; Q=1.000":                snapshots.Gzip,
		"gzip;q=1.001":                  snapshots.Identity, // malformed: as if it were not there
		"gzip;q=0.0001":                 snapshots.Identity,
		"gzip;q=":                       snapshots.Identity,
		"gzip;q=x":                      snapshots.Identity,
		"deflate":                       snapshots.Identity,
		"deflate, gzip":                 snapshots.Gzip,
		"deflate,,  ,gzip":              snapshots.Gzip,
		"*":                             smallest,
		"gzip, deflate, br, zstd":       smallest,
		"*;q=0":                         snapshots.Identity,
		"*;q=0.1, gzip;q=0.2":           snapshots.Gzip,
		"*;q=0.1, br;q=0, zstd;q=0":     snapshots.Gzip,
		"identity":                      snapshots.Identity,
		"identity, gzip;q=0.9":          snapshots.Identity,
		"identity;q=0.5, gzip;q=0.9":    snapshots.Gzip,
		"identity;q=0":                  snapshots.Identity, // a full answer helps more than a 406
		"identity;q=0, gzip;q=0.1":      snapshots.Gzip,
		"gzipped":                       snapshots.Identity,
		"gzip;level=1;q=0":              snapshots.Identity,
		"br;q=1.0, gzip;q=0.8, *;q=0":   snapshots.Brotli,
		"zstd;q=0.9, br;q=0.8, gzip":    snapshots.Gzip,
		"br;q=0.5, zstd;q=0.7, *;q=0.1": snapshots.Zstd,
	} {
		if got := choose([]byte(header), s); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// A snapshot that is not sealed in the best coding is sent in the best of those that it has.
func TestChooseAmongWhatIsSealed(t *testing.T) {
	s, err := snapshots.SealIn([]byte(`"`+strings.Repeat("gamma and delta ", 500)+`"`), snapshots.Meta{Quality: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]snapshots.Coding{
		"br": snapshots.Identity, "zstd, br": snapshots.Identity, "br, zstd, gzip;q=0.1": snapshots.Gzip, "*": snapshots.Gzip,
	} {
		if got := choose([]byte(header), s); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func TestParameter(t *testing.T) {
	for _, c := range []struct {
		query string
		value string
		n     int
	}{
		{"", "", 0}, {"a=1", "", 0}, {"limit=5", "5", 1}, {"limit", "", 1}, {"limit=", "", 1}, {"&&limit=5&", "5", 1}, {"limit=5&limit=6", "5", 2},
		{"LIMIT=5", "", 0}, {"l%69mit=%35", "5", 1}, {"limit=a=b", "a=b", 1}, {"limit=a+b", "a b", 1}, {"limit=%zz", "%zz", 1}, {"limit=%4", "%4", 1},
		{"xlimit=5", "", 0}, {"limit=5;limit=6", "5;limit=6", 1},
	} {
		value, n := parameter([]byte(c.query), "limit")
		if string(value) != c.value || n != c.n || (value == nil) != (n == 0) {
			t.Errorf("%q: %q %d, want %q %d", c.query, value, n, c.value, c.n)
		}
	}
}
