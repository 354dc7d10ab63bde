package refresh

import (
	"testing"

	"go.uber.org/goleak"
)

// The tests have no ticks, except those that are about them: while a thread ticks, the clock of a synctest bubble stands.
func TestMain(m *testing.M) {
	ticked = nil
	goleak.VerifyTestMain(m)
}
