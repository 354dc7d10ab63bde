// Package limits decides whether a request may be served, and says so in headers.
//
// A key has a [Bucket], requests a minute, and a [Day], requests a UTC day; an anonymous client has a bucket in
// [Addresses], found by the address that [ClientAddr] makes out behind trusted proxies. [Admit] asks a bucket and a
// day together and returns a [Verdict], which renders every header of the answer. Nothing on that path allocates,
// reads a clock or does I/O: the caller passes the time, Unix nanoseconds of the machine's clock, never of a
// simulated market's.
package limits
