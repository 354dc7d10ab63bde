package compute_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"

	"strikecache/compute"
)

// The answers of SPX keep their bytes, whatever is done for other underlyings. The digests are of the answers of the last version
// that knew SPX alone. Rounding differs between architectures, so they hold for amd64. A change of the method of SPX changes them.
func TestBytesOfSPX(t *testing.T) {
	session := append(made(7010, "2026-08-12T15:00:00Z", near60...), row{"SPX260821C07000000", with(60, 62, 0.17)},
		row{"SPX1260821C07000000", blank(5)}, row{"SPXW260812P07000000", with(20, 21, 0.15)}, row{"SPXW260820P06900000", blank(7)})
	before := build(t, index(6990, "2026-08-11T19:59:00Z"), made(6990, "2026-08-11T19:59:00Z", near60...)...)
	night := index(7000, "2026-08-12T20:00:00Z")
	night.CapturedAt = at("2026-08-13T05:00:00Z")
	far := build(t, night, made(7900, "2026-08-13T04:45:00Z", near60...)...)
	sameBytes(t, "in session", before, build(t, index(7005, "2026-08-12T15:00:00Z"), session...),
		"584ddc236de23f105a5258dced06160dcba71d7f48b4066533d7d8429029ff29")
	sameBytes(t, "in the night", before, build(t, night, made(7060, "2026-08-13T04:45:00Z", near60...)...),
		"8b7df62121232f3d8601a95ed9884599996bce9e6626630f1529705e0f1906df")
	sameBytes(t, "contradiction", nil, far,
		"3468ec31da2915e688383bff055b6149be1d80b9de9a887a79d96f76b0a74f7b")
}

func TestBytesOfRecordedSPX(t *testing.T) {
	sameBytes(t, "recorded", nil, recordedChain(t, spxChain),
		"18f2394822da4f3aff159e1cf799b8d11d4195ddd7338acc87366a39b88fc43b")
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
