package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"strikecache/compute"
)

// verifier returns a command of bench/clients/verify.py.
func verifier(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(installed(t, "python3"), append([]string{filepath.Join(root, "bench", "clients", "verify.py")}, args...)...)
	cmd.Env = append(os.Environ(), "no_proxy=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// verifies verifies an answer, given by its URL or as a file, with a folder of documents, and compares the names of the differing
// figures.
func verifies(t testing.TB, documents, answer string, differing ...string) {
	t.Helper()
	stdout, stderr, code := run(t, verifier(t, "--documents", documents, answer))
	_, summary, _ := strings.Cut(stdout, " checks, ")
	got := strings.Split(strings.TrimSpace(summary), "\n  ")[1:]
	if code != min(len(differing), 1) || !slices.Equal(got, differing) {
		t.Errorf("%s: exit %d, %q differ, want %q\n%s%s", answer, code, got, differing, stdout, stderr)
	}
}

// edit replaces the first match of a pattern in an answer.
type edit struct{ pattern, with string }

// edited returns a file with an edited answer. The digest of the data is then corrected, as if a server had computed something
// else.
func edited(t testing.TB, answer []byte, edits ...edit) string {
	t.Helper()
	old := answer
	for _, e := range edits {
		at := regexp.MustCompile(e.pattern).FindIndex(answer)
		if at == nil {
			t.Fatalf("%s does not occur in %.200s", e.pattern, answer)
		}
		answer = slices.Concat(answer[:at[0]], []byte(e.with), answer[at[1]:])
	}
	var before, after struct{ Data json.RawMessage }
	for body, into := range map[*[]byte]any{&old: &before, &answer: &after} {
		if err := json.Unmarshal(*body, into); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(data []byte) []byte { return fmt.Appendf(nil, "%x", sha256.Sum256(data)) }
	return writeFile(t, filepath.Join(t.TempDir(), "answer.json"), string(bytes.Replace(answer, digest(before.Data), digest(after.Data), 1)))
}

// A program that has only the methods page, the answers and the stored documents finds the same figures and digests: of past dates,
// and of an index with other roots and hours than SPX, a fund and a stock. In an answer with a wrong figure it finds only that one.
func TestAnswersAreVerified(t *testing.T) {
	t.Parallel()
	p := shared(t)
	documents := filepath.Join(market.dir, "simulated", "objects")
	for _, target := range []string{datePath + earlierDay, volPath + "/historical?date=" + earlierDay, painPath + "?expiration=2026-12-18"} {
		verifies(t, documents, p.url+target)
	}
	for _, wrong := range []struct{ underlying, pattern, with, name string }{
		{"ndx", `"spot_source":"index"`, `"spot_source":"implied"`, "§1.0 spot_source"},
		{"spy", `"time":-?\d`, `"time":9`, "§1.5 net_gex_dollars.time"},
		{"aapl", `"gross_beyond_60_days_pct":\d`, `"gross_beyond_60_days_pct":9`, "§1.8 gross_beyond_60_days_pct"},
	} {
		gamma := strings.Replace(gammaPath, "spx", wrong.underlying, 1)
		resp, answer := p.get(gamma)
		if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"changes":{`)) {
			t.Errorf("%s is not compared with the session before: %.300s", gamma, answer)
			continue
		}
		for _, path := range []string{matrixPath, volPath, painPath} {
			verifies(t, documents, p.url+strings.Replace(path, "spx", wrong.underlying, 1))
		}
		verifies(t, documents, edited(t, answer, edit{wrong.pattern, wrong.with}), wrong.name)
	}
	figure(t, "12 answers of the simulated market verified by a second program, and in 3 of them one wrong figure named")
}

// The same for a real chain, whose answers agree with the OpenAPI document: it has oddities that the simulated chain does not
// have.
func TestRecordedAnswersAreVerified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serveReady(t, "--data-dir", dir, "--source", "replay", "--folder", filepath.Join(recorded(t), "replay"), "--anonymous-rate", "600")
	documents := filepath.Join(dir, "replay", "objects")
	p.until("the answer is stored", func() bool {
		_, _, code := run(t, command(t, "recompute", "--data-dir", dir, "--source", "replay", "--date", "2026-08-11"))
		return code == 0
	})
	c := newContract(p)
	for _, target := range targets {
		status := http.StatusOK
		if target == sectorsPath {
			status = http.StatusServiceUnavailable // no history is recorded
		}
		c.ask(status, http.MethodGet, target)
	}
	for _, target := range []string{gammaPath, matrixPath, volPath, painPath, painPath + "?expiration=2026-08-21", painPath + "?expiration=2026-09-17"} {
		verifies(t, documents, p.url+target)
	}
}

// The sums of a chain of three contracts are served as whole dollars. Of one series only the strike 0 has a volatility.
func TestSmallChainIsVerified(t *testing.T) {
	t.Parallel()
	in, dir, now := newInbox(t), t.TempDir(), time.Now()
	in.put("options/_SPX.json", fmt.Sprintf(`{"timestamp":%q,"data":{"symbol":"SPX","current_price":7500,"last_trade_time":%q,"options":[
		{"option":"SPXW%sC07500000","bid":100,"ask":102,"open_interest":1},
		{"option":"SPXW%[4]sP00000000","iv":0.5,"open_interest":1},{"option":"SPXW%[4]sP07400000","open_interest":1}]}}`,
		now.UTC().Format(time.DateTime), now.In(compute.NewYork).Format("2006-01-02T15:04:05"), now.AddDate(0, 1, 0).Format("060102"), now.AddDate(0, 2, 0).Format("060102")))
	p := serve(t, "--data-dir", dir, "--source", "folder", "--folder", in.dir)
	p.until("the chain is served", func() bool { return p.answers(gammaPath, http.StatusOK) })
	verifies(t, filepath.Join(dir, "folder", "objects"), p.url+gammaPath)
}

// In answers of SPX, each altered figure, digest or document is found and named, and nothing else.
func TestFaultAlteredAnswersAreNotVerified(t *testing.T) {
	t.Parallel()
	p := shared(t)
	documents := filepath.Join(market.dir, "simulated", "objects")
	_, gamma := p.get(gammaPath)
	_, matrix := p.get(matrixPath)
	_, volatility := p.get(volPath)
	_, pain := p.get(painPath)
	verifies(t, documents, edited(t, gamma,
		edit{`"effective_spot":\d+`, `"effective_spot":7000`},
		edit{`"zero_gamma_flip":[\d.]+,"flip_status"`, `"zero_gamma_flip":7400,"flip_status"`},
		edit{`("strike":7500,"call_gex_dollars":)\d`, `"strike":7500,"call_gex_dollars":9`},
	), "§1.0 effective_spot", "§1.3 by_strike[7500.0].call_gex_dollars", "§1.2 zero_gamma_flip")
	verifies(t, documents, edited(t, gamma, edit{`"sha256":"....`, `"sha256":"0000`}, edit{`"data_sha256":"....`, `"data_sha256":"0000`}),
		"§0 data_sha256", "§0 input_sha256", "§0 input options/_SPX.json")
	verifies(t, documents, edited(t, matrix, edit{`"strike":7500,"call_gex_dollars":\d`, `"strike":7500,"call_gex_dollars":9`}),
		"§1.6 zero_dte[7500.0].call_gex_dollars")
	verifies(t, documents, edited(t, volatility, edit{`"atm_30d":\d`, `"atm_30d":9`}, edit{`"sessions":\d`, `"sessions":9`}, edit{`"butterfly_10":\d`, `"butterfly_10":9`}),
		"§1.11 expirations[2026-11-20 pm].butterfly_10", "§1.11 atm_30d", "§1.11 sessions")
	verifies(t, documents, edited(t, pain, edit{`"max_pain":\d+`, `"max_pain":7000`}), "§4 max_pain")
	verifies(t, documents, edited(t, pain,
		edit{`"open_interest":\[\{"strike":\d`, `"open_interest":[{"strike":9`},
		edit{`"expirations":\[\{"expiration":"[\d-]+","settlement":"pm"`, `"expirations":[{"expiration":"2026-11-20","settlement":"am"`},
	), "§4 expirations[2026-11-20].settlement", "§4 open_interest")
	verifies(t, documents, edited(t, gamma,
		edit{`"gamma_tilt":\d`, `"gamma_tilt":9`}, edit{`"call_wall":\d+`, `"call_wall":1`}, edit{`"abs_gamma_strike":\d+`, `"abs_gamma_strike":1`},
		edit{`"net":\{"call":\d+`, `"net":{"call":1`}, edit{`"flip_band":\{"low":\d+`, `"flip_band":{"low":1`}, edit{`"gamma_regime":"[a-z]+"`, `"gamma_regime":"unknown"`},
		edit{`"profile":\[\{"spot":\d`, `"profile":[{"spot":9`}, edit{`"zero_dte":\{"net_gex_dollars":-?\d+`, `"zero_dte":{"net_gex_dollars":1`},
		edit{`"gross_gex_dollars":\d+,"gross_share_pct":\d`, `"gross_gex_dollars":1,"gross_share_pct":9`},
		edit{`"flip_status":"[a-z]+"`, `"flip_status":"unknown"`}, edit{`"flip_distance_pct":-?\d`, `"flip_distance_pct":9`}, edit{`"flip":\{"from":\d+`, `"flip":{"from":1`},
	), "§1.3 gamma_tilt", "§1.3 by_expiration[2026-11-20 pm].gross_gex_dollars", "§1.3 by_expiration[2026-11-20 pm].gross_share_pct", "§1.3 call_wall",
		"§1.3 abs_gamma_strike", "§1.3 walls.net", "§1.2 flip_band", "§1.3 gamma_regime", "§1.3 profile[-60].spot", "§1.3 zero_dte.net_gex_dollars",
		"§1.2 flip_status", "§1.3 flip_distance_pct", "§1.5 flip.from")

	// A document with one digit more is another document.
	altered := t.TempDir()
	for _, in := range envelopeOf(t, gamma).Meta.Receipt.Named {
		document, err := exec.Command("gzip", "-dc", filepath.Join(documents, in.SHA256+".gz")).Output()
		if err != nil {
			t.Fatal(err)
		}
		if in.Name == "options/_SPX.json" {
			document = bytes.Replace(document, []byte(`"open_interest":`), []byte(`"open_interest":1`), 1)
		}
		writeFile(t, filepath.Join(altered, in.SHA256), string(document))
	}
	file := writeFile(t, filepath.Join(t.TempDir(), "answer.json"), string(gamma))
	verifies(t, altered, file, "§0 input options/_SPX.json")
	figure(t, "24 alterations of answers and an altered document: the verifier names what differs")

	for _, args := range [][]string{{}, {"--documents", documents, filepath.Join(t.TempDir(), "missing")}} {
		if _, stderr, code := run(t, verifier(t, args...)); code != 2 || stderr == "" {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
	if stdout, _, code := run(t, verifier(t, "--help")); code != 0 || !strings.Contains(stdout, "--strike") {
		t.Errorf("--help: exit %d, %s", code, stdout)
	}
}
