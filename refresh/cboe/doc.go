// Package cboe reads the documents of Cboe's delayed quotes and fetches them over HTTP.
package cboe
