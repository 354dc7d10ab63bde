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

// A stored day is recomputed beside its server, and an input that is altered or gone is named.
func TestRecompute(t *testing.T) {
	t.Parallel()
	chain, dir := shared(t).envelope(gammaPath).Meta.Receipt.Named[0], storedDay(t)
	digest, input := chain.SHA256, filepath.Join(dir, "simulated", "objects", chain.SHA256+".gz")
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
	expect(earlierDay, 0, nil, "gex/spx identical\n", "sectors/rotation identical\n", "vix-term-structure identical\n")
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
	expect(marketDay, 3, nil, digest, "inputs_gone: gex/spx, gex/spx/intraday, gex/spx/levels, gex/spx/matrix, gex/spx/series, options/flow/unusual, spx-max-pain, volatility/spx, volatility/spx/series")
	expect(marketDay, 0, []string{"--product", "sectors/rotation"}, "sectors/rotation identical\n")
	expect("2001-01-01", 1, nil, "nothing of 2001-01-01 is stored")
}
