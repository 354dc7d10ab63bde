package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
)

// oneFile is a source that gives the same answer to every request.
type oneFile struct {
	doc *upstream.Document
	err error
}

func (s oneFile) Offers(upstream.Name) bool { return true }

func (s oneFile) Fetch(context.Context, upstream.Name, *upstream.Document) (*upstream.Document, error) {
	return s.doc, s.err
}

const (
	settlementHead = "Product,Symbol,Expiration Date,Price\r\n"
	december       = "VX,VX/Z6,2026-12-16,18.1\r\n"
	january        = "VX,VX/F7,2027-01-20,18.9\r\n"
	february       = "VX,VX/G7,2027-02-17,19.4\r\n"
)

// The result of a settlement file for a date that is due, before and after the date is overdue.
func TestFetchSettlement(t *testing.T) {
	file := func(date, rows string) oneFile {
		return oneFile{doc: &upstream.Document{Name: upstream.Settlement("2026-11-20"), Body: []byte(settlementHead + rows), FileDate: date}}
	}
	failed := func(reason upstream.Reason) oneFile {
		return oneFile{err: &upstream.Error{Reason: reason, Err: errors.New("x")}}
	}
	eight := december
	for month := compute.NewDate(2027, time.January, 1); month.Month() < time.August; month = month.AddMonths(1) {
		eight += fmt.Sprintf("VX,VX/%c7,%s,20\r\n", "FGHJKMNQ"[month.Month()-1], cal.VIXExpiration(2027, month.Month()))
	}
	for _, c := range []struct {
		name        string
		source      oneFile
		early, late upstream.Reason // "": none
		kept        string          // date of the file that is held then
	}{
		{"the file", file("2026-11-20", december+january), "", "", "2026-11-20"},
		{"no date", file("", december+january), "", "", "2026-11-20"},
		{"an older one", file("2026-11-19", december+january), "", upstream.Older, "2026-11-19"},
		{"a header alone", file("2026-11-20", ""), "", upstream.Empty, ""},
		{"404", failed(upstream.Missing), "", upstream.Missing, ""},
		{"403", failed(upstream.Refused), "", upstream.Refused, ""},
		{"no connection", failed(upstream.Unreachable), upstream.Unreachable, upstream.Unreachable, ""},
		{"a file of the future", file("2026-11-24", december+january), upstream.ClockAhead, upstream.ClockAhead, ""},
		{"garbage elsewhere", file("2026-11-20", december+january+"VXM,VXM/Z6,2026-12-16,n/a\r\n"), "", "", "2026-11-20"},
		{"garbage for the last month", file("2026-11-20", december+january+"VX,VX/G7,2027-02-17,n/a\r\n"), "", "", "2026-11-20"},
		{"garbage for the first month", file("2026-11-20", "VX,VX/Z6,2026-12-16,n/a\r\n"+january+february), upstream.Malformed, upstream.Malformed, ""},
		{"garbage between", file("2026-11-20", december+"VX,VX/F7,2027-01-20,n/a\r\n"+february), upstream.Malformed, upstream.Malformed, ""},
		{"no row between", file("2026-11-20", december+february), upstream.Malformed, upstream.Malformed, ""},
		{"no row for the first month", file("2026-11-20", january+february), upstream.Malformed, upstream.Malformed, ""},
		{"a quarter after eight months", file("2026-11-20", eight+"VX,VX/X7,2027-11-17,21\r\n"), "", "", "2026-11-20"},
	} {
		for at, want := range map[string]upstream.Reason{"2026-11-23 10:59:00": c.early, "2026-11-23 11:01:00": c.late} {
			now := ny(t, at)
			r := New(Config{Source: Raw(c.source), Underlyings: []string{"SPX"}, Calendar: cal, Clock: feed.NewClock(now, 0), Log: slog.New(slog.DiscardHandler)})
			due := settlementDue(now, cal)
			b := r.newBatch()
			err := r.inTurn(func() error { return r.fetchSettlement(t.Context(), b, due) })
			var got upstream.Reason
			if err != nil {
				got = reasonOf(err)
			}
			held := ""
			if f := b.Settlement(); f != nil {
				held = f.Date.String()
				if name := b.Document(feed.LatestSettlement).Name; name != "settlement/"+held+".csv" { // whatever was asked for
					t.Errorf("%s: a file of %s has the name %s", c.name, held, name)
				}
			}
			if got != want || held != c.kept || due.String() != "2026-11-20" {
				t.Errorf("%s at %s: %q (%v), holding %q; want %q, %q", c.name, at, got, err, held, want, c.kept)
			}
		}
	}
}
