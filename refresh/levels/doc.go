// Package levels is the commands `strikecache export` and `strikecache import`: the daily levels of the stored gamma
// snapshots as a file, and such a file as snapshots.
//
// A file has one row per session, oldest first, in CSV as of RFC 4180 or as a JSON array of objects. Export takes, of
// each session, the stored snapshot with the greatest as_of; it needs no lock, so a server may run. Import checks every
// cell before it writes anything, and then stores each row under the date of its session as a snapshot that knows the
// levels alone: meta.source is imported, meta.imported_from the name of the file, and every other field null. A date that
// is stored already keeps what it has. An imported snapshot is history: no restart makes it the current answer, and an
// answer of the source's own for the same date takes its place.
package levels
