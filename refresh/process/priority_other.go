//go:build !linux

package process

// Nothing is done: these systems have no class of processes that any other interrupts.
func name(string)    {}
func lowerPriority() {}
func giveWay()       {}

func waited() (ran, waited float64, known bool) { return 0, 0, false }

func used() Usage { return Usage{} }
