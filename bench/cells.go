package main

import "slices"

// cell is one way in which clients ask the servers: a column of the tables.
type cell struct {
	Name        string `json:"name"`            // in --cells; that of the answer for a plain request
	Title       string `json:"title,omitempty"` // of the column; "": that of the answer
	Answer      string `json:"answer"`
	Connections int    `json:"connections"`        // keep-alive connections, or those of a burst
	Churn       bool   `json:"churn,omitempty"`    // a new connection for each request
	Idle        bool   `json:"idle,omitempty"`     // the memory of idle connections, and not CPU time
	Refresh     bool   `json:"refresh,omitempty"`  // no requests: new chains come, and the unit is the floor
	Requests    int    `json:"requests,omitempty"` // of each reading
}

const (
	// rivalConnections is the number of keep-alive connections, and the most requests that wait for an answer at a time.
	rivalConnections = 64
	// burst is the number of connections that a client of new connections opens at once, below the backlog of every server.
	burst = 256
	// idleConnections is the number of connections whose memory is measured.
	idleConnections = 5000
	// notModified is the name of the answer without a body.
	notModified = "304"
)

var allCells = []cell{
	{Name: "small", Answer: "small", Connections: rivalConnections},
	{Name: "medium", Answer: "medium", Connections: rivalConnections},
	{Name: "large", Answer: "large", Connections: rivalConnections},
	{Name: notModified, Answer: notModified, Connections: rivalConnections},
	{Name: "churn", Title: "new connection each", Answer: "small", Connections: burst, Churn: true},
	{Name: "1000", Title: "1,000 connections", Answer: "small", Connections: 1000},
	{Name: "10000", Title: "10,000 connections", Answer: "small", Connections: 10_000},
	{Name: "idle", Title: "memory of an idle connection", Answer: "small", Connections: idleConnections, Idle: true},
	{Name: "refresh", Title: "a new SPX chain", Refresh: true, Requests: 1},
	{Name: "round", Title: "new chains of the 15 default underlyings", Refresh: true, Requests: 1},
}

// chosen says whether a flag chooses a name. Without values, the flag chooses every name.
func chosen(values []string, name string) bool {
	return len(values) == 0 || slices.Contains(values, name)
}
