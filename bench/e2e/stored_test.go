package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recompute runs the command on a date.
func recompute(t testing.TB, dir, date string, more ...string) (out, errs string, code int) {
	t.Helper()
	return run(t, command(t, append([]string{"recompute", "--data-dir", dir, "--date", date}, more...)...))
}

// storedInput returns the path of the chain that the current gamma answer names.
func (p *process) storedInput(dir string) string {
	p.t.Helper()
	e := p.envelope(gammaPath)
	var names []string
	for _, in := range e.Meta.Receipt.Named {
		names = append(names, in.Name)
	}
	// The session before is stored only during the back-fill, which the first answer does not wait for.
	if got := strings.Join(names, " "); got != "options/_SPX.json" && got != "options/_SPX.json previous/options/_SPX.json" {
		p.t.Fatalf("the inputs are %s", got)
	}
	return filepath.Join(dir, e.Meta.Source, "objects", e.Meta.Receipt.Named[0].SHA256+".gz")
}

// A stored day is recomputed beside its server, and an input that is altered or gone is named.
func TestRecompute(t *testing.T) {
	t.Parallel()
	p, dir := shared(t), storedDay(t)
	input := p.storedInput(dir)
	digest := strings.TrimSuffix(filepath.Base(input), ".gz")
	from := market.dir // beside the server
	expect := func(date string, code int, args []string, wants ...string) {
		t.Helper()
		out, errs, got := recompute(t, from, date, args...)
		for _, want := range wants {
			if got != code || !strings.Contains(out+errs, want) {
				t.Errorf("recompute %s: exit %d, %s%s, want %d, %q", date, got, out, errs, code, want)
			}
		}
	}
	expect(earlierDay, 0, nil, "gex/spx identical\n", "sectors/rotation identical\n")
	expect(marketDay, 0, nil, "gex/spx identical\n", "sectors/rotation identical\n", "options/flow/unusual identical\n", "spx-max-pain identical, ")
	from = dir
	body, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)/2] ^= 1
	if err := errors.Join(os.Remove(input), os.WriteFile(input, body, 0o600)); err != nil { // other links keep the old content
		t.Fatal(err)
	}
	expect(marketDay, 3, nil, "gex/spx inputs_gone\n  "+digest, "altered", "sectors/rotation identical")
	if out, _, code := run(t, command(t, "verify", "--data-dir", dir)); code != 1 || !strings.Contains(out, input) || !strings.Contains(out, ", 1 bad") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	if err := os.Remove(input); err != nil {
		t.Fatal(err)
	}
	expect(marketDay, 3, nil, digest, "inputs_gone: gex/spx, gex/spx/intraday, gex/spx/series, gex/spx/matrix, spx-max-pain, options/flow/unusual")
	expect(marketDay, 0, []string{"--product", "sectors/rotation"}, "sectors/rotation identical\n")
	expect("2001-01-01", 1, nil, "nothing of 2001-01-01 is stored")
}
