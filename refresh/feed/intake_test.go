package feed

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// quoteOf is a quote of XLK at a price.
func quoteOf(price float64, at time.Time) *upstream.Document {
	return &upstream.Document{Name: upstream.Quotes("XLK"), Received: at, ETag: "e", Body: fmt.Appendf(nil,
		`{"timestamp":%q,"data":{"symbol":"XLK","current_price":%v,"last_trade_time":%q}}`, at.Format(time.DateTime), price, at.In(compute.NewYork).Format("2006-01-02T15:04:05"))}
}

// A start adopts the newest of the documents that stored answers name. The first request is unconditional, and its document is compared
// with the adopted one, which is read then. One that cannot be read is accepted no more.
func TestIntakeAdoptsStoredDocuments(t *testing.T) {
	now, name := ny(t, "2026-11-20 11:00:00"), upstream.Quotes("XLK")
	var log bytes.Buffer
	for _, gone := range []bool{false, true} {
		i := NewIntake(NewClock(now, 1), cal, slog.New(slog.NewTextHandler(&log, nil)))
		bodies := map[string][]byte{}
		adopt := func(name string, doc *upstream.Document) {
			sum := snapshots.Digest(doc.Body)
			bodies[sum] = doc.Body
			i.Adopt(snapshots.StoredInput{Input: snapshots.Input{Name: name, SHA256: sum}, Received: doc.Received}, compute.UnderlyingQuote{}, func(sha256 string) ([]byte, error) {
				if gone {
					return nil, snapshots.ErrGone
				}
				return bodies[sha256], nil
			})
		}
		adopt(PreviousDir+string(name), quoteOf(50, now))
		adopt(StateDir+"x", quoteOf(50, now))
		if i.Document(name) != nil {
			t.Error("a document of the session before is accepted")
		}
		newest := quoteOf(100, now.Add(-time.Minute))
		adopt(string(name), newest)
		adopt(string(name), quoteOf(50, now.Add(-time.Hour)))
		if d := i.Document(name); d == nil || d.SHA256 != snapshots.Digest(newest.Body) || i.Since(name) != nil {
			t.Fatalf("adopted %+v, to be compared with %+v", d, i.Since(name))
		}
		_, err := i.Take(quoteOf(70, now))
		if refused := upstream.ReasonOf(err) == upstream.PriceJump; err == nil && !gone || err != nil && (gone || !refused) || gone != (i.Document(name) == nil) {
			t.Fatalf("gone %v: %v", gone, err)
		}
		d, err := i.Take(quoteOf(101, now))
		must(t, err)
		i.Accept(map[upstream.Name]*Document{d.Key(): d})
		if i.Document(name) != d || i.Since(name) == nil || i.Since(name).ETag != "e" || i.Since(name).Body != nil {
			t.Errorf("accepted %+v, to be compared with %+v", i.Document(name), i.Since(name))
		}
		if d.Failed = true; i.Since(name) != nil {
			t.Error("what failed is not asked for again")
		}
	}
	if n := strings.Count(log.String(), "stored document not readable"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
}

// A part of a price history does not replace the whole one, unless the upstream sends it in three hours, however often it is read.
func TestAHistoryThatShrinks(t *testing.T) {
	at, name := ny(t, "2026-11-20 10:00:00"), upstream.History("XLK")
	history := func(rows int) []byte {
		d, closes := compute.NewDate(2026, 11, 19), []string{}
		for range rows {
			closes = append([]string{fmt.Sprintf(`{"date":%q,"close":100}`, d)}, closes...)
			d = cal.Previous(d)
		}
		return fmt.Appendf(nil, `{"data":[%s]}`, strings.Join(closes, ","))
	}
	i := NewIntake(NewClock(at, 1), cal, slog.New(slog.DiscardHandler))
	whole, err := i.Take(&upstream.Document{Name: name, Received: at, Body: history(100)})
	must(t, err)
	i.Accept(map[upstream.Name]*Document{whole.Key(): whole})
	for minute := 0; minute < 180; minute += 12 {
		_, err := i.Take(&upstream.Document{Name: name, Received: at.Add(time.Duration(minute) * time.Minute), Body: history(49)})
		var refused *upstream.Error
		if accepted := minute >= 120; (err == nil) != accepted || err != nil && (!errors.As(err, &refused) || refused.Reason != upstream.Shrunk) {
			t.Errorf("after %d minutes: %v", minute, err)
		}
	}
}
