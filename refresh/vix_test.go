package refresh

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// oneFile is a source with one answer to everything.
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

// What a settlement file says of a date that is due, and what it means before and after it is overdue.
func TestFetchSettlement(t *testing.T) {
	file := func(date, rows string) oneFile {
		return oneFile{doc: &upstream.Document{Body: []byte(settlementHead + rows), FileDate: date}}
	}
	failed := func(reason upstream.Reason) oneFile {
		return oneFile{err: &upstream.Error{Reason: reason, Err: errors.New("x")}}
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
		{"a file of the future", file("2026-11-24", december+january), upstream.Malformed, upstream.Malformed, ""},
		{"garbage elsewhere", file("2026-11-20", december+january+"VXM,VXM/Z6,2026-12-16,n/a\r\n"), "", "", "2026-11-20"},
		{"garbage for the last month", file("2026-11-20", december+january+"VX,VX/G7,2027-02-17,n/a\r\n"), "", "", "2026-11-20"},
		{"garbage for the first month", file("2026-11-20", "VX,VX/Z6,2026-12-16,n/a\r\n"+january+february), upstream.Malformed, upstream.Malformed, ""},
		{"garbage between", file("2026-11-20", december+"VX,VX/F7,2027-01-20,n/a\r\n"+february), upstream.Malformed, upstream.Malformed, ""},
		{"a gap of its own", file("2026-11-20", december+february), "", "", "2026-11-20"},
	} {
		for at, want := range map[string]upstream.Reason{"2026-11-23 10:59:00": c.early, "2026-11-23 11:01:00": c.late} {
			now := ny(t, at)
			r := &Refresher{cfg: Config{Source: c.source}, cal: cal, log: slog.New(slog.DiscardHandler)}
			due := settlementDue(now, cal)
			err := r.fetchSettlement(t.Context(), due, now)
			var got upstream.Reason
			if err != nil {
				got = reasonOf(err)
			}
			held := ""
			if r.vix.file.date != 0 {
				held = r.vix.file.date.String()
			}
			if got != want || held != c.kept || due.String() != "2026-11-20" {
				t.Errorf("%s at %s: %q (%v), holding %q; want %q, %q", c.name, at, got, err, held, want, c.kept)
			}
		}
	}
}

// The state of an index of the flow universe, whose document has an underscore, is found again after a restart.
func TestIndicesAreRestored(t *testing.T) {
	store, err := snapshots.Open(snapshots.Options{
		Dir: t.TempDir(), Source: "cboe", Feeds: Feeds(), HistoricalProduct: GammaResource, HistoryBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	state := `{"source":{"listed":100,"captured_at":"2026-11-20T15:00:00Z"}}`
	if err := store.SaveState(chainState+"NDX", "2026-11-20", []byte(state)); err != nil {
		t.Fatal(err)
	}
	r := New(Config{
		Source: oneFile{}, Store: store, Clock: NewClock(ny(t, "2026-11-20 11:00:00"), 1), Calendar: cal, FlowSymbols: []string{"_NDX"},
		Log: slog.New(slog.DiscardHandler),
	})
	r.restoreFlow("2026-11-20")
	if got := strings.Join(r.flow.served(), " "); got != "NDX" || r.flow.guards["_NDX"].accepted.rows != 100 {
		t.Errorf("restored %q", got)
	}
}
