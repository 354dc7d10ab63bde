package product

import (
	"testing"
	"time"

	"strikecache/compute"

	"strikecache/bench/testkit"
)

var must = testkit.Must

// long skips a test under the race detector, because one goroutine works on many documents.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("one job at a time, over many documents: not worth its time under the race detector")
	}
}

var calendar = compute.NewCalendar(nil, nil)

// rate is the risk-free rate of most tests.
const rate = 0.04

func ny(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", text, compute.NewYork)
	must(t, err)
	return at.UTC()
}
