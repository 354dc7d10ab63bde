// Package refresh turns upstream documents into sealed answers.
//
// A [Refresher] owns four jobs: the SPX chain, the other option chains, the sector quotes and the VIX futures
// settlements. The path of one document: a schedule of the exchange calendar fires; the job fetches from the
// [upstream.Source] and decodes; a document that says what the last one said stops here; pure functions of
// package compute turn it into results; every result is sealed; the dated files are written, and then all
// resources of the feed become current at the same instant. A failure at any step leaves the last answer in
// place; three in a row for one document re-seal what rests on it as stale, and the job backs off. A chain that shrank
// or whose clock went back is a failure too, until three in a row agree.
//
// Files are written before an answer becomes current, so whatever a client has seen, a restart serves again.
package refresh
