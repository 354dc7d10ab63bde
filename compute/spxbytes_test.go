package compute_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"

	"strikecache/compute"
)

// The answers of SPX keep their bytes, whatever is done for other underlyings. The digests are of the answers of the last version
// that knew SPX alone, with spot_change_pct added. Rounding differs between architectures, so they hold for amd64. A change of the
// method of SPX changes them.
func TestBytesOfSPX(t *testing.T) {
	session := append(made(7010, "2026-08-12T15:00:00Z", near60...), row{"SPX260821C07000000", with(60, 62, 0.17)},
		row{"SPX1260821C07000000", blank(5)}, row{"SPXW260812P07000000", with(20, 21, 0.15)}, row{"SPXW260820P06900000", blank(7)})
	before := build(t, index(6990, "2026-08-11T19:59:00Z"), made(6990, "2026-08-11T19:59:00Z", near60...)...)
	night := index(7000, "2026-08-12T20:00:00Z")
	night.CapturedAt = at("2026-08-13T05:00:00Z")
	far := build(t, night, made(7900, "2026-08-13T04:45:00Z", near60...)...)
	sameBytes(t, "in session", before, build(t, index(7005, "2026-08-12T15:00:00Z"), session...),
		"20a9fe00c0591aca689ec1259e40659f7d6b23ab3a0e00dd5ae21ad8d93ac0d4")
	sameBytes(t, "in the night", before, build(t, night, made(7060, "2026-08-13T04:45:00Z", near60...)...),
		"4040aff69f412a8aeb37a6cbab453438e868445bbfb5d98cd0a8f42d8b5e0bea")
	sameBytes(t, "contradiction", nil, far,
		"3da76944cf7db05f83cfe3b002e612d29375bb2ef9553324e620880ca829d0a6")
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
