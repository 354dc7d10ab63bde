package product

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"strikecache/bench/testkit"
	"strikecache/compute"
	"strikecache/snapshots"
)

const spx = "options/_SPX.json"

// verifier returns a command of Python that knows bench/clients/verify.py, which was written from compute/METHODS.md alone. Without Python it
// skips the test.
func verifier(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "python3"), args...)
	cmd.Dir = filepath.Join("..", "..", "bench", "clients")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// answers are sealed answers in a folder, with their inputs, for one run of the verifier.
type answers struct {
	testing.TB
	dir     string
	files   []string
	altered map[string]string // the path of the altered value, by file
}

func newAnswers(t testing.TB) *answers {
	return &answers{t, t.TempDir(), nil, map[string]string{}}
}

// seal adds an answer of a resource. It returns the default answer.
func (a *answers) seal(resource string, rate float64, inputs ...madeInput) *snapshots.Snapshot {
	a.Helper()
	s, _ := a.sealRow(resource, rate, inputs...)
	return s
}

// sealRow is seal, and returns the state of the series with the row of the answer.
func (a *answers) sealRow(resource string, rate float64, inputs ...madeInput) (*snapshots.Snapshot, madeInput) {
	a.Helper()
	for _, in := range inputs {
		a.write(fmt.Sprintf("%x", sha256.Sum256(in.Body)), in.Body)
	}
	e, row := sealMade(a, resource, rate, inputs...)
	a.add(resource, e.Default.Body(snapshots.Identity), "")
	return e.Default, madeInput{Name: "state/series-rows", Body: fmt.Appendf(nil, "[%s]", row)}
}

// add adds an answer in which the value at a path is altered, or none.
func (a *answers) add(resource string, body []byte, path string) {
	name := fmt.Sprintf("%d-%s.json", len(a.files), strings.ReplaceAll(resource, "/", "-"))
	a.write(name, body)
	a.files, a.altered[name] = append(a.files, name), path
}

func (a *answers) write(name string, body []byte) {
	must(a, os.WriteFile(filepath.Join(a.dir, name), body, 0o600))
}

// verify runs the verifier once over all answers.
func (a *answers) verify() {
	a.Helper()
	args := []string{"verify.py", "--quiet", "--documents", a.dir}
	for _, name := range a.files {
		args = append(args, filepath.Join(a.dir, name))
	}
	var stderr bytes.Buffer
	cmd := verifier(a, args...)
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	differs := false
	for _, path := range a.altered {
		differs = differs || path != ""
	}
	if code := cmd.ProcessState.ExitCode(); (code == 1) != differs || code > 1 {
		a.Errorf("exit code %d, and that something differs is %v", code, differs)
	}
	if len(a.files) == 1 { // one answer has no heading
		out = fmt.Appendf(nil, "%s/%s\n%s", a.dir, a.files[0], out)
	}
	found := 0
	for block := range strings.SplitSeq(string(out), "\n"+a.dir+"/") {
		head, rest, _ := strings.Cut(strings.TrimPrefix(block, a.dir+"/"), "\n")
		table, summary, ok := strings.Cut(rest, " checks, ")
		if !ok {
			continue
		}
		found++
		if path := a.altered[head]; strings.HasPrefix(summary, "0 differ") == (path != "") {
			a.Errorf("%s, altered at %q: %s\n%s", head, path, summary, table)
		}
	}
	if found != len(a.files) {
		a.Fatalf("%d of %d answers were verified\n%.2000s\n%s", found, len(a.files), out, &stderr)
	}
}

// nameOf returns the name of the chain of a market.
func (m synthetic) nameOf() string {
	if !compute.UnderlyingOf(m.head.Symbol).American() {
		return "options/_" + m.head.Symbol + ".json"
	}
	return "options/" + m.head.Symbol + ".json"
}

// gamma adds the answer of gex/{u} on the chain of a market, and on that of the session before if there is one.
func (a *answers) gamma(m synthetic, before *synthetic) (g map[string]any) {
	a.Helper()
	inputs := []madeInput{{Name: m.nameOf(), Body: m.body}}
	if before != nil {
		inputs = append(inputs, madeInput{Name: "previous/" + m.nameOf(), Body: before.body})
	}
	u := strings.ToLower(m.head.Symbol)
	a.seal("gex/"+u+"/open-interest", m.rate, inputs...)
	must(a, json.Unmarshal(a.seal("gex/"+u, m.rate, inputs...).Body(snapshots.Identity), &g))
	return g
}

// surfaces adds the matrix and the volatility of a market.
func (a *answers) surfaces(m synthetic) {
	a.Helper()
	u, chain := strings.ToLower(m.head.Symbol), madeInput{Name: m.nameOf(), Body: m.body}
	a.seal("gex/"+u+"/matrix", m.rate, chain)
	a.seal("volatility/"+u, m.rate, chain, madeInput{Name: "state/volatility-history", Body: []byte("[]")})
}

// every adds the answers of all resources that rest on the chain of a market. It returns that of gex/{u}.
func (a *answers) every(m synthetic) map[string]any {
	a.Helper()
	u, chain := strings.ToLower(m.head.Symbol), madeInput{Name: m.nameOf(), Body: m.body}
	g := a.gamma(m, nil)
	a.surfaces(m)
	a.seal("gex/"+u+"/levels", m.rate, chain)
	if n := a.seal("gex/"+u+"/summary", m.rate, chain).Size(snapshots.Identity); n >= 1500 {
		a.Errorf("the summary of %s has %d bytes", u, n)
	}
	a.seal("gex/"+u+"/intraday", m.rate, chain, madeInput{Name: "state/track-rows", Body: []byte("[]")})
	a.seal("gex/"+u+"/strikes", m.rate, chain, madeInput{Name: "state/track-rows", Body: []byte("[]")})
	a.seal(FlowResource, m.rate, flowStateFrom(m.head.Symbol, a.seal("options/flow/"+u, m.rate, chain)))
	if len(g["data"].(map[string]any)["by_expiration"].([]any)) > 0 {
		_, row := a.sealRow(u+"-max-pain", m.rate, chain)
		a.seal(u+"-max-pain/series", m.rate, chain, row)
	}
	return g
}

// dataOf decodes the data of an answer.
func dataOf[T any](t testing.TB, s *snapshots.Snapshot) (v T) {
	t.Helper()
	must(t, json.Unmarshal(s.Data(), &v))
	return v
}
