// Package certs keeps the certificate of a TLS listener: it reads a pair of PEM files, and follows their changes while
// the server runs.
package certs
