package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A stored day is recomputed beside its server. An input that is altered is named, also by verify.
func TestRecompute(t *testing.T) {
	t.Parallel()
	chain, dir := shared(t).envelope(gammaPath).Meta.Receipt.Named[0], storedDay(t)
	input := filepath.Join(dir, "simulated", "objects", chain.SHA256+".gz")
	body, err := os.ReadFile(input)
	must(t, err)
	body[len(body)/2] ^= 1
	must(t, errors.Join(os.Remove(input), os.WriteFile(input, body, 0o600))) // other links keep the old content
	for _, c := range []struct {
		code  int
		args  []string
		wants []string
	}{
		{0, []string{"recompute", "--data-dir", market.dir, "--date", marketDay, "--product", "spx-max-pain"}, []string{"spx-max-pain identical, "}},
		{0, []string{"recompute", "--data-dir", market.dir, "--date", earlierDay, "--product", "gex/spx"}, []string{"gex/spx identical\n"}},
		{3, []string{"recompute", "--data-dir", dir, "--date", marketDay, "--product", "gex/spx"}, []string{"gex/spx inputs_gone\n  " + chain.SHA256, "altered", "inputs_gone: gex/spx"}},
		{0, []string{"recompute", "--data-dir", dir, "--date", marketDay, "--product", "sectors/rotation"}, []string{"sectors/rotation identical\n"}},
		{1, []string{"recompute", "--data-dir", dir, "--date", "2001-01-01"}, []string{"nothing of 2001-01-01 is stored"}},
		{1, []string{"recompute", "--data-dir", dir, "--date", marketDay, "--product", "gex/zzz"}, []string{"no gex/zzz of " + marketDay + " is stored"}},
		{1, []string{"verify", "--data-dir", dir}, []string{input, ", 1 bad"}},
	} {
		out, errs, code := run(t, command(t, c.args...))
		for _, want := range c.wants {
			if code != c.code || !strings.Contains(out+errs, want) {
				t.Errorf("%q: exit %d, %s%s, want %d, %q", c.args, code, out, errs, c.code, want)
			}
		}
	}
}
