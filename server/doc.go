// Package server sends sealed snapshots over HTTP.
//
// A request is routed by its path alone, finds its snapshot by its parameter, and gets the snapshot's own bytes:
// nothing is computed, encoded or compressed on the way, and no request causes an upstream fetch. The server does
// not know where snapshots come from: it is given a [Finder], which may be in this process or not.
package server
