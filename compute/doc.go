// Package compute turns market documents, already decoded, into the results that strikecache serves. METHODS.md,
// beside this file, defines every number.
//
// It is the ground floor: every function is pure. The path one number takes is: rows are collected by a
// [ChainBuilder] into a validated [Chain]; a function such as [GammaExposure], [MaxPains] or [UnusualFlow] reads
// the chain and returns a result struct whose JSON tags are the public interface. Nothing here reads a clock,
// a file or the network, logs, or starts a goroutine, so every number can be checked with a pencil.
//
// All results hold unrounded values. Rounding happens when they are marshalled, by the number types
// [Dollars], [Level], [Ratio], [GammaDiff], [Score] and [Count]; a NaN or an infinity is a marshalling error,
// never a silent null. Unknown values are nil pointers and become null.
//
// Sums run in a fixed order (root, expiration, strike, right), so the same input gives the same bytes on one
// architecture. Methods have versions ([GammaMethod] and its siblings): a change of meaning changes them.
package compute
