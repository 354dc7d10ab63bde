package floor_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"io"
	"testing"

	"strikecache/bench/floor"
)

// At the money with 20 % a year and a year to go, d1 = 0.1 and gamma = φ(0.1) / (100 · 0.2) = 0.3969525/20. 10 contracts of 100 shares then
// have 0.019847627 · 1000 · 100 = 1984.76 USD for 1 %, and the put is subtracted.
func TestWork(t *testing.T) {
	const chain = `{"timestamp":"2025-11-20 20:00:00","data":{"current_price":100,"options":[
		{"option":"X261120C00100000","iv":0.2,"open_interest":10,"bid":1,"ask":2,"volume":3},
		{"option":"X261120P00100000","iv":0.2,"open_interest":5,"bid":1,"ask":2,"volume":3},
		{"option":"X261120C00200000","iv":0.2,"open_interest":0,"bid":0,"ask":0,"volume":0}]}}`
	compressed, digest, err := floor.Work([]byte(chain))
	if err != nil || digest != sha256.Sum256(compressed) {
		t.Fatalf("%v, digest %x", err, digest)
	}
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if want := `[{"strike":100,"net_gex_dollars":992},{"strike":200,"net_gex_dollars":0}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	if _, _, err := floor.Work([]byte(`{"data":{"options":[{"option":"X"}]}}`)); err == nil {
		t.Error("no error for a chain without a time")
	}
}
