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
		"6767b3c4e153aa504d9d05dc40a22598e783200790d7d87d8cb6b5b4976ef9a6")
	sameBytes(t, "in the night", before, build(t, night, made(7060, "2026-08-13T04:45:00Z", near60...)...),
		"abfc9fc716df182cc2e327956f5cee72a4fde5fcce054393bee461e62375b60b")
	sameBytes(t, "contradiction", nil, far,
		"63c6841888e575d192d1a6cf58aa21c976194f7e00fbb35363697388f9a36c85")
}

func TestBytesOfRecordedSPX(t *testing.T) {
	sameBytes(t, "recorded", nil, recordedChain(t, spxChain),
		"87772ccd0d08a46ece9a1f526cc1457b145d1d783ed9a88aa6130991364049fa")
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
