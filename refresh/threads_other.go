//go:build !linux

package refresh

// lowerPriority does nothing: this system has no priority of a single thread.
func lowerPriority() {}

// ticked is empty: there is no [tickOften].
var ticked []int

// tickOften does nothing.
func tickOften() (end func()) { return func() {} }

// holdProcessor does nothing.
func holdProcessor() (leave, end func()) { return func() {}, func() {} }
