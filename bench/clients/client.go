// Command clients polls the gamma exposure of the SPX politely, with Go's standard library:
//
//	clients [--count N] [--max-wait SECONDS] BASE_URL [API_KEY]
//
// It ends after N polls, or never without --count. --max-wait is for tests. The key may also be in the variable API_KEY:
// other users of the machine can read arguments. The folder has the same client for curl, Python and JavaScript.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// errRefused is an error that another request cannot help.
var errRefused = errors.New("refused")

// document has the fields of an answer that are printed. Flip and regime may be null.
type document struct {
	Success bool
	Data    struct {
		Spot   json.RawMessage
		Flip   json.RawMessage `json:"zero_gamma_flip"`
		Regime *string         `json:"gamma_regime"`
	}
	Meta struct {
		AsOf      string `json:"as_of"`
		Source    string
		Freshness struct {
			State  string
			Reason *string
		}
	}
}

func (d *document) String() string {
	or := func(s *string) string {
		if s == nil {
			return "null"
		}
		return *s
	}
	text := fmt.Sprintf("changed as_of=%s spot=%s flip=%s regime=%s source=%s", d.Meta.AsOf, d.Data.Spot, d.Data.Flip, or(d.Data.Regime), d.Meta.Source)
	if d.Meta.Source == "simulated" {
		text += " WARNING: simulated, no number is real"
	}
	if d.Meta.Freshness.State == "stale" {
		text += " WARNING: stale, " + or(d.Meta.Freshness.Reason)
	}
	return text
}

// client polls one URL and remembers the tag of its last document.
type client struct {
	http     http.Client // asks for gzip and unpacks it
	url, key string
	tag      string
}

// poll sends one request and prints a new document. It returns how long the document is fresh. With an error, it returns
// how long the server asks the client to wait, or 0 if the server does not say.
func (c *client) poll() (time.Duration, error) {
	req, err := http.NewRequest(http.MethodGet, c.url, nil)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errRefused, err)
	}
	if c.key != "" {
		req.Header.Set("X-API-Key", c.key)
	}
	if c.tag != "" {
		req.Header.Set("If-None-Match", c.tag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		var d document
		if err := json.Unmarshal(body, &d); err != nil {
			return 0, err
		}
		if !d.Success || d.Meta.AsOf == "" {
			return 0, errors.New("not an answer")
		}
		fmt.Println(&d)
		c.tag = resp.Header.Get("ETag") // only now, because the document has been read
	case code == http.StatusNotModified:
		fmt.Println("unchanged")
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return retryAfter(resp), fmt.Errorf("status %d", code)
	default:
		return 0, fmt.Errorf("%w: status %d %.300s", errRefused, code, body)
	}
	return fresh(resp.Header), nil
}

var maxAge = regexp.MustCompile(`(?i)\bmax-age=(\d+)`)

// fresh returns how long an answer stays fresh: max-age less the Age that a cache has added.
func fresh(h http.Header) time.Duration {
	left := 30
	if m := maxAge.FindStringSubmatch(h.Get("Cache-Control")); m != nil {
		left, _ = strconv.Atoi(m[1]) // the highest number after an overflow
	}
	age, _ := strconv.Atoi(h.Get("Age")) // 0 without one
	return bounded(left - age)
}

// retryAfter returns how long the answer asks the client to wait, in seconds or until a date; 0 if it does not ask.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(time.Until(at), time.Second), day)
	}
	seconds, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return bounded(seconds)
}

// bounded returns the seconds as a duration of at least a second and at most a day.
func bounded(seconds int) time.Duration {
	return time.Duration(min(max(seconds, 1), 86400)) * time.Second
}

func main() {
	count := flag.Int("count", 0, "end after this many polls; 0: never")
	seconds := flag.Float64("max-wait", day.Seconds(), "for tests: longest wait in seconds, except after Retry-After")
	flag.Parse()
	most := time.Duration(*seconds * float64(time.Second))
	if flag.NArg() < 1 || flag.NArg() > 2 {
		fmt.Fprintln(os.Stderr, "usage: clients [--count N] [--max-wait SECONDS] BASE_URL [API_KEY]")
		os.Exit(2)
	}
	c := &client{url: strings.TrimRight(flag.Arg(0), "/") + "/api/v1/gex/spx/summary", key: cmp.Or(flag.Arg(1), os.Getenv("API_KEY"))}
	c.http.Timeout = 10 * time.Second
	// A redirect would send the key to the host that the redirect names.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	failures := 0
	for polls := 1; ; polls++ {
		wait, err := c.poll()
		switch {
		case errors.Is(err, errRefused):
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		case err == nil:
			failures, wait = 0, min(wait, most)
		default:
			if wait == 0 { // --max-wait does not shorten Retry-After
				wait = min(time.Second<<min(failures, 6), time.Minute, most)
			}
			failures++
			fmt.Fprintf(os.Stderr, "failed: %v; again in %v s\n", err, wait.Seconds())
		}
		if polls == *count {
			os.Exit(min(failures, 1))
		}
		time.Sleep(wait + rand.N(wait/10+time.Millisecond)) // so that clients do not poll all at once
	}
}
