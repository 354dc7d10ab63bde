package product

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"strikecache/compute"
	"strikecache/refresh/feed"
	"strikecache/refresh/simulated"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

// past is what a store has of one product: what its answers left, by date, rising.
type past struct {
	Stored
	name      string
	summaries []snapshots.Summary
}

func (p *past) Summaries(product string) []snapshots.Summary {
	if product != p.name {
		return nil
	}
	return p.summaries
}

func (p *past) DatesOf(product string) (dates []string) {
	for _, s := range p.Summaries(product) {
		dates = append(dates, s.Date)
	}
	return dates
}

func (p *past) Current(string) *snapshots.Edition { return nil }

func (p *past) Load(string, string) (f snapshots.File, err error) { return f, snapshots.ErrNoSnapshot }

func (p *past) LoadCurrent(string) (f snapshots.File, err error) { return f, snapshots.ErrNoSnapshot }

// Every product makes an answer of documents: it gathers, computes and seals. The file of the answer alone, with the documents that it names,
// gives the same data again. Without documents there is no answer.
func TestEveryProductOfDocuments(t *testing.T) {
	at := ny(t, "2026-11-20 11:00:00")
	market := simulated.New(simulated.Config{Seed: 7, Now: func() time.Time { return at }, Calendar: calendar, Every: 6})
	b := &Batch{
		Settings: Settings{Calendar: calendar, RiskFreeRate: rate, Source: "made", Underlyings: []string{"SPX", "XLF"}}, At: at, Documents: map[upstream.Name]*feed.Document{},
		Accepted: func(upstream.Name) *feed.Document { return nil }, Memory: NewMemory(&past{}, calendar, nil), Answers: map[string]*Answer{},
	}
	for _, p := range All(b.Underlyings) {
		if a, err := p.Next(b); a != nil || err != nil && !errors.Is(err, ErrNoInput) {
			t.Errorf("%s of nothing: %v, %v", p.Name, a, err)
		}
	}
	names := append(IndexQuotes(), feed.ChainOf("SPX"), feed.ChainOf("XLF"), upstream.Settlement("2026-11-19"), upstream.History(vixIndex), upstream.History(vix3mIndex))
	for _, symbol := range compute.FundSymbols() {
		names = append(names, upstream.Quotes(symbol), upstream.History(symbol))
	}
	for _, name := range names {
		doc, err := market.Fetch(t.Context(), name, nil)
		must(t, err)
		d, err := feed.New(doc)
		must(t, err)
		b.Add(d)
	}
	for _, p := range All(b.Underlyings) {
		a, err := p.Next(b)
		if err == nil && a != nil {
			b.Answers[p.Name] = a
			err = errors.Join(a.Usable(), a.Seal(time.Minute, snapshots.Freshness{State: "fresh"}))
		}
		if err != nil || a == nil {
			t.Errorf("%s: %v, %v", p.Name, a, err)
			continue
		}
		objects := map[string][]byte{}
		for _, o := range a.Objects() {
			objects[o.SHA256] = o.Body
		}
		f := a.File(true)
		in, err := InputsOf(&f, func(sha256 string) ([]byte, error) { return objects[sha256], nil })
		must(t, err)
		again, err := p.Answer(in)
		must(t, err)
		if !again.Matches(a.Edition, time.Minute) || a.Edition.Default.Meta.Source != "made" || f.Product != p.Name {
			t.Errorf("%s: its file gives another answer", p.Name)
		}
	}
}

// Rule 3: an answer belongs to the file of its date if it was computed on that UTC date. That of a daily product also does if the date has
// no file yet, and what is played always does.
func TestDated(t *testing.T) {
	now := func(upstream.Name) *feed.Document { return nil }
	afternoon, settled := ny(t, "2026-11-20 16:14:59"), calendar.FuturesSettlement(compute.NewDate(2026, 11, 20))
	for _, c := range []struct {
		what, product string
		asOf          time.Time
		at            string // of the computation, UTC
		stored        string // date of the product's only file
		accepted      func(upstream.Name) *feed.Document
		want          bool
	}{
		{"the same UTC date", GammaResource, afternoon, "2026-11-20 23:59:59", "", now, true},
		{"again", GammaResource, afternoon, "2026-11-20 23:59:59", "2026-11-20", now, true},
		{"the next UTC date", GammaResource, afternoon, "2026-11-21 00:00:00", "", now, false},
		{"a minute into it", GammaResource, afternoon, "2026-11-21 00:01:00", "2026-11-20", now, false},
		{"a clock that was set back", GammaResource, afternoon, "2026-11-19 12:00:00", "", now, false},
		{"settlements of the evening", VIXResource, settled, "2026-11-20 23:45:00", "2026-11-20", now, true},
		{"late settlements, without a file", VIXResource, settled, "2026-11-23 15:00:00", "", now, true},
		{"beside the file of another date", VIXResource, settled, "2026-11-23 15:00:00", "2026-11-19", now, true},
		{"with a file", VIXResource, settled, "2026-11-23 15:00:00", "2026-11-20", now, false},
		{"settlements after midnight, with a file", VIXResource, settled, "2026-11-21 00:01:00", "2026-11-20", now, false},
		{"what is played", GammaResource, afternoon, "2026-11-23 15:00:00", "2026-11-20", nil, true},
	} {
		store := &past{name: c.product}
		if c.stored != "" {
			store.summaries = []snapshots.Summary{{Date: c.stored}}
		}
		at, err := time.Parse(time.DateTime, c.at)
		must(t, err)
		b := &Batch{At: at, Accepted: c.accepted, Memory: NewMemory(store, calendar, nil)}
		if got := b.Dated(&Answer{Product: Named(c.product), AsOf: c.asOf}); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// What is played belongs to the file of its date.
func TestWhatIsPlayedIsDated(t *testing.T) {
	b := &Batch{At: ny(t, "2026-11-23 10:00:00")}
	if !b.Dated(&Answer{Product: Named(GammaResource), AsOf: ny(t, "2026-11-20 16:14:59")}) {
		t.Error("it does not")
	}
}

// The history has one day a session, at most 251: of a session that trades into the next UTC date, the later answer counts.
func TestVolatilityHistoryOfSessions(t *testing.T) {
	store := &past{name: "volatility/spx"}
	add := func(date, session compute.Date, atm int) {
		store.summaries = append(store.summaries, snapshots.Summary{Date: date.String(), Body: fmt.Appendf(nil, `{"session":%q,"close":null,"atm_30d":%d}`, session, atm)})
	}
	friday := compute.NewDate(2026, 11, 13)
	d := calendar.Back(friday, 300)
	for i := range 300 {
		add(d, d, i-300)
		d = calendar.Next(d)
	}
	add(friday, friday, 1)
	add(friday+1, friday, 2) // until 20:00 New York
	add(friday+3, friday+3, 3)
	for before, want := range map[compute.Date][]float64{friday + 7: {-249, 2, 3}, friday + 3: {-250, -1, 2}, friday: {-251, -2, -1}} {
		days, err := NewMemory(store, calendar, nil).VolatilityDays(store.name, before)
		must(t, err)
		var values []float64
		for _, day := range days {
			values = append(values, float64(*day.ATM30))
		}
		if n := len(values); n != compute.VolatilityHistory || !slices.Equal([]float64{values[0], values[n-2], values[n-1]}, want) {
			t.Errorf("before %s: %d days, %v … %v, want %v", before, n, values[0], values[n-2:], want)
		}
	}
}
