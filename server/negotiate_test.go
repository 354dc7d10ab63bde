package server

import (
	"encoding/json"
	"strings"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/snapshots"
)

// sealed is a snapshot in every coding.
func sealed(t testing.TB) *snapshots.Snapshot {
	t.Helper()
	s, err := snapshots.Seal([]byte(`"`+strings.Repeat("gamma and delta ", 500)+`"`), snapshots.Meta{Quality: json.RawMessage("{}")}, snapshots.Brotli, snapshots.Zstd)
	testkit.Must(t, err)
	return s
}

// The coding is the one with the highest weight, of equals the one with the smallest body (RFC 9110 §12.5.3). Identity is acceptable unless it is refused, and
// every named coding is preferred to it. Malformed elements are left out.
func TestChoose(t *testing.T) {
	s := sealed(t)
	small, delta, large := snapshots.Identity, &snapshots.Delta{Body: []byte("small")}, &snapshots.Delta{Body: make([]byte, 8000)}
	for c := range snapshots.DCZ {
		if s.Size(c) < s.Size(small) {
			small = c
		}
	}
	few, err := snapshots.Seal(s.Data(), s.Meta)
	testkit.Must(t, err)
	for _, c := range []struct {
		headers string // separated by |
		delta   *snapshots.Delta
		want    snapshots.Coding
	}{
		{"|identity|*;q=0|gzip;q=0.000|gzipped|dcz|deflate|identity, gzip;q=0.0", nil, snapshots.Identity},
		{"gzip;q=1.001|gzip;q=0.0001|gzip;q=|gzip;q=x|gzip;level=1;q=0", nil, snapshots.Identity},                   // malformed
		{"identity;q=0|identity, gzip;q=0.9|identity;q=0.5, gzip;q=0.4|identity, *;q=0.5", nil, snapshots.Identity}, // a complete answer helps more than a 406
		{"gzip|GZip|x-gzip|gzip; q=0.001|deflate, gzip|deflate,,  ,gzip|*;q=0.1, gzip;q=0.2|identity;q=0.5, gzip;q=0.9|identity;q=0, gzip;q=0.1", nil, snapshots.Gzip},
		{"gzip;q=0.5, *;q=0|GZIP;Q=1.000, br ; q=0.999|zstd;q=0.9, br;q=0.8, gzip|gzip;q=0.999, br;q=0.9|*;q=0.1, br;q=0, zstd;q=0|gzip;q=0, gzip", nil, snapshots.Gzip},
		{"BR;q=0.2|,, ,br|br;q=1.0, gzip;q=0.8, *;q=0|gzip;q=0.49, br;q=0.5|gzip;q=2, br|identity;q=0.001, br;q=0.002", nil, snapshots.Brotli},
		{"zstd|br;q=0.5, zstd;q=0.7, *;q=0.1", nil, snapshots.Zstd},
		{"*|gzip, deflate, br, zstd|gzip, deflate, br, zstd, dcb, dcz|identity;q=0.5, *;q=0.5|identity;q=0.1, gzip;q=0.1, br;q=0.1, zstd;q=0.1", nil, small},
		{"dcz|DCZ;q=0.9, br;q=0.8|gzip, deflate, br, zstd, dcb, dcz|*", delta, snapshots.DCZ},
		{"dcz;q=0.9, br|dcz;q=0, br", delta, snapshots.Brotli}, {"dcz, br|*;q=0, br, dcz", large, snapshots.Brotli},
	} {
		for header := range strings.SplitSeq(c.headers, "|") {
			if got := choose([]byte(header), s, c.delta); got != c.want {
				t.Errorf("%q: %v, want %v", header, got, c.want)
			}
			if got := choose([]byte(header), few, nil); few.Size(got) == 0 {
				t.Errorf("%q: %v, in which there is no body", header, got)
			}
		}
	}
}

// An If-None-Match matches when it is *, or when one of the tags before its first malformed element is one of ours, by weak comparison (RFC 9110 §13.1.2). A
// proxy, or the server itself, may have appended the name of a coding.
func TestLists(t *testing.T) {
	s := sealed(t)
	gz, dcz := strings.TrimSuffix(s.ETag(snapshots.Gzip), `"`), strings.TrimSuffix(s.ETag(snapshots.Identity), `"`)+"-dcz-0123456789abcdef"
	tag, delta := gz+`"`, dcz+`"`
	for want, all := range map[bool][]string{
		true: {
			"*", "TAG", "W/TAG", `"a", W/"b",,TAG ,"c"`, `"a,b",TAG`, " \tTAG\t", "DELTA", `"a", W/DELTA`, ", ,\tTAG,", "TAG, *",
			gz + `-gzip"`, gz + `--br"`, gz + `;gz"`, dcz + `-gunzip"`,
		},
		false: {
			"", `"a"`, `"a" TAG`, "W/*", `"a`, `"a", *`, "*, TAG", "*, *", "*junk", "**", `"a b", TAG`, "w/TAG", `"",""`, "\"\xff\"", "TAGTAG", `DELTA"`, "TAGjunk", `"a" b, TAG`,
			strings.Trim(tag, `"`), tag[:20], gz, `"` + tag[2:], strings.ToUpper(tag), gz + `-other"`, tag + "-gzip",
			strings.Replace(tag, "-gz", "-", 1), strings.Replace(tag, "-gz", "-xx", 1), strings.Replace(tag, "-gz", "-dcz-", 1), dcz[:len(dcz)-1] + `"`, `"x` + delta[2:],
		},
	} {
		for _, list := range all {
			list = strings.NewReplacer("TAG", tag, "DELTA", delta).Replace(list)
			if got := lists([]byte(list), s, nil, false); got != want {
				t.Errorf("%q: %v, want %v", list, got, want)
			}
		}
	}
}
