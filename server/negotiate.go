package server

import (
	"bytes"

	"strikecache/snapshots"
)

// choose returns the content coding in which a snapshot is sent. header is Accept-Encoding. delta is the body for the coding dcz, nil
// if there is no delta. Of the codings with the highest quality, choose returns the one with the smallest body. When the client refuses
// every coding, choose returns identity: a complete response helps more than a 406 (RFC 9110 §12.5.3 allows both).
func choose(header []byte, s *snapshots.Snapshot, delta *snapshots.Delta) snapshots.Coding {
	if len(header) == 0 {
		return snapshots.Identity
	}
	quality := negotiate(header)
	best := snapshots.Identity
	for c, q := range quality {
		c := snapshots.Coding(c)
		size := sizeIn(c, s, delta)
		if size > 0 && q > 0 && (q > quality[best] || q == quality[best] && size < s.Size(best)) {
			best = c
		}
	}
	return best
}

// sizeIn returns the length of the body in a coding: of delta for dcz, else of the snapshot; 0 if there is no such body.
func sizeIn(c snapshots.Coding, s *snapshots.Snapshot, delta *snapshots.Delta) int {
	switch {
	case c != snapshots.DCZ:
		return s.Size(c)
	case delta == nil:
		return 0
	}
	return len(delta.Body)
}

// negotiate returns the quality, 0 to 1000, that an Accept-Encoding header gives each coding. Names are case-insensitive, *
// stands for every coding that is not named, 0 is a refusal, and malformed items are ignored.
func negotiate(header []byte) (quality [snapshots.Codings + 1]int) {
	const unnamed = -1
	for c := range quality {
		quality[c] = unnamed
	}
	star := unnamed
	for len(header) > 0 {
		var item []byte
		item, header, _ = bytes.Cut(header, []byte{','})
		name, params, _ := bytes.Cut(item, []byte{';'})
		q, ok := qualityOf(params)
		if !ok {
			continue
		}
		switch name = bytes.TrimSpace(name); {
		case string(name) == "*":
			star = q
		case equalFold(name, "gzip"), equalFold(name, "x-gzip"):
			quality[snapshots.Gzip] = q
		case equalFold(name, "br"):
			quality[snapshots.Brotli] = q
		case equalFold(name, "zstd"):
			quality[snapshots.Zstd] = q
		case equalFold(name, "dcz"):
			quality[snapshots.DCZ] = q
		case equalFold(name, "identity"):
			quality[snapshots.Identity] = q
		}
	}
	for c := range quality {
		if quality[c] == unnamed {
			quality[c] = max(star, 0)
			if snapshots.Coding(c) == snapshots.Identity && star == unnamed {
				quality[c] = 1 // identity is acceptable unless refused, and every named coding is preferred
			}
		}
	}
	return quality
}

// qualityOf returns the q parameter in thousandths, 1000 when it is absent. ok is false when it is malformed.
func qualityOf(params []byte) (q int, ok bool) {
	for len(params) > 0 {
		var p []byte
		p, params, _ = bytes.Cut(params, []byte{';'})
		name, value, found := bytes.Cut(bytes.TrimSpace(p), []byte{'='})
		if !found || !equalFold(bytes.TrimSpace(name), "q") {
			continue
		}
		return parseQuality(bytes.TrimSpace(value))
	}
	return 1000, true
}

// parseQuality parses a qvalue: 0 or 1 with at most three decimals, at most 1 (RFC 9110 §12.4.2).
func parseQuality(v []byte) (q int, ok bool) {
	if len(v) == 0 || len(v) > 5 || v[0] != '0' && v[0] != '1' || len(v) > 1 && v[1] != '.' {
		return 0, false
	}
	q = int(v[0]-'0') * 1000
	unit := 100
	for _, c := range v[min(2, len(v)):] {
		if c < '0' || c > '9' {
			return 0, false
		}
		q += int(c-'0') * unit
		unit /= 10
	}
	return q, q <= 1000
}
