package need

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen: for a race detector on a busy machine, since no test states
// a speed.
const Patience = 5 * time.Minute

// Until polls until a condition holds. Once [Patience] is over, the test ends with what was waited for and all that
// more tells.
func Until(t testing.TB, what string, holds func() bool, more ...func() string) {
	t.Helper()
	pause := time.Millisecond
	for deadline := time.Now().Add(Patience); !holds(); pause = min(2*pause, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			for _, tell := range more {
				what += "\n" + tell()
			}
			t.Fatalf("not within %v: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}
