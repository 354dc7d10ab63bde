package server_test

import (
	"testing"

	"go.uber.org/goleak"
)

// What fasthttp starts and nobody can stop: its clock, and the cleaner of idle workers, which looks every 10 seconds
// whether its server still runs.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
