// Package archive keeps the inputs of stored answers, so that a day can be computed again.
//
// A [Recipe] says what a product of a date was computed from: the documents and the state that its numbers rest on,
// by their SHA-256, and the settings. A document is stored once, compressed, under its digest, however many recipes
// name it; a new recipe takes the place of the date's older one, and a document that no recipe names any more goes.
// An [Archive] bounds all of it by bytes and by age, oldest dates first.
//
// Documents are written before the recipe that names them, and removed after it: a crash leaves at worst documents
// that nobody names, which the next [Open] removes. A disk that refuses leaves the older recipe in place; what is
// new waits, compressed, for the next write.
package archive
