package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// edition tells one answer of a resource from another.
type edition struct {
	AsOf     time.Time `json:"as_of"`
	Computed time.Time `json:"computed_at"`
	Fresh    struct {
		State string
		Since time.Time
	} `json:"freshness"`
	sum string
}

// before says whether e is an older edition than f: of an older instant, or of the same one with an older freshness.
func (e edition) before(f edition) bool {
	for _, c := range []int{e.AsOf.Compare(f.AsOf), e.Computed.Compare(f.Computed), e.Fresh.Since.Compare(f.Fresh.Since)} {
		if c != 0 {
			return c < 0
		}
	}
	return false
}

// answer is a whole and consistent answer.
type answer struct {
	edition
	Endpoint string
	Captured *time.Time `json:"captured_at"`
	Receipt  struct {
		Inputs []string `json:"input_sha256"`
		Data   string   `json:"data_sha256"`
	}
	Quality struct {
		Chains []struct {
			Symbol string
			AsOf   time.Time `json:"as_of"`
		}
	}
	tag string
}

// parseAnswer reads an identity body and checks that it is an envelope whose data has the digest that it says.
func parseAnswer(body []byte) (a answer, err error) {
	var doc struct {
		Success bool
		Data    json.RawMessage
		Meta    json.RawMessage
		Usage   struct{ Tier string }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return a, fmt.Errorf("%w in %.200q", err, body)
	}
	if err := json.Unmarshal(doc.Meta, &a); err != nil {
		return a, fmt.Errorf("meta: %w", err)
	}
	start := append([]byte(`{"success":true,"data":`), doc.Data...)
	if !doc.Success || doc.Usage.Tier != "anonymous" || !bytes.HasPrefix(body, append(start, `,"meta":`...)) {
		return a, fmt.Errorf("no whole envelope: %.200q", body)
	}
	if got := sum(doc.Data); got != a.Receipt.Data {
		return a, fmt.Errorf("data has the digest %s, the receipt says %s", got, a.Receipt.Data)
	}
	return a, nil
}

// suffixes of the entity tags, by coding.
var suffixes = map[string]string{"": "", "gzip": "-gz", "br": "-br", "zstd": "-zs"}

// decode returns a body without its Content-Encoding.
func decode(coding string, body []byte) (plain []byte, err error) {
	var r io.Reader = bytes.NewReader(body)
	switch coding {
	case "":
		return body, nil
	case "gzip":
		r, err = gzip.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
			r = z
		}
	default:
		err = errors.New("no coding that was asked for")
	}
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("body with Content-Encoding %q: %w", coding, err)
	}
	return plain, nil
}

// checkAnswer checks a response from its status to the last byte, but for what other answers say.
func checkAnswer(resp *http.Response, body []byte) (a answer, err error) {
	coding := resp.Header.Get("Content-Encoding")
	identity, err := decode(coding, body)
	if err != nil {
		return a, err
	}
	if resp.StatusCode != http.StatusOK {
		return a, fmt.Errorf("status %d, coding %q: %.200q", resp.StatusCode, coding, identity)
	}
	if a, err = parseAnswer(identity); err != nil {
		return a, err
	}
	a.tag = resp.Header.Get("ETag")
	if want := `"` + sum(identity)[:32] + suffixes[coding] + `"`; a.tag != want {
		return a, fmt.Errorf("tag %s, of these bytes it is %s", a.tag, want)
	}
	modified := a.Computed
	if a.Fresh.Since.After(modified) {
		modified = a.Fresh.Since
	}
	if got := resp.Header.Get("Last-Modified"); got != modified.UTC().Format(http.TimeFormat) {
		return a, fmt.Errorf("last modified %s, the answer says %v", got, modified)
	}
	return a, nil
}

// errLost is a request that nothing, or half an answer, came back for.
var errLost = errors.New("no answer")

// asker asks one server over one connection.
type asker struct {
	client http.Client
	base   string
	coding func() string
}

func newAsker(base string) *asker {
	return &asker{http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: patience}, base, func() string { return "zstd" }}
}

func (c *asker) close() { c.client.CloseIdleConnections() }

func (c *asker) get(target string) (*http.Response, []byte, error) {
	req, err := http.NewRequest(http.MethodGet, c.base+target, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept-Encoding", c.coding())
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// answers holds what was answered in a run against what may be.
type answers struct {
	checked, beside, apart atomic.Int64

	mu       sync.Mutex
	instants map[string]string  // digest of the data, by all that says of what and when it is
	newest   map[string]edition // by target
}

// ask gets an answer and checks it, against those before it too: what says that it is of one instant has one content, and
// no answer is followed by an older one.
func (s *answers) ask(c *asker, target string) (answer, error) {
	s.mu.Lock()
	floor := s.newest[target]
	s.mu.Unlock()
	resp, body, err := c.get(target)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errLost, err)
	}
	a, err := checkAnswer(resp, body)
	if err != nil {
		return a, fmt.Errorf("%s: %w", target, err)
	}
	s.checked.Add(1)
	u, err := url.Parse(target)
	if err != nil {
		return a, err
	}
	if date := u.Query().Get("date"); date != "" && a.AsOf.UTC().Format(time.DateOnly) != date {
		return a, fmt.Errorf("%s is of %v", target, a.AsOf)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := fmt.Sprint(a.Endpoint, u.Query().Get("limit"), a.AsOf, a.Captured, a.Computed, a.Receipt.Inputs)
	if before, ok := s.instants[of]; ok && before != a.Receipt.Data && a.Endpoint != "gex/spx/series" { // which grows with the history
		return a, fmt.Errorf("%s has two contents for %s", target, of)
	}
	s.instants[of] = a.Receipt.Data
	if s.newest == nil {
		s.newest = map[string]edition{}
	}
	if a.AsOf.Before(floor.AsOf) || a.Computed.Before(floor.Computed) {
		return a, fmt.Errorf("%s went back from %+v to %+v", target, floor, a.edition)
	}
	if s.newest[target].before(a.edition) { // another client may have seen a newer one meanwhile
		s.newest[target] = a.edition
	}
	return a, nil
}

// fileOf is where a target's answer is stored.
var fileOf = map[string]string{
	gammaPath: "gex-spx", sectorsPath: "sectors-rotation", painPath: "spx-max-pain", flowPath: "options-flow-unusual", vixPath: "vix-term-structure",
}

// stored checks that the newest answers that were given lie on the disk: a restart can give them again.
func (s *answers) stored(disk map[string]edition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for target, seen := range s.newest {
		_, date, dated := strings.Cut(target, "/historical?date=")
		file := fileOf[target]
		if dated {
			file = "gex-spx"
		}
		found := file == ""
		var held []string
		for name, e := range disk {
			at, of, _ := strings.Cut(name, "/")
			if of = strings.TrimSuffix(of, "@late"); of == file {
				held = append(held, fmt.Sprint(name, e))
			}
			found = found || of == file && (!dated || at == date) && !e.AsOf.Before(seen.AsOf) && !e.Computed.Before(seen.Computed)
		}
		if !found {
			errs = append(errs, fmt.Errorf("%s was answered with %+v, which is not stored: %v", target, seen, held))
		}
	}
	return errors.Join(errs...)
}

// pace is the time between two rounds of one client.
const pace = 20 * time.Millisecond

// poll asks for everything, in every coding, until an answer fails.
func (s *answers) poll(base string, choices *rand.Rand, r *killer) error {
	codings := []string{"identity", "gzip", "br", "zstd"}
	c := newAsker(base)
	defer c.close()
	c.coding = func() string { return codings[choices.IntN(len(codings))] }
	for tick := time.NewTicker(pace); ; <-tick.C {
		if _, err := s.ask(c, targets[choices.IntN(len(targets))]); err != nil {
			return err
		}
		if err := s.besides(c, r); err != nil {
			return err
		}
	}
}

// besides asks for all answers that rest on the SPX chain. When gamma is the same before and after them, all must be of
// the same document: they are published together. Before a process has published any, they come from files, which a
// kill may have left one apart.
func (s *answers) besides(c *asker, r *killer) error {
	published := r.refreshed()
	var got [5]answer
	for i, target := range []string{gammaPath, painPath, seriesPath, flowPath, gammaPath} {
		var err error
		if got[i], err = s.ask(c, target); err != nil {
			return err
		}
	}
	gamma, pain, series, flow := got[0], got[1], got[2], got[3]
	if got[4].Receipt.Data != gamma.Receipt.Data {
		return nil
	}
	s.beside.Add(1)
	same := true
	for _, a := range []answer{pain, series} {
		same = same && a.AsOf.Equal(gamma.AsOf) && slices.Equal(a.Receipt.Inputs, gamma.Receipt.Inputs)
	}
	for _, chain := range flow.Quality.Chains {
		same = same && (chain.Symbol != "SPX" || chain.AsOf.Equal(gamma.AsOf))
	}
	if !same && published {
		return fmt.Errorf("one feed, two instants:\n%+v\n%+v\n%+v\n%+v", gamma, pain, series, flow)
	}
	if !same {
		s.apart.Add(1)
	}
	return nil
}
