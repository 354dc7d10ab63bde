// Package e2e tests the binary as a stranger would: it builds it, starts it, speaks HTTP, kills it and starts it
// again.
package e2e
