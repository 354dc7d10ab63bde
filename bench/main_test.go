package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// interruptAfter is the environment variable that makes TestSecondSignal interrupt its own process. The value says whether
// the second signal comes at once or after the context has ended.
const interruptAfter = "BENCH_TEST_INTERRUPT"

// The first signal ends the context. The second ends the process at once, even if both arrive together.
func TestSecondSignal(t *testing.T) {
	if when := os.Getenv(interruptAfter); when != "" {
		ctx := untilSignal()
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		_ = self.Signal(os.Interrupt)
		if when == "end" {
			<-ctx.Done()
			fmt.Println("context ended")
		}
		_ = self.Signal(syscall.SIGTERM)
		select {}
	}
	for when, want := range map[string]string{"at once": "", "end": "context ended\n"} {
		limit, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(limit, os.Args[0], "-test.run=^TestSecondSignal$")
		cmd.Env = append(os.Environ(), interruptAfter+"="+when)
		if out, err := cmd.Output(); limit.Err() != nil || cmd.ProcessState.ExitCode() != 1 || string(out) != want {
			t.Errorf("second signal %s: %v, %q", when, err, out)
		}
	}
}
