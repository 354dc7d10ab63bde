//go:build !linux

package process

// Nothing is done on these systems.
func name(string)    {}
func lowerPriority() {}

func used() Usage { return Usage{} }
