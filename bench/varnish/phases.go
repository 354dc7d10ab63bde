package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
)

// bench is one run.
type bench struct {
	out           io.Writer
	dir, varnishd string
	origin        *origin
	problems      []string
}

func (b *bench) problem(format string, args ...any) {
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// plain runs the steady and the conditional phase, without Varnish's own handling of gzip: so it keeps a variant
// for each Accept-Encoding, as the origin's Vary says.
func (b *bench) plain(ctx context.Context, o options) error {
	varnish, url, err := b.startVarnish(ctx, "plain", "-p", "http_gzip_support=off")
	if err != nil {
		return err
	}
	defer varnish.stop()

	mark, asks, c := len(b.origin.out.since(0)), plan(o.requests, len(b.origin.keys)), newChecker(b.origin.keys, false)
	began := time.Now()
	b.send(ctx, url, asks, o.length, c)
	took := time.Since(began)
	lines, err := b.settle(ctx, mark)
	if err != nil {
		return err
	}
	b.judge(c, nil)
	reached := b.count(lines)
	fmt.Fprintf(b.out, "\nsteady: %d requests in %.1f s on %d connections\n", c.sent, took.Seconds(), connections)
	b.judgeSteady(c, reached, took)
	return b.conditional(ctx, url)
}

// settle returns the origin's request lines of a phase once they are all there. Lines keep the order of their
// requests: when the last one sent is logged, so are all others.
func (b *bench) settle(ctx context.Context, mark int) ([]line, error) {
	// An answer may be read a moment before it is queued for the log.
	if err := pause(ctx, 250*time.Millisecond); err != nil {
		return nil, err
	}
	if _, err := newClient().get(ctx, b.origin.url+"/end-of-phase", nil); err != nil {
		return nil, fmt.Errorf("ask the origin: %w", err)
	}
	for range 100 {
		var requests []line
		for _, l := range b.origin.out.since(mark) {
			switch {
			case l.Msg == "request" && l.Status == http.StatusNotFound:
				return requests, nil
			case l.Msg == "request":
				requests = append(requests, l)
			}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the origin's log is over 5 s behind")
}

// reached is what of a phase reached the origin.
type reached struct {
	anonymous map[string][]time.Time // by coding
	keyed     int
}

func (b *bench) count(lines []line) reached {
	r := reached{anonymous: map[string][]time.Time{}}
	for _, l := range lines {
		switch {
		case l.Endpoint != endpoint || l.Status != http.StatusOK && l.Status != http.StatusNotModified:
			b.problem("the origin answered a request for %q with %d", l.Endpoint, l.Status)
		case l.Key != "":
			r.keyed++
		default:
			r.anonymous[l.Coding] = append(r.anonymous[l.Coding], l.Time)
		}
	}
	return r
}

// judge reports what every phase must keep to; before is where the counts of the keys stood.
func (b *bench) judge(c *checker, before map[string]int64) {
	if c.failures > 0 || c.leaks > 0 {
		b.problem("%d failures, %d leaks, such as\n    %s", c.failures, c.leaks, strings.Join(c.complaint, "\n    "))
	}
	if n := c.gaps(before); n != 0 {
		b.problem("the usage of the keys counts %d requests that nobody sent", n)
	}
}

// judgeSteady prints the steady phase and checks what it cost the origin.
//
// The rule: an object is fresh for max-age, and Varnish asks for it again once when a request finds it older; so in
// each coding the origin may see one request when the phase begins and one for each whole max-age that ends within
// it, and no two less than a max-age apart. A refresh must have been seen in each coding, for else nothing was
// shown. All keyed requests must reach the origin: as many as were sent, which also shows that no log line was
// dropped.
func (b *bench) judgeSteady(c *checker, r reached, took time.Duration) {
	const slack = 500 * time.Millisecond // of the log's clock
	maxAge := time.Duration(c.maxAge) * time.Second
	if maxAge <= 0 {
		b.problem("anonymous answers have no max-age")
		return
	}
	allowed := 1 + int(took/maxAge)
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "coding\tanonymous\tat the origin\tallowed\trefreshes seen\tkeyed\t")
	keyed, atOrigin := 0, 0
	for i, coding := range codings {
		ofKeys := 0
		for k := range b.origin.keys {
			ofKeys += c.asked[ask{i, k}]
		}
		keyed += ofKeys
		times, refreshes := r.anonymous[coding], len(c.tags[i])-1
		atOrigin += len(times)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", coding, c.asked[ask{i, -1}], len(times), allowed, refreshes, ofKeys)
		if len(times) < 1 || len(times) > allowed {
			b.problem("%s: %d anonymous requests reached the origin, not 1 to %d", coding, len(times), allowed)
		}
		if refreshes < 1 {
			b.problem("%s: no refresh was seen", coding)
		}
		for n := 1; n < len(times); n++ {
			if gap := times[n].Sub(times[n-1]); gap < maxAge-slack {
				b.problem("%s: two requests reached the origin within %s", coding, gap)
			}
		}
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t\t%d\t\n", c.sent-keyed, atOrigin, allowed*len(codings), keyed)
	_ = w.Flush() // to b.out, whose errors nobody could be told
	fmt.Fprintf(b.out, "keyed at the origin %d of %d, oldest answer %d s, failures %d, leaks %d\n", r.keyed, keyed, c.oldest, c.failures, c.leaks)
	if r.keyed != keyed {
		b.problem("%d keyed requests were sent and %d reached the origin", keyed, r.keyed)
	}
	if keyed == 0 {
		b.problem("no keyed request was sent")
	}
}

// conditionals is how many requests the conditional phase sends.
const conditionals = 200

// conditional revalidates the current document of each coding through Varnish. Where it is refreshed meanwhile,
// which is once at most in so short a time, the answer is the new document, and its tag is used from then on.
func (b *bench) conditional(ctx context.Context, url string) error {
	mark, one, unchanged, refreshed := len(b.origin.out.since(0)), newClient(), 0, 0
	defer one.http.CloseIdleConnections()
	for _, coding := range codings {
		first, err := one.get(ctx, url+path, map[string]string{"Accept-Encoding": coding})
		if err != nil {
			return fmt.Errorf("conditional: %w", err)
		}
		tag, changes := first.header.Get("ETag"), 0
		for n := 0; n < conditionals/len(codings); n++ {
			g, err := one.get(ctx, url+path, map[string]string{"Accept-Encoding": coding, "If-None-Match": tag})
			if err != nil {
				return fmt.Errorf("conditional: %w", err)
			}
			now := g.header.Get("ETag")
			switch {
			case g.status == http.StatusNotModified && now == tag && len(g.body) == 0:
				unchanged++
			case g.status == http.StatusOK && now != tag && changes == 0:
				tag, changes, n = now, 1, n-1
				refreshed++
			default:
				b.problem("conditional: %s with If-None-Match %s: status %d, ETag %s, %d bytes", coding, tag, g.status, now, len(g.body))
			}
		}
	}
	lines, err := b.settle(ctx, mark)
	if err != nil {
		return err
	}
	atOrigin := 0
	for coding, times := range b.count(lines).anonymous {
		if atOrigin += len(times); len(times) > 1 {
			b.problem("conditional: %s: %d requests reached the origin, not 1 at most", coding, len(times))
		}
	}
	fmt.Fprintf(b.out, "\nconditional: 304 to %d of %d requests, refreshed meanwhile %d, at the origin %d\n",
		unchanged, conditionals, refreshed, atOrigin)
	return nil
}

// The phase with Varnish's own parameters is shorter than any max-age.
const (
	defaultRequests = 500
	defaultLength   = 2 * time.Second
)

// defaults runs Varnish as it comes: it asks the origin for gzip only, keeps that, and unzips it with a weakened
// tag for everybody else: of the anonymous requests the origin sees one.
func (b *bench) defaults(ctx context.Context) error {
	varnish, url, err := b.startVarnish(ctx, "defaults")
	if err != nil {
		return err
	}
	defer varnish.stop()
	asked := len(b.origin.out.since(0))
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	if _, err := b.settle(ctx, asked); err != nil { // what that cost is in the log before the phase begins
		return err
	}
	mark, c := len(b.origin.out.since(0)), newChecker(b.origin.keys, true)
	b.send(ctx, url, plan(defaultRequests, len(b.origin.keys)), defaultLength, c)
	lines, err := b.settle(ctx, mark)
	if err != nil {
		return err
	}
	b.judge(c, before)
	r, keyed := b.count(lines), 0
	for a, n := range c.asked {
		if a.key >= 0 {
			keyed += n
		}
	}
	anonymous := 0
	for _, times := range r.anonymous {
		anonymous += len(times)
	}
	fmt.Fprintf(b.out, "\nVarnish's own parameters: %d requests, %d anonymous and %d of %d keyed at the origin, failures %d, leaks %d\n",
		c.sent, anonymous, r.keyed, keyed, c.failures, c.leaks)
	if anonymous != 1 || len(r.anonymous["gzip"]) != 1 || r.keyed != keyed {
		b.problem("own parameters: %d anonymous requests, %d for gzip, and %d keyed reached the origin, not 1, 1 and %d",
			anonymous, len(r.anonymous["gzip"]), r.keyed, keyed)
	}
	return b.weakened(ctx, url)
}

// usage asks the origin for the counts of the keys.
func (b *bench) usage(ctx context.Context) (map[string]int64, error) {
	one, c, seen := newClient(), newChecker(b.origin.keys, false), newConnection()
	defer one.http.CloseIdleConnections()
	for i, k := range b.origin.keys {
		g, err := one.get(ctx, b.origin.url+path, map[string]string{"X-API-Key": k.secret, "Accept-Encoding": codings[0]})
		c.check(ask{0, i}, g, err, seen)
	}
	if c.failures+c.leaks > 0 {
		return nil, fmt.Errorf("ask for the usage: %s", strings.Join(c.complaint, "; "))
	}
	return c.latest(), nil
}

// weakened sends the origin the tag that Varnish weakened, which must be 304 in every coding. The document may have
// been refreshed since Varnish fetched it; then Varnish has it too within its max-age and the grace that
// stale-while-revalidate gives.
func (b *bench) weakened(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 70*time.Second)
	defer cancel()
	one, direct := newClient(), newClient()
	defer one.http.CloseIdleConnections()
	defer direct.http.CloseIdleConnections()
	unchanged := 0
	for _, coding := range codings {
		for {
			g, err := one.get(ctx, url+path, map[string]string{"Accept-Encoding": "identity"})
			if err != nil {
				return fmt.Errorf("weakened tag: %w", err)
			}
			tag := g.header.Get("ETag")
			d, err := direct.get(ctx, b.origin.url+path, map[string]string{"Accept-Encoding": coding, "If-None-Match": tag})
			if err != nil {
				return fmt.Errorf("weakened tag: %w", err)
			}
			if d.status == http.StatusNotModified && strings.HasPrefix(tag, "W/") {
				unchanged++
				break
			}
			gzipped, err := direct.get(ctx, b.origin.url+path, map[string]string{"Accept-Encoding": "gzip"})
			if err != nil || !strings.HasPrefix(tag, "W/") || "W/"+gzipped.header.Get("ETag") == tag {
				b.problem("weakened tag: the origin answers %s to If-None-Match %s with %d (%v)", coding, tag, d.status, err)
				break
			}
			if err := pause(ctx, time.Second); err != nil {
				return fmt.Errorf("weakened tag: Varnish keeps the old document: %w", err)
			}
		}
	}
	fmt.Fprintf(b.out, "weakened tag: the origin answers 304 in %d of %d codings\n", unchanged, len(codings))
	return nil
}
