// Package flags is what the command line says about refreshing: the source of documents, the schedule and the numbers.
//
// [Source] and [Schedule] are structs in the form that the kong parser reads. Each has Check, whose errors name the
// right values, and fills in its part of a [refresh.Config].
package flags
