package snapshots

import (
	"bytes"
	"testing"
	"time"
)

func TestSealPage(t *testing.T) {
	body := bytes.Repeat([]byte("<p>a page</p>\n"), 100)
	s, err := SealPage(body, time.Date(2026, 11, 20, 15, 0, 0, 999, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]bool{}
	for c := range Codings {
		plain, err := decompress(c, s.Body(c), len(body))
		if err != nil || !bytes.Equal(plain, body) {
			t.Errorf("%v: %v, %d bytes", c, err, len(plain))
		}
		tags[s.ETag(c)] = true
	}
	if len(tags) != int(Codings) || s.LastModified() != "Fri, 20 Nov 2026 15:00:00 GMT" {
		t.Errorf("%v %s", tags, s.LastModified())
	}
	other, err := SealPage(body[1:], time.Time{})
	if err != nil || other.Matches([]byte(s.ETag(Gzip))) {
		t.Errorf("another page has the same tag: %v", err)
	}
}
