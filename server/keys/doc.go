// Package keys issues API keys and recognises them.
//
// A key is a random secret, shown once when [Create] issues it. The key file holds its SHA-256, a name, limits and
// an expiry; only its owner may read it, and it is replaced whole. A [Table] holds the file for the server: [Table.Lookup]
// hashes what a client presents and finds the [Entry], whose Admit decides about the request; the file is read again
// when it changes. A [Ledger] keeps the day's counts over a restart. No secret is ever stored or logged.
package keys
