// Package snapshots keeps answers as the exact bytes that clients receive.
//
// A result enters as JSON and [Seal] turns it, once, into an immutable [Snapshot]: the envelope in every content
// coding, with entity tags. An [Edition] is what one resource serves at one time: a default snapshot and one for
// each value of its parameter. A [Store] keeps editions twice: hot, in ristretto, where all editions of one feed
// form a generation and switch together; and on disk, one file per product and UTC date, written so that a crash
// at any instant leaves the old file or the new one. Bytes taken from a snapshot are shared and must never be
// changed; that is what makes sending them without a copy safe.
//
// A disk that refuses a file costs durability, not the answer: it is served from memory, and written when the disk is
// back. A file that is not whole is named in the log when the store opens and never served.
//
// The package does not know what the bytes mean, reads no clock and imports nothing of ours.
package snapshots
