//go:build !linux && !darwin

package server

import "math"

func maxDescriptors() int { return math.MaxInt }
