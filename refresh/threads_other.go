//go:build !linux

package refresh

// lowerPriority does nothing: this system has no priority of a single thread.
func lowerPriority() {}
