package e2e

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
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

// before says whether e is an older edition than f: of an older instant, or of the same instant with an older freshness.
func (e edition) before(f edition) bool {
	for _, c := range []int{e.AsOf.Compare(f.AsOf), e.Computed.Compare(f.Computed), e.Freshness.Since.Compare(f.Freshness.Since)} {
		if c != 0 {
			return c < 0
		}
	}
	return false
}

// parseAnswer reads an uncompressed body and checks that it is an envelope whose data has the digest in its receipt.
func parseAnswer(body []byte) (a envelope, err error) {
	a.text = body
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("%w in %.200q", err, body)
	}
	start := append([]byte(`{"success":true,"data":`), a.Data...)
	if !a.Success || a.Usage.Tier != "anonymous" || !bytes.HasPrefix(body, append(start, `,"meta":`...)) {
		return a, fmt.Errorf("incomplete envelope: %.200q", body)
	}
	if got := sum(a.Data); got != a.Meta.Receipt.Data {
		return a, fmt.Errorf("data has the digest %s, the receipt says %s", got, a.Meta.Receipt.Data)
	}
	return a, nil
}

// codings are the content codings that clients ask for.
var codings = []string{"identity", "gzip", "br", "zstd"}

// tagSuffix returns the end of an entity tag of a Content-Encoding. dictionary is the answer that the client has announced.
func tagSuffix(coding string, dictionary []byte) string {
	if coding == "dcz" {
		return "-dcz-" + sum(dictionary)[:16]
	}
	return map[string]string{"": "", "gzip": "-gz", "br": "-br", "zstd": "-zs"}[coding]
}

// decode returns the body of an answer without its Content-Encoding. dictionary is the answer that the client has announced, nil
// for none.
func decode(resp *http.Response, body, dictionary []byte) (plain []byte, err error) {
	var r io.Reader = bytes.NewReader(body)
	switch coding := resp.Header.Get("Content-Encoding"); coding {
	case "":
		return body, nil
	case "gzip":
		r, err = gzip.NewReader(r)
	case "br":
		r = brotli.NewReader(r)
	case "zstd", "dcz":
		options := []zstd.DOption{zstd.WithDecoderConcurrency(1)}
		if coding == "dcz" {
			digest := sha256.Sum256(dictionary)
			if !bytes.HasPrefix(body, append([]byte("\x5e\x2a\x4d\x18\x20\x00\x00\x00"), digest[:]...)) {
				return nil, fmt.Errorf("the delta is against another answer: %x", body[:min(40, len(body))])
			}
			options = append(options, zstd.WithDecoderDictRaw(0, dictionary))
		}
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r, options...); err == nil {
			defer z.Close()
			r = z
		}
	default:
		err = fmt.Errorf("unexpected coding %s", coding)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// checkAnswer checks a response from its status to its last byte, without comparing it with other answers. dictionary is the
// answer that the client has announced, nil for none.
func checkAnswer(resp *http.Response, body, dictionary []byte) (a envelope, err error) {
	identity, err := decode(resp, body, dictionary)
	if err != nil {
		return a, fmt.Errorf("body: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return a, fmt.Errorf("status %d: %.200q", resp.StatusCode, identity)
	}
	if a, err = parseAnswer(identity); err != nil {
		return a, err
	}
	// A tag is a digest of what follows data, where the digest of data is, with the coding.
	tag := `"` + sum(identity[len(`{"success":true,"data":`)+len(a.Data):])[:32] + tagSuffix(resp.Header.Get("Content-Encoding"), dictionary) + `"`
	if got := resp.Header.Get("ETag"); got != tag {
		return a, fmt.Errorf("tag %s, want %s for these bytes", got, tag)
	}
	modified := a.Meta.Computed
	if a.Meta.Freshness.Since.After(modified) {
		modified = a.Meta.Freshness.Since
	}
	want := modified.UTC().Format(http.TimeFormat)
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && modified.After(date) { // the market is ahead: RFC 9110, section 8.8.2.1
		want = resp.Header.Get("Date")
	}
	if got := resp.Header.Get("Last-Modified"); got != want {
		return a, fmt.Errorf("last modified %s, the answer says %v", got, modified)
	}
	return a, nil
}

// errLost says that a request got no answer or half an answer.
var errLost = errors.New("no answer")

// answers compares the answers of a run with each other, and counts them.
type answers struct {
	checked, beside, apart atomic.Int64

	mu       sync.Mutex
	instants map[string]string       // digest of the data, by endpoint, limit, times and inputs
	bodies   map[string]string       // digest of the body, by target and ETag
	newest   map[string]storedAnswer // by server and target
}

func newAnswers() *answers {
	return &answers{instants: map[string]string{}, bodies: map[string]string{}, newest: map[string]storedAnswer{}}
}

// ask fetches an answer and checks it, also against earlier answers: answers with equal times and inputs have equal data,
// those with equal tags have equal bytes, no answer of a server is older than an earlier one, and no track loses a row. server
// tells the servers of a run apart, "" where there is one.
func (s *answers) ask(client *http.Client, server, base, target, coding string) (envelope, error) {
	s.mu.Lock()
	floor := s.newest[server+target]
	s.mu.Unlock()
	resp, body, err := send(client, http.MethodGet, base+target, "Accept-Encoding", coding)
	if err != nil {
		return envelope{}, fmt.Errorf("%w: %w", errLost, err)
	}
	a, err := checkAnswer(resp, body, nil)
	if err != nil {
		return a, fmt.Errorf("%s: %w", target, err)
	}
	s.checked.Add(1)
	m, query := a.Meta, resp.Request.URL.Query()
	if date := query.Get("date"); date != "" && m.AsOf.UTC().Format(time.DateOnly) != date {
		return a, fmt.Errorf("%s has an answer of %v", target, m.AsOf)
	}
	rows, err := rowsOf(a)
	if err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []struct {
		known     map[string]string
		key, what string
	}{
		{s.instants, fmt.Sprint(m.Endpoint, query.Get("limit"), m.AsOf, m.Captured, m.Computed, m.Receipt.Inputs), m.Receipt.Data},
		{s.bodies, target + resp.Header.Get("ETag"), sum(body)},
	} {
		if before, ok := c.known[c.key]; ok && before != c.what {
			return a, fmt.Errorf("%s has two contents for %s", target, c.key)
		}
		c.known[c.key] = c.what
	}
	if m.AsOf.Before(floor.AsOf) || m.Computed.Before(floor.Computed) {
		return a, fmt.Errorf("%s went back from %+v to %+v", target, floor.edition, m.edition)
	}
	if m.Session == floor.session && !contains(rows, floor.rows) {
		return a, fmt.Errorf("%s has lost rows: it had %s and has %s", target, floor.rows, rows)
	}
	if s.newest[server+target].before(m.edition) { // another client may have seen a newer one meanwhile
		s.newest[server+target] = storedAnswer{m.edition, "", m.Session, rows}
	}
	return a, nil
}

// rowsOf returns the rows of a track, nil for another answer. Each row must be of a later instant than the row before, and the
// last one of the instant of the answer.
func rowsOf(a envelope) ([]json.RawMessage, error) {
	if a.Meta.Endpoint != "gex/spx/intraday" {
		return nil, nil
	}
	var data struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(a.Data, &data); err != nil {
		return nil, err
	}
	var last, at time.Time
	for _, row := range data.Rows {
		if err := json.Unmarshal(row, &[]any{&at}); err != nil || !at.After(last) {
			return nil, fmt.Errorf("a row of %v follows a row of %v: %w", at, last, err)
		}
		last = at
	}
	if !last.Equal(a.Meta.AsOf) {
		return nil, fmt.Errorf("the track of %v ends at %v", a.Meta.AsOf, last)
	}
	return data.Rows, nil
}

// contains says whether all the earlier rows are among the rows, in their order.
func contains(rows, earlier []json.RawMessage) bool {
	for _, row := range rows {
		if len(earlier) > 0 && string(row) == string(earlier[0]) {
			earlier = earlier[1:]
		}
	}
	return len(earlier) == 0
}

// stored checks that the newest answers that were served are on the disk, so that a restart can serve them again.
func (s *answers) stored(disk map[string]storedAnswer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for target, seen := range s.newest {
		u, err := url.Parse(target)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(u.Path, "/api/v1/"), "/api/public/"), "/", "-")
		name, past := strings.CutSuffix(name, "-historical")
		place := "current"
		if past {
			place = slices.Max(append(datesOf(disk, name), ""))
		}
		on, found := disk[cmp.Or(u.Query().Get("date"), place)+"/"+name]
		if !found || on.AsOf.Before(seen.AsOf) || on.Computed.Before(seen.Computed) {
			errs = append(errs, fmt.Errorf("%s was answered with %+v, which is not stored: %+v", target, seen.edition, on.edition))
		}
	}
	return errors.Join(errs...)
}

// load lets clients call ask again and again, each with random choices of its own, until ctx ends. A client ends with its first
// error. The caller waits for the clients.
func load(ctx context.Context, clients int, seed uint64, ask func(client *http.Client, choices *rand.Rand) error) *sync.WaitGroup {
	const pace = 20 * time.Millisecond
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			client, choices := newClient(), rand.New(rand.NewPCG(seed, uint64(i)))
			defer client.CloseIdleConnections()
			for tick := time.NewTicker(pace); ctx.Err() == nil; <-tick.C {
				if ask(client, choices) != nil {
					return
				}
			}
		})
	}
	return &all
}

// pick returns one of some values.
func pick[T any](choices *rand.Rand, of []T) T { return of[choices.IntN(len(of))] }

// besides asks for all answers that are computed from the SPX chain. If gamma is the same before and after, all must be of
// the same instant, because they are published together. Their documents may differ: an answer that a later document of the
// same instant does not change stays. Until the process has published a chain, the answers come from
// files. A kill between two of these files may have left them one refresh apart.
func (s *answers) besides(ask func(string) (envelope, error), r *killer) error {
	published := r.refreshed()
	var got [5]envelope
	for i, target := range []string{gammaPath, painPath, seriesPath, flowPath, gammaPath} {
		var err error
		if got[i], err = ask(target); err != nil {
			return err
		}
	}
	gamma := got[0].Meta
	if got[4].Meta.Receipt.Data != gamma.Receipt.Data {
		return nil
	}
	s.beside.Add(1)
	same := true
	for _, a := range got[1:3] {
		same = same && a.Meta.AsOf.Equal(gamma.AsOf)
	}
	for _, chain := range got[3].Meta.Quality.Chains {
		same = same && (chain.Symbol != "SPX" || chain.AsOf.Equal(gamma.AsOf))
	}
	if !same && published {
		return fmt.Errorf("answers of one feed have two instants:\n%+v\n%+v\n%+v\n%+v", gamma, got[1].Meta, got[2].Meta, got[3].Meta)
	}
	if !same {
		s.apart.Add(1)
	}
	return nil
}
