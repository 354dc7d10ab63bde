// Package admin serves what is for the operator alone: metrics, profiles and the probes, on a listener of its own.
//
// It is plain net/http, as nothing here is fast or public. Metrics are read when they are asked for: the path of a
// public request knows counters and nothing of Prometheus. Their labels are names of the route table, statuses, error
// codes, codings, feeds and steps: never a key, a date, an address or anything else that a client chooses.
package admin
