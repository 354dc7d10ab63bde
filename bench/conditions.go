package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// condition is a comparison of a figure of the report, such as p99>5ms.
type condition struct {
	figure     string  // such as p99
	percentile float64 // 100 for max
	operator   string
	bound      float64 // microseconds, requests, percent of the requests, or answers a second
	percent    bool
	text       string // of the bound
}

var (
	conditionText = regexp.MustCompile(`^\s*(p(\d+(?:\.\d+)?)|max|mean|failed|rate)\s*([<>]=?)\s*(\S+)\s*$`)
	opposite      = map[string]string{">": "≤", ">=": "<", "<": "≥", "<=": ">"}
)

// UnmarshalText implements encoding.TextUnmarshaler, for the flags.
func (c *condition) UnmarshalText(text []byte) (err error) {
	m := conditionText.FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("%q is no condition: want p50, p99.9, max, mean, failed or rate, then >, >=, < or <=, then a bound, such as p99>5ms, failed>0, failed>0.1%% or rate<1000", text)
	}
	*c = condition{figure: m[1], percentile: 100, operator: m[3], text: m[4]}
	if c.figure == "failed" || c.figure == "rate" {
		var number string
		number, c.percent = strings.CutSuffix(c.text, "%")
		if c.bound, err = strconv.ParseFloat(number, 64); err != nil || c.percent && c.figure == "rate" || !(c.bound >= 0) {
			return fmt.Errorf("%s: %s needs a number of at least 0, not %s", text, c.figure, c.text)
		}
		return nil
	}
	if m[2] != "" {
		c.percentile, _ = strconv.ParseFloat(m[2], 64) // the expression accepts numbers only
	}
	d, err := time.ParseDuration(c.text)
	switch {
	case c.percentile <= 0 || c.percentile > 100:
		return fmt.Errorf("%s: a percentile is above 0 and at most 100", text)
	case err != nil || d < 0:
		return fmt.Errorf("%s: a latency needs a number with a unit, such as 5ms, 250us or 1.5s, not %s", text, c.text)
	}
	c.bound = float64(d) / 1000
	c.text = duration(c.bound)
	return nil
}

// check returns whether the condition is true of a report, and the figure. Latencies count from the instant at which a
// request was due.
func (c *condition) check(r *report) (is bool, figure string) {
	value := at(r.latency, c.percentile)
	switch c.figure {
	case "failed":
		value = float64(r.Failed)
		figure = fmt.Sprintf("%d of %d requests failed", r.Failed, r.Requests)
		if c.percent {
			value *= 100 / float64(r.Requests)
		}
	case "rate":
		value = r.PerSecond
		figure = fmt.Sprintf("%.4g answers a second", value)
	case "mean":
		value = microseconds(r.latency.Mean())
	}
	is = map[string]bool{">": value > c.bound, ">=": value >= c.bound, "<": value < c.bound, "<=": value <= c.bound}[c.operator]
	return is, cmp.Or(figure, c.figure+" is "+duration(value))
}

// errInconclusive is the verdict when only the generator may be to blame.
var errInconclusive = errors.New("inconclusive")

// verdict returns an error that says which conditions of --fail-if are true. Without --fail-if, no request may fail. It is
// [errInconclusive] if all of them are about latencies or the rate, and the generator was the limit of these.
func (c *loadCommand) verdict(r *report) error {
	var failed, doubtful []error
	for _, f := range c.FailIf {
		if is, figure := f.check(r); is {
			err := fmt.Errorf("--fail-if %s%s%s: %s", f.figure, f.operator, f.text, figure)
			if f.figure != "failed" && r.Limit != "" {
				doubtful = append(doubtful, fmt.Errorf("%w, but %s", err, r.Limit))
			} else {
				failed = append(failed, err)
			}
		}
	}
	switch {
	case r.Ramp != nil && r.Ramp.Holds == 0 && r.Ramp.Steps[0].Limit != "":
		doubtful = append(doubtful, errors.New(r.Ramp.conclusion()))
	case r.Ramp != nil && r.Ramp.Holds == 0:
		failed = append(failed, errors.New(r.Ramp.conclusion()))
	case r.Ramp == nil && len(c.FailIf) == 0 && r.Failed > 0:
		failed = append(failed, fmt.Errorf("%d of %d requests failed", r.Failed, r.Requests))
	}
	if len(failed) == 0 && len(doubtful) > 0 {
		return fmt.Errorf("%w: %w", errInconclusive, errors.Join(doubtful...))
	}
	return errors.Join(append(failed, doubtful...)...)
}

// ramp is the result of a load at rising rates.
type ramp struct {
	At    string  `json:"at" jsonschema_description:"what must be true of each step: the opposite of --until"`
	Holds float64 `json:"holds" jsonschema_description:"requests a second of the highest step that held, 0 if none held"`
	Steps []step  `json:"steps" jsonschema_description:"in the order of their rates. Only the last one may not have held"`

	interrupted bool
}

// step is the load at one rate.
type step struct {
	tally
	Rate      float64 `json:"rate" jsonschema_description:"requests a second that were asked for"`
	PerSecond float64 `json:"answers_per_second" jsonschema_description:"answers of any status"`
	Failure   string  `json:"failure,omitempty" jsonschema_description:"why the step did not hold, absent if it held"`
	Limit     string  `json:"inconclusive,omitempty" jsonschema_description:"why it may be the generator for which the step did not hold, absent if it is not"`
}

// rateOf returns the rate of a step. Each rate is the same multiple of the rate before, and has three digits.
func (c *loadCommand) rateOf(i int) float64 {
	if i == c.Steps-1 {
		return c.most
	}
	rate := c.Rate * math.Pow(c.most/c.Rate, float64(i)/float64(c.Steps-1))
	rate, _ = strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 3, 64), 64) // always a number
	return rate
}

// climb loads at one rate after the other, until a step does not hold. It returns the report of the last step that held, or
// of the first step if none held.
func (c *loadCommand) climb(ctx context.Context, requests []request) (highest *report) {
	var at []string
	for _, u := range c.Until {
		at = append(at, u.figure+" "+opposite[u.operator]+" "+u.text)
	}
	climbed := &ramp{At: strings.Join(at, " and ")}
	for i := range c.Steps {
		one := *c
		one.Rate, one.Duration = c.rateOf(i), c.Duration/time.Duration(c.Steps)
		r := one.load(ctx, requests)
		if ctx.Err() != nil && highest != nil {
			break
		}
		s := step{tally: r.tally, Rate: r.Rate, PerSecond: r.PerSecond}
		if s.Failure = c.failure(r); s.Failure != "" && r.Failed == 0 {
			s.Limit = r.Limit
		}
		climbed.Steps = append(climbed.Steps, s)
		if highest == nil || s.Failure == "" {
			highest = r
		}
		if s.Failure != "" || ctx.Err() != nil {
			break
		}
		climbed.Holds = r.Rate
	}
	climbed.interrupted = ctx.Err() != nil
	highest.Ramp = climbed
	return highest
}

// failure returns why a step did not hold, or "": a condition of --until is true, requests have failed, or the answers were
// too few for the rate.
func (c *loadCommand) failure(r *report) string {
	for _, u := range c.Until {
		if is, figure := u.check(r); is {
			return figure
		}
	}
	switch {
	case r.Failed > 0 && !slices.ContainsFunc(c.Until, func(u condition) bool { return u.figure == "failed" }):
		return fmt.Sprintf("%d of %d requests failed", r.Failed, r.Requests)
	case r.slow() && r.Latency.P50 > 0.025*r.Took*1e6: // a queue has grown, and not only the last answer was late
		return fmt.Sprintf("only %.4g answers a second", r.PerSecond)
	}
	return ""
}

// conclusion says which rate held.
func (r *ramp) conclusion() string {
	last := r.Steps[len(r.Steps)-1]
	if last.Limit != "" {
		last.Failure += ", which is inconclusive: " + last.Limit
	}
	switch {
	case r.Holds == 0:
		return fmt.Sprintf("holds no rate of the ramp at %s: at %g a second, %s", r.At, last.Rate, cmp.Or(last.Failure, "it was interrupted"))
	case r.interrupted:
		return fmt.Sprintf("holds %g a second at %s, and was interrupted", r.Holds, r.At)
	case last.Failure == "":
		return fmt.Sprintf("holds %g a second at %s, and was not asked for more", r.Holds, r.At)
	}
	return fmt.Sprintf("holds %g a second at %s: at %g a second, %s", r.Holds, r.At, last.Rate, last.Failure)
}
