// Package ready asks a running server whether it is ready, for health checks of images that hold nothing but the
// binary.
package ready
