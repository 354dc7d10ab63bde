package need

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Children returns the ids of the processes that a process has started and that run; without /proc, none.
func Children(parent int) (ids []int) {
	own := fmt.Sprintf("\nPPid:\t%d\n", parent)
	files, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is good
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), own) {
			if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Child returns the id of the only one, and skips the test where there is none to be seen.
func Child(t testing.TB, parent int) int {
	t.Helper()
	ids := Children(parent)
	if len(ids) == 0 {
		t.Skip("needs /proc, and a child in it")
	}
	return ids[0]
}
