package snapshots

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A cut has the bytes that the same data has when it is sealed alone, in Identity, with other meta and for a caller with a key, too. It
// takes no more memory than what is its own.
func TestCut(t *testing.T) {
	rows := make([]string, 60)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"row":%d,"text":%q}`, i, strings.Repeat("x", i))
	}
	data := func(n int) []byte {
		return fmt.Appendf(nil, `{"items":[%s],"count":%d}`, strings.Join(rows[:n], ","), n)
	}
	whole, err := Seal(data(len(rows)), meta(), Brotli, Zstd)
	must(t, err)
	var cuts []Cut
	for n := 1; n < len(rows); n++ {
		cuts = append(cuts, Cut{len(`{"items":[`) + len(strings.Join(rows[:n], ",")), fmt.Appendf(nil, `],"count":%d}`, n)})
	}
	got, err := whole.Cut(cuts)
	must(t, err)
	stale, reason := meta(), "timeout"
	stale.Freshness = Freshness{State: "stale", Reason: &reason}
	for i, cut := range got {
		for _, m := range []Meta{meta(), stale} {
			want, err := Seal(data(i+1), m, Brotli, Zstd)
			must(t, err)
			if m.Freshness != meta().Freshness {
				m.Receipt = cut.Meta.Receipt
				cut, err = cut.Reseal(m)
				must(t, err)
			}
			sameBytes(t, cut.Body(Identity), want.Body(Identity), "%d rows", i+1)
			sameBytes(t, cut.Data(), want.Data(), "%d rows", i+1)
			usage := []byte(`{"tier":"keyed"}`)
			sameBytes(t, cut.AppendTail(bytes.Clone(cut.Prefix(Identity)), Identity, usage), want.AppendTail(bytes.Clone(want.Prefix(Identity)), Identity, usage), "keyed, %d rows", i+1)
			equal(t, cut.tags, want.tags, "tags of %d rows", i+1)
			equal(t, cut.Size(Identity), len(want.Body(Identity)), "size of %d rows", i+1)
			failIf(t, cut.Has(Gzip) || cut.Size(Gzip) != 0 || int(cut.cost()) != cut.Size(Identity)-len(cut.head), "%d rows: gzip, or cost %d", i+1, cut.cost())
		}
	}
}

// Of a date, the store serves what Reopen makes of the file, read from the disk and right after it was saved or accepted.
func TestReopen(t *testing.T) {
	variant := sealed(t, `"a variant"`)
	o := options(t.TempDir())
	o.Reopen = map[string]func(*Edition) (*Edition, error){gamma: func(e *Edition) (*Edition, error) {
		return &Edition{Default: e.Default, Variants: map[string]*Snapshot{"7": variant}}, nil
	}}
	s := openWith(t, o)
	stored := single(t, `"stored"`)
	stored.Served, _ = o.Reopen[gamma](stored.Edition)
	must(t, save(s, gamma, friday, stored))
	other := openWith(t, Options{Dir: t.TempDir(), Source: o.Source, DatedProducts: o.DatedProducts, Reopen: o.Reopen, HistoryBytes: o.HistoryBytes, Log: o.Log})
	path := friday + "/gex-spx"
	file, digest, err := s.Bytes(path)
	must(t, err)
	must(t, other.Accept(path, digest, file, []string{gamma}, stored.Edition.Default.Meta.AsOf))
	check := func(s *Store, when string) {
		e, err := s.Historical(gamma, friday)
		must(t, err)
		failIf(t, e.Variants["7"] != variant || string(e.Default.Data()) != `"stored"`, "%s: %v", when, e)
	}
	check(s, "saved")
	check(reopen(t, s), "started")
	check(other, "accepted")
}
