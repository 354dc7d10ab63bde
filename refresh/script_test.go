package refresh_test

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strikecache/compute"
	"strikecache/refresh"
	"strikecache/refresh/feed"
	"strikecache/refresh/upstream"
	"strikecache/snapshots"
)

//go:embed testdata/day.txt
var scripts string

// TestScripts plays the scripts of testdata/day.txt, which explains their lines.
func TestScripts(t *testing.T) {
	number := 0 // of a line in the file
	for i, text := range strings.Split(scripts, "\n## ") {
		rows := strings.Split(text, "\n")
		var lines []line
		for n, row := range rows {
			if c := strings.Split(row, "|"); len(c) == 8 {
				for i := range c {
					c[i] = strings.TrimSpace(c[i])
				}
				lines = append(lines, line{number + n + 1, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]})
			}
		}
		if number += len(rows); i == 0 {
			continue // the explanation
		}
		t.Run(rows[0], func(t *testing.T) {
			long(t)
			if !ofAllTests.MatchString(text) {
				t.Parallel()
			}
			synctest.Test(t, func(t *testing.T) { (&script{t: t, dir: t.TempDir()}).play(lines) })
		})
	}
}

// ofAllTests matches the events that change the products of all tests.
var ofAllTests = regexp.MustCompile(` (method|break|panic) `)

// line is one line of a script. A cell that is empty is not checked.
type line struct {
	number                                                int
	at, events, resource, answer, asOf, state, file, also string
}

// script is a rig, and what it served and stored before the events of the last line that has any.
type script struct {
	*rig
	t       *testing.T
	dir     string
	options []func(*refresh.Config) // of the start: a restart has them, too
	still   func() time.Time        // the time at which the upstream stands still, or nil
	repair  func()                  // ends what break and panic began
	altered bool                    // recompute does not find all answers identical
	served  map[string]string       // by resource
	files   map[string][]byte       // by path
}

// play plays the lines, and then computes each stored answer again.
func (s *script) play(lines []line) {
	for _, l := range lines {
		if l.events != "" {
			s.remember()
			for event := range strings.SplitSeq(l.events, ";") {
				s.happen(l, strings.Fields(event))
			}
		}
		resources := strings.Fields(l.resource)
		if l.resource == "*" {
			resources = slices.DeleteFunc(s.Resources(), func(name string) bool { return s.serves(name) == "" && s.served[name] == "" })
		}
		for _, name := range resources {
			s.check(l, name)
		}
		if s.t.Failed() {
			s.t.FailNow() // the lines below rest on this one
		}
	}
	dates, err := filepath.Glob(filepath.Join(s.dir, "simulated", "2*"))
	for must(s.t, err); len(dates) > 0 && !s.altered; dates = dates[1:] {
		for product, f := range recomputeAll(s.t, s.dir, filepath.Base(dates[0])) {
			if f.Verdict != "identical" {
				s.t.Errorf("recompute %s of %s: %+v", product, dates[0], f)
			}
		}
	}
}

// remember keeps what is served and stored now, and forgets what was asked for and logged.
func (s *script) remember() {
	if s.served, s.files = map[string]string{}, tree(s.t, s.dir); s.rig == nil {
		return
	}
	for _, name := range s.Resources() {
		s.served[name] = s.serves(name)
	}
	clear(s.market.asked)
	s.log.Reset()
}

// serves describes what is served of a resource but for its freshness, "" if there is nothing.
func (s *script) serves(name string) (text string) {
	e := s.store.Current(name)
	if e == nil {
		return ""
	}
	for _, variant := range slices.Sorted(maps.Keys(e.Variants)) {
		text += e.Variants[variant].Meta.Receipt.DataSHA256
	}
	m := e.Default.Meta
	return text + fmt.Sprint(m.AsOf, m.CapturedAt, m.ComputedAt, m.Receipt.DataSHA256, string(m.Quality))
}

// happen plays one event.
func (s *script) happen(l line, words []string) {
	verb, rest := words[0], words[1:]
	if s.rig != nil && verb != "restart" {
		time.Sleep(ny(s.t, withYear(l.at)).Sub(s.clock.Now()))
	}
	switch verb {
	case "start", "restart":
		s.start(l, rest)
	case "upstream":
		s.upstream(rest[0], rest[1:])
	case "judge":
		must(s.t, refresh.Reseal(s.Refresher))
	case "run":
		d, err := time.ParseDuration(rest[0])
		must(s.t, err)
		s.run(d)
	case "lose":
		must(s.t, os.Remove(s.dir+s.path(rest[0], rest[1])))
	case "damage":
		s.altered = true
		must(s.t, os.WriteFile(s.dir+s.path(rest[0], rest[1]), []byte("torn"), 0o600))
	case "break", "panic":
		s.spoil(rest[0], verb == "panic")
	case "repair":
		s.repair()
	case "refresh":
		s.once()
	default: // a job, and perhaps "fails" and how often
		times, fails := 1, len(rest) > 0
		if len(rest) > 1 {
			times, _ = strconv.Atoi(rest[1])
		}
		for range times {
			if ok := refresh.RunJob(s.Refresher, s.t.Context(), verb); ok == fails {
				s.t.Errorf("testdata/day.txt:%d: job %s: succeeded %v\n%s", l.number, verb, ok, s.log)
			}
		}
	}
}

// spoil lets a product fail, or all of SPX, until they are repaired.
func (s *script) spoil(name string, panics bool) {
	before, names := s.repair, []string{name}
	if name == "*" {
		names = refresh.Resources(one)
	}
	var all []func()
	for _, name := range names {
		all = append(all, refresh.Spoil(name, panics))
	}
	s.repair = sync.OnceFunc(func() {
		for _, restore := range all {
			restore()
		}
		if before != nil {
			before()
		}
	})
	s.t.Cleanup(s.repair)
}

// path returns the path, below s.dir, of the file of a resource: of a date, or the one in current/.
func (s *script) path(dir, resource string) string {
	return filepath.Join("/simulated", withYear(dir), snapshots.FileName(resource))
}

// start starts a rig on the files of the one before. Words are pairs of an option and its value.
func (s *script) start(l line, words []string) {
	before, options := s.rig, slices.Clone(s.options)
	for pair := range slices.Chunk(words, 2) {
		value := pair[1]
		n, _ := strconv.Atoi(value)
		options = append(options, map[string]func(*refresh.Config){
			"with":    func(c *refresh.Config) { c.Underlyings = strings.Split(value, ",") },
			"rate":    func(c *refresh.Config) { c.RiskFreeRate, _ = strconv.ParseFloat(value, 64) },
			"history": func(c *refresh.Config) { history(n)(c) },
			"watched": func(c *refresh.Config) { c.Source.Source = unchanging{c.Source.Source} },
			"lacking": func(c *refresh.Config) {
				c.Source.Source = &withoutChain{Source: c.Source.Source, name: feed.ChainOf(value)}
			},
			"closing": func(c *refresh.Config) {
				var closed []compute.Date
				if d, err := compute.ParseDate(withYear(value)); err == nil {
					closed = append(closed, d)
				}
				c.Calendar = compute.NewCalendar(closed, nil)
			},
			"method": func(*refresh.Config) { s.altered = true; refresh.SetMethod(s.t, value, value+"/next") },
		}[pair[0]])
	}
	if before == nil {
		s.options = options
		s.rig = newRig(s.t, s.dir, withYear(l.at), options...)
	} else {
		s.rig = before.again(withYear(l.at), options...)
		s.market.faults = before.market.faults
	}
	if s.still != nil {
		s.market.cfg.Now = s.still
	}
	must(s.t, s.Restore())
}

// kindWords are the kinds of documents whose requests a line can count.
var kindWords = map[string]upstream.Kind{
	"chains": upstream.OptionsKind, "quotes": upstream.QuotesKind, "histories": upstream.HistoryKind, "settlements": upstream.SettlementKind,
}

// upstream changes what the upstream sends of the named documents, or of all. A name may end in *.
func (s *script) upstream(what string, names []string) {
	now, all := s.clock.Now(), []upstream.Name{}
	switch what {
	case "still":
		s.still = func() time.Time { return now }
		s.market.cfg.Now = s.still
		return
	case "mended":
		s.still, s.market.cfg.Now = nil, s.clock.Now
		s.market.ClearFaults()
		return
	}
	for _, symbol := range compute.FundSymbols() {
		all = append(all, upstream.History(symbol))
	}
	for _, index := range compute.VIXIndices {
		all = append(all, upstream.Quotes("_"+index), upstream.History("_"+index))
	}
	if len(names) == 0 {
		s.market.Fail("", what)
	}
	for _, pattern := range names {
		for _, name := range append(all, upstream.Name(pattern)) {
			if named, _ := path.Match(pattern, string(name)); named {
				s.market.Fail(name, what)
			}
		}
	}
}

// check compares what is served and stored of a resource with a line.
func (s *script) check(l line, name string) {
	is := func(what, got, want string) {
		if want != "" && got != want {
			s.t.Errorf("testdata/day.txt:%d: %s: %s is %q, want %q", l.number, name, what, got, want)
		}
	}
	var meta snapshots.Meta
	answer, body := "none", ""
	if serves := s.serves(name); serves != "" {
		meta, answer = s.meta(name), map[bool]string{true: "same", false: "new"}[serves == s.served[name]]
		body = string(s.store.Current(name).Default.Body(snapshots.Identity))
	}
	state := meta.Freshness.State
	if meta.Freshness.Reason != nil {
		state += " " + *meta.Freshness.Reason
	}
	is("answer", answer, l.answer)
	is("as_of", strings.TrimPrefix(meta.AsOf.In(compute.NewYork).Format("2006-01-02 15:04"), "2026-"), l.asOf)
	is("freshness", state, l.state)
	if file := s.path(meta.AsOf.UTC().Format(time.DateOnly), name); l.resource == "*" {
		is("any file", s.fileState(""), l.file)
	} else {
		is("file", s.fileState(file), l.file)
	}
	for word := range strings.FieldsSeq(l.also) {
		key, want, _ := strings.Cut(word, "=")
		piece, not := strings.CutPrefix(word, "!")
		switch kind, known := kindWords[key]; {
		case known:
			is(key, strconv.Itoa(s.market.askedFor(kind)), want)
		case dateWord.MatchString(word) && word[5] == '=':
			is("file of "+key, s.fileState(s.path(key, name)), want)
		case dateWord.MatchString(word):
			if file, err := os.ReadFile(s.dir + s.path(word[:5], name)); err != nil || !strings.Contains(string(file), word[6:]) {
				s.t.Errorf("testdata/day.txt:%d: %s of %s: no %s: %v", l.number, name, word[:5], word[6:], err)
			}
		case key == "dates":
			is(key, strings.ReplaceAll(strings.Join(s.store.DatesOf(name), ","), "2026-", ""), want)
		case key == "log":
			is("log", map[bool]string{true: want, false: s.log.String()}[strings.Contains(s.log.String(), want)], want)
		case strings.Contains(body, piece) == not:
			s.t.Errorf("testdata/day.txt:%d: %s: %s is not so", l.number, name, word)
		}
	}
}

// fileState says whether a file is not there, or was changed by the events of the line, or not. The path "" stands for all files.
func (s *script) fileState(path string) string {
	now := tree(s.t, s.dir)
	switch {
	case path != "" && now[path] == nil:
		return "none"
	case path != "" && bytes.Equal(s.files[path], now[path]), path == "" && maps.EqualFunc(s.files, now, bytes.Equal):
		return "kept"
	}
	return "written"
}

// dateWord matches what a line says of the file of a date: its state, or a piece of it.
var dateWord = regexp.MustCompile(`^\d\d-\d\d[=:]`)

// withYear returns a date, or a time, with its year: 2026 unless it says another.
func withYear(text string) string {
	if text[2] == '-' {
		return "2026-" + text
	}
	return text
}
