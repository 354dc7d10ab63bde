package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// ledger knows the answers that refreshers sealed, and the answers that all members of a fleet gave.
type ledger struct {
	mu     sync.Mutex
	sealed map[string]bool            // answers in files of a refresher, by core
	tags   map[string]*givenByTag     // by target and ETag
	data   map[string]string          // digest of the data, by endpoint, parameter, times and inputs
	rows   map[string]map[string]bool // of tracks that edges gave, by date
	given  int
}

// givenByTag is an answer that members gave.
type givenByTag struct {
	sum     string // of the body, as it was sent
	edition edition
	core    string
	member  string // that gave it first
	leader  bool   // a refresher gave it
}

func newLedger() *ledger {
	return &ledger{sealed: map[string]bool{}, tags: map[string]*givenByTag{}, data: map[string]string{}, rows: map[string]map[string]bool{}}
}

var freshnessField = regexp.MustCompile(`"freshness":\{[^}]*\}`)

// core returns the digest of an answer without its freshness, which a member without a refresher judges itself.
func core(identity []byte) string {
	at := bytes.LastIndex(identity, []byte(`"freshness":{`))
	if at < 0 {
		return sum(identity)
	}
	return sum(append(bytes.Clone(identity[:at]), freshnessField.ReplaceAll(identity[at:], nil)...))
}

// scan reads the files of a refresher's directory that are there before it starts.
func (l *ledger) scan(t testing.TB, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "[c2]*", "[^.]*")) // current/ and the dates
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, found := bytes.Cut(b, []byte{'\n'}); found {
			l.seal(rest)
		}
	}
}

// seal takes the answer of a file, without the first line of the file.
func (l *ledger) seal(rest []byte) {
	answer, _, _ := bytes.Cut(rest, []byte{'\n'})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed[core(answer)] = true
	var a envelope
	if json.Unmarshal(answer, &a) == nil {
		l.sealed[a.instant()] = true
	}
}

// instant returns what tells an answer from others of the same endpoint and parameter, except its freshness.
func (a *envelope) instant() string {
	return fmt.Sprint(a.Meta.Endpoint, a.Meta.AsOf, a.Meta.Captured, a.Meta.Computed, a.Meta.Receipt.Inputs)
}

// tap reads every file that a refresher publishes, as NATS carries it: a refresher publishes a file before it stores it. The client is faster than the members to connect again, so it misses no file.
func (l *ledger) tap(t testing.TB, source string, urls ...string) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.PingInterval(2*time.Second), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	whole := map[string][]byte{} // parts so far of files that are under way, by digest
	sub, err := conn.Subscribe("strikecache."+source+".file.>", func(m *nats.Msg) {
		digest := m.Header.Get("Strikecache-SHA256")
		part := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		if part == "0" {
			whole[digest] = nil
		}
		whole[digest] = append(whole[digest], m.Data...)
		parts, _ := strconv.Atoi(m.Header.Get("Strikecache-Parts"))
		if part != strconv.Itoa(parts-1) {
			return
		}
		if _, rest, found := bytes.Cut(whole[digest], []byte{'\n'}); found && !strings.Contains(m.Subject, ".objects/") {
			l.seal(rest)
		}
		delete(whole, digest)
	})
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// observe checks an answer of a member against all others.
func (l *ledger) observe(m *member, target string, leads bool, resp *http.Response, body []byte) (edition, error) {
	key, digest := target+" "+resp.Header.Get("ETag"), sum(body)
	l.mu.Lock()
	l.given++
	known := l.tags[key]
	l.mu.Unlock()
	if known == nil || known.sum != digest {
		made, err := l.first(m, target, resp, body)
		if err != nil {
			return edition{}, fmt.Errorf("%s: %w", target, err)
		}
		made.sum = digest
		l.mu.Lock()
		if known = l.tags[key]; known == nil {
			known = made
			l.tags[key] = made
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known.leader = known.leader || leads
	if known.sum != digest {
		return edition{}, fmt.Errorf("%s: %s and this member gave different bytes under %s", target, known.member, key)
	}
	return known.edition, nil
}

// first checks an answer that no member gave before.
func (l *ledger) first(m *member, target string, resp *http.Response, body []byte) (*givenByTag, error) {
	a, err := checkAnswer(resp, body)
	if err != nil {
		return nil, err
	}
	identity, err := decode(resp, body)
	if err != nil {
		return nil, err
	}
	if target == trackPath && m.edge {
		if err := l.keepRows(a); err != nil {
			return nil, err
		}
	}
	query := resp.Request.URL.Query()
	of := fmt.Sprint(query, a.instant())
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.data[of]; ok && before != a.Meta.Receipt.Data {
		return nil, fmt.Errorf("two contents for %s", of)
	}
	l.data[of] = a.Meta.Receipt.Data
	made := &givenByTag{edition: a.Meta.edition, core: core(identity), member: m.name}
	if strings.HasPrefix(target, flowPath) { // the second line of the file has all items: the limits have the same instant
		made.core = a.instant()
	}
	return made, nil
}

// keepRows remembers the rows of a track that reached an edge. From then on, no member may lose them. A refresher that fails
// loses the rows that it did not put.
func (l *ledger) keepRows(a envelope) error {
	var data struct{ Rows []json.RawMessage }
	if err := json.Unmarshal(a.Data, &data); err != nil {
		return err
	}
	date := a.Meta.AsOf.UTC().Format(time.DateOnly)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows[date] == nil {
		l.rows[date] = map[string]bool{}
	}
	for _, row := range data.Rows {
		l.rows[date][string(row)] = true
	}
	return nil
}

// judge says which answers no refresher sealed or gave.
func (l *ledger) judge() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, g := range l.tags {
		l.sealed[g.core] = l.sealed[g.core] || g.leader
	}
	for key, g := range l.tags {
		if !l.sealed[g.core] {
			errs = append(errs, fmt.Errorf("%s gave %s, which no refresher sealed: %+v", g.member, key, g.edition))
		}
	}
	return errors.Join(errs...)
}

// lostRows says which rows of the tracks a member does not serve any more.
func (l *ledger) lostRows(m *member) (kept int, err error) {
	var errs []error
	for date, rows := range l.rows {
		now, target := map[string]bool{}, trackPath
		if m.p.envelope(target).Meta.AsOf.UTC().Format(time.DateOnly) != date {
			target += "?date=" + date
		}
		for _, row := range dataOf[struct{ Rows []json.RawMessage }](m.p, target).Rows {
			now[string(row)] = true
		}
		for row := range rows {
			if kept++; !now[row] {
				errs = append(errs, fmt.Errorf("%s has lost the row %s of %s", m.name, row, date))
			}
		}
	}
	return kept, errors.Join(errs...)
}
