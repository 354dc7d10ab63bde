package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"strikecache/server"
	"strikecache/server/keys"
	"strikecache/snapshots"
)

const flowPath = "/api/v1/options/flow/unusual"

// withDeltas makes dictionaries of the answers of flow and of the series, see [storeOf]: it publishes an earlier flow and then
// the answers of the finder. It returns the store and the earlier flow, which is the same for both limits.
func withDeltas(t testing.TB, f *finder) (*snapshots.Store, *snapshots.Snapshot) {
	t.Helper()
	text := strings.Repeat(`"an observation of unusual activity",`, 100)
	earlier := seal(t, "options/flow/unusual", `{"items":[`+text+`1]}`)
	flow := f.editions["options/flow/unusual"]
	flow.Default = formed(t, seal(t, "options/flow/unusual", `{"items":[`+text+`2]}`))
	flow.Variants["20"], flow.Variants["100"] = flow.Default, flow.Default
	store := storeOf(t, &finder{editions: map[string]*snapshots.Edition{
		"options/flow/unusual": {Default: earlier, Variants: map[string]*snapshots.Snapshot{"100": earlier}},
	}, past: f.past})
	must(t, store.Publish(f.editions))
	return store, earlier
}

// announced is the Available-Dictionary of a client that has an answer.
func announced(s *snapshots.Snapshot) string {
	sum := sha256.Sum256(s.Body(snapshots.Identity))
	return ":" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// undo decodes a body in the coding dcz as a client does that has the answer earlier.
func undo(t testing.TB, body []byte, earlier *snapshots.Snapshot) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(0, earlier.Body(snapshots.Identity)))
	must(t, err)
	defer z.Close()
	plain, err := z.DecodeAll(body, nil) // the decoder skips the frame with the digest
	must(t, err)
	return plain
}

// A client that announces an earlier answer and accepts dcz gets the difference, with a tag of its own. Any other client
// gets the answer as without deltas.
func TestDeltas(t *testing.T) {
	f := newFinder(t)
	store, earlier := withDeltas(t, f)
	web, secrets := withKeys(t, f, func(c *server.Config) { c.Finder = store }, keys.Key{Name: "k"})
	c, flow := clientOf(t, web), f.editions["options/flow/unusual"]
	known, browser := announced(earlier), "gzip, deflate, br, zstd, dcb, dcz"
	other := announced(flow.Variants["1"])
	const variant, offers = "Accept-Encoding, X-API-Key", "Accept-Encoding, X-API-Key, Available-Dictionary"
	for _, x := range []struct {
		name, target, accepts, available, key string
		coding, vary                          string
		dictionary                            bool
	}{
		{"delta", flowPath, browser, known, "", "dcz", offers, true},
		{"delta for a query that is ignored", flowPath + "?x=1", browser, known, "", "dcz", offers, true},
		{"dcz alone", flowPath, "dcz", known, "", "dcz", offers, true},
		{"another coding preferred", flowPath, "gzip, dcz;q=0.9", known, "", "gzip", offers, true},
		{"dcz refused", flowPath, "dcz;q=0, br", known, "", "br", offers, true},
		{"dcz not named", flowPath, "br", known, "", "br", offers, true},
		{"identity", flowPath, "", known, "", "", offers, true},
		{"no dictionary", flowPath, browser, "", "", "br", offers, true},
		{"unknown dictionary", flowPath, browser, other, "", "br", offers, true},
		{"the current answer as dictionary", flowPath, browser, announced(flow.Default), "", "br", offers, true},
		{"malformed dictionary", flowPath, browser, strings.Trim(known, ":"), "", "br", offers, true},
		{"a list of dictionaries", flowPath, browser, known + ", " + known, "", "br", offers, true},
		{"a dictionary with a parameter", flowPath, browser, known + ";a=1", "", "br", offers, true},
		{"a dictionary in lower case", flowPath, browser, strings.ToLower(known), "", "br", offers, true},
		{"of another resource", "/api/v1/gex/spx/series", browser, known, "", "identity", offers, true},
		{"a parameter with deltas", flowPath + "?limit=100", browser, known, "", "dcz", offers, true},
		{"the same parameter, written in another way", flowPath + "?x=%2A&limit=%3100", browser, known, "", "dcz", offers, true},
		{"the parameter of the default", flowPath + "?limit=20", browser, known, "", "dcz", offers, true},
		{"another parameter", flowPath + "?limit=1", browser, known, "", "identity", variant, false},
		{"a resource without deltas", "/api/v1/gex/spx", browser, known, "", "br", variant, false},
		{"a key", flowPath, browser, known, secrets["k"], "br", offers, false},
	} {
		var headers []string
		for name, value := range map[string]string{"Accept-Encoding": x.accepts, "Available-Dictionary": x.available, "X-API-Key": x.key} {
			if value != "" {
				headers = append(headers, name, value)
			}
		}
		resp, body := do(t, c, "GET", x.target, headers...)
		h := resp.Header
		path, query, _ := strings.Cut(x.target, "?")
		use := ""
		if x.dictionary {
			use = `match="` + path + `?"`
		}
		if strings.HasSuffix(query, "00") {
			use = `match="` + path + `?limit=100"`
		}
		coding := h.Get("Content-Encoding")
		if resp.StatusCode != 200 || x.coding != "identity" && coding != x.coding || h.Get("Vary") != x.vary || h.Get("Use-As-Dictionary") != use {
			t.Errorf("%s: %d %v", x.name, resp.StatusCode, h)
		}
		if x.coding == "dcz" {
			want := fmt.Sprintf(`%s-dcz-%x"`, strings.TrimSuffix(flow.Default.ETag(snapshots.Identity), `"`), sum(earlier)[:8])
			if !bytes.Equal(undo(t, body, earlier), flow.Default.Body(snapshots.Identity)) || h.Get("ETag") != want || len(body) > 150 {
				t.Errorf("%s: ETag %s, want %s; %d bytes", x.name, h.Get("ETag"), want, len(body))
			}
		}
		head, none := do(t, c, "HEAD", x.target, headers...)
		if x.key == "" && (len(none) > 0 || head.ContentLength != int64(len(body)) || head.Header.Get("ETag") != h.Get("ETag")) {
			t.Errorf("%s: HEAD has %v", x.name, head.Header)
		}
		// The tag that a client has of any answer makes the next one 304, whatever the client announces then.
		for _, available := range []string{known, other, announced(flow.Default)} {
			for _, tag := range []string{h.Get("ETag"), "W/" + strings.TrimPrefix(h.Get("ETag"), "W/"), `"a", ` + h.Get("ETag")} {
				again, none := do(t, c, "GET", x.target, append(headers, "If-None-Match", tag, "Available-Dictionary", available)...)
				if again.StatusCode != http.StatusNotModified || len(none) > 0 || again.Header.Get("Vary") != x.vary || again.Header.Get("Use-As-Dictionary") != "" {
					t.Errorf("%s, with %s: %d %v", x.name, tag, again.StatusCode, again.Header)
				}
				if available == x.available && again.Header.Get("ETag") != h.Get("ETag") {
					t.Errorf("%s: the 304 has the tag %s, the 200 %s", x.name, again.Header.Get("ETag"), h.Get("ETag"))
				}
			}
		}
	}
	counted := responses(web.Stats())
	equal(t, counted[server.Responses{Resource: "options/flow/unusual", Status: 200, Coding: "dcz"}], uint64(12), "deltas counted: %v", counted)
}

func sum(s *snapshots.Snapshot) []byte {
	digest := sha256.Sum256(s.Body(snapshots.Identity))
	return digest[:]
}
