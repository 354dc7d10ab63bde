package refresh

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	lower = func() {}
	goleak.VerifyTestMain(m)
}
