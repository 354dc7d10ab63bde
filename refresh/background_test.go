package refresh

import (
	"runtime"
	"sync"
	"testing"
)

// A machine with one core has a second scheduler context while anything runs in the background, and one afterwards.
func TestBackgroundLendsAContext(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	var all sync.WaitGroup
	var most [3]int
	for i := range most {
		all.Go(func() { background(func() { most[i] = runtime.GOMAXPROCS(0) }) })
	}
	all.Wait()
	if most != [3]int{2, 2, 2} || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("contexts %v, afterwards %d", most, runtime.GOMAXPROCS(0))
	}
	runtime.GOMAXPROCS(3)
	background(func() { most[0] = runtime.GOMAXPROCS(0) })
	if most[0] != 3 || runtime.GOMAXPROCS(0) != 3 {
		t.Errorf("of three contexts %d are left", most[0])
	}
}
