package simulated_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"strikecache/refresh/upstream"
)

// TestNewInstrumentsChangeNoOther compares the chain, quote and history of old instruments, of seed 1 in a session and at night, with those
// of the market before NDX, RUT and IWM were in it: the digests are from then.
func TestNewInstrumentsChangeNoOther(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the digests are of amd64: another GOARCH may fuse multiplications")
	}
	for _, c := range []struct{ symbol, at, want string }{
		{"_SPX", "2026-08-11 12:00:00", "a4431bf18033a4b0b1799120d99e2f04256d4c855b49e25b253e62b13e2e011d"},
		{"_SPX", "2026-08-12 02:00:00", "22556d9099d73077aa0aa18d8c252575dd2c6d6ef6af7327ff3418cde40ea496"},
		{"SPY", "2026-08-11 12:00:00", "0c8fd596a073381c06d9a3a46f72dce7c49c696246894a07090f0d1dd79e2f4d"},
		{"SPY", "2026-08-12 02:00:00", "ee20587594be4e2c297620133bf7e15acefadf4516f3a1910f7a87db30d0bb1b"},
		{"QQQ", "2026-08-11 12:00:00", "eaf42269d1184fc43dd1c32e619f123ea4681126264a9e8e41290b25ef6e4ce0"},
		{"QQQ", "2026-08-12 02:00:00", "a24e4751bc138d9c897fd8e211180bd1646235890de8339a685a67584b07ac18"},
		{"XLK", "2026-08-11 12:00:00", "4cd9a93097d24520cf0957e304ea2b4f6cf1086355ffc1a5dbc4b055d8311e7e"},
		{"XLK", "2026-08-12 02:00:00", "7b032cd7a9b2fb3afaf0cd0018f83da32f6ffecfae97534bd54eb2ad28ac341b"},
	} {
		digest := sha256.New()
		for _, name := range []upstream.Name{upstream.Options(c.symbol), upstream.Quotes(c.symbol), upstream.History(c.symbol)} {
			digest.Write(documentAt(t, market, name, ny(c.at)).Body)
		}
		if got := fmt.Sprintf("%x", digest.Sum(nil)); got != c.want {
			t.Errorf("the documents of %s at %s have the digest %s", c.symbol, c.at, got)
		}
	}
}
