package compute_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"

	"strikecache/compute"
)

// The answers of SPX keep their bytes, whatever is done for other underlyings. The digests are of the answers of the last version
// that knew SPX alone, and of `spot_change_pct`, which it did not have. Rounding differs between architectures, so they hold for amd64. A change of the method of SPX changes them.
func TestBytesOfSPX(t *testing.T) {
	session := append(made(7010, "2026-08-12T15:00:00Z", near60...), row{"SPX260821C07000000", with(60, 62, 0.17)},
		row{"SPX1260821C07000000", blank(5)}, row{"SPXW260812P07000000", with(20, 21, 0.15)}, row{"SPXW260820P06900000", blank(7)})
	before := build(t, index(6990, "2026-08-11T19:59:00Z"), made(6990, "2026-08-11T19:59:00Z", near60...)...)
	night := index(7000, "2026-08-12T20:00:00Z")
	night.CapturedAt = at("2026-08-13T05:00:00Z")
	far := build(t, night, made(7900, "2026-08-13T04:45:00Z", near60...)...)
	sameBytes(t, "in session", before, build(t, index(7005, "2026-08-12T15:00:00Z"), session...),
		"91fbbea3701b2d239338fd9d3326f4fe57480809028bad17c3fde395434f6aba")
	sameBytes(t, "in the night", before, build(t, night, made(7060, "2026-08-13T04:45:00Z", near60...)...),
		"e2b72c9495f5e82766153248556c42a590f2ee400688462dbce14dc0f4d34580")
	sameBytes(t, "contradiction", nil, far,
		"c3a49a3acefb4ca1fe35076201ed1d214b59259c332856d191217bae55300892")
}

func TestBytesOfRecordedSPX(t *testing.T) {
	sameBytes(t, "recorded", nil, recordedChain(t, spxChain),
		"9b04f891bc685175f1db3053fe72379a67df51f3e8af16df2715e11c491d7300")
}

// sameBytes compares the SHA-256 of all answers of a chain. before is the chain of the session before, or nil.
func sameBytes(t *testing.T, name string, before, chain *compute.Chain, want string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the digests are those of amd64")
	}
	in := compute.GammaInput{Calendar: cal, RiskFreeRate: 0.04}
	if before != nil {
		in.Chain = before
		in.Reference = compute.GammaExposure(in).State
	}
	in.Chain = chain
	r := compute.GammaExposure(in)
	sum := sha256.New()
	for _, v := range []any{r.Data, r.Quality, r.Matrix, compute.MaxPains(chain, cal),
		compute.UnusualFlow(compute.FlowInput{Chain: chain, Calendar: cal})} {
		sum.Write(marshal(t, v))
	}
	equal(t, name, hex.EncodeToString(sum.Sum(nil)), want)
}
