// Package compute turns market documents, already decoded, into the results that strikecache serves. METHODS.md,
// beside this file, defines every number.
//
// Every function is pure: it reads no clock, file or network, logs nothing and starts no goroutine. The path of one number:
// a [ChainBuilder] collects and validates rows and builds a [Chain]. A function such as [GammaExposure], [MaxPains] or
// [UnusualFlow] reads the chain and returns a struct whose JSON tags are the public interface.
//
// All results hold unrounded values. The number types [Dollars], [Level], [Ratio], [GammaDiff], [Score] and [Count] round
// when they are marshalled. A NaN or an infinity is a marshalling error. An unknown value is a nil pointer and becomes null.
//
// Sums run in a fixed order (root, expiration, strike, right), so the same input gives the same bytes on one architecture.
// Each method has a version, such as [GammaMethod]. The version changes when the meaning of a number changes.
package compute
