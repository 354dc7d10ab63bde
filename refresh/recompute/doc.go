// Package recompute is the command `strikecache recompute`: it computes a stored day again from its archived inputs and
// says what differs.
//
// A stored answer is identical when its data, byte for byte, and what meta says of them (the clocks of the documents, the
// session, the quality) are what this version computes from the same documents, state and settings. The command takes
// no lock and writes nothing; a server may run meanwhile.
package recompute
