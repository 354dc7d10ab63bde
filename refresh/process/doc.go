// Package process runs a refresher in a process of its own, of low priority, and hands what it publishes to the process
// that serves.
//
// One process cannot do both well: the runtime collects garbage at the priority of requests, and when it moves a preempted
// refresh between its threads it may leave the network unwatched for milliseconds. With a process for each, the
// kernel decides between them, and a fault that ends the refresher, which reads foreign documents, costs no request: it
// is started again.
//
// The server's process calls [Start], which executes the same binary with the command refresher; that command calls [Run].
// A request goes into the child's standard input, later the word to begin; its end says that the parent has ended. Frames
// come out of the child's standard output: its clock, its status, and what changed in its store, which the parent's
// [snapshots.Replica] takes over. The child owns the data directory. The parent reads past answers from it.
package process
