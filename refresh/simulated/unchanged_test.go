package simulated_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"strikecache/refresh/upstream"
)

// TestNewInstrumentsChangeNoOther compares the chain, quote and history of some instruments, of seed 1 in a session and at night, with those
// of the market as it has been since its nights follow the table of hours. Whatever is added to the market changes none of them.
func TestNewInstrumentsChangeNoOther(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the digests are of amd64: another GOARCH may fuse multiplications")
	}
	for _, c := range []struct{ symbol, at, want string }{
		{"_SPX", "2026-08-11 12:00:00", "946b4a20e39c11a0bd2c779d21024092a6ef25d707054cde43ceaa1484ad72dd"},
		{"_SPX", "2026-08-12 02:00:00", "fe1fb1ea085bb922585a14d76fcb57d5184f216398a05ca43b9e1ecf9a2a8124"},
		{"SPY", "2026-08-11 12:00:00", "fbcba21381b6406dcc17731f0302ec1d9ae1d5c7bd7cdf68b2062817cdd254df"},
		{"SPY", "2026-08-12 02:00:00", "5d4e647bf2a84d3fb84534b8a0a2a2eaf3b0aaccb64619db6f0c2a701150a6f7"},
		{"QQQ", "2026-08-11 12:00:00", "dd41bb5088ee0656a1e08ab41102379e5bac2a7b74664324db560380088e73a1"},
		{"QQQ", "2026-08-12 02:00:00", "11ac09f55f12e46e1d551085c888589ac16228df1e6c93e9760ec6c3e2c913de"},
		{"XLK", "2026-08-11 12:00:00", "55e83683754f71155d1487a2b32b82dac7510bdd724620e322d478d463db5442"},
		{"XLK", "2026-08-12 02:00:00", "803e0aa3d9a45fb365c032bfb336442093115e4bac09c3b4a1145e136e332499"},
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
