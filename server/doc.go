// Package server sends sealed snapshots over HTTP.
//
// A request is routed by its path alone, finds its snapshot by its parameter, and gets the snapshot's own bytes:
// nothing is computed, encoded or compressed on the way, and no request causes an upstream fetch. The server does
// not know where snapshots come from: it is given a [Finder], which may be in this process or not.
//
// Between the listener and fasthttp stands a gate. It checks the head of every request with one strict parser,
// answers plain requests for a resource from the connection itself, and hands all others to fasthttp one at a time.
// Both ways end in the same decision and the same field lines.
package server
