package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
	"strings"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"f0": func(v float64) string { return thousands(math.Round(v)) },
	"f1": func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"us": func(ns float64) string { return fmt.Sprintf("%.2f", ns/1000) },
}).Parse(pageText))

// thousands groups the digits of a whole number.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// writeHTML writes the report as one page that needs nothing else.
func (r *report) writeHTML(path string) error {
	var b strings.Builder
	if err := page.Execute(&b, struct {
		*report
		Charts []chart
	}{r, charts(r)}); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// chart is the percentile curves of one mode. The horizontal axis is logarithmic in 1/(1−p): as much room from 99
// to 99.9 as from 90 to 99. So is the vertical one, in latency.
type chart struct {
	Title, Caption string
	Width, Height  int
	Left, Bottom   float64
	Right, Top     float64
	Columns, Rows  []mark
	Lines          []line
}

// mark is a grid line with its label.
type mark struct {
	At    float64
	Label string
}

type line struct {
	Name, Points string
	Color        int
	Dash         string
	Hovers       []hover
}

type hover struct {
	X, Y float64
	Text string
}

func charts(r *report) []chart {
	modes := []chart{
		{Title: "Open loop", Caption: "Latency from the instant at which a request was due, at a constant rate: waiting behind a stall is counted."},
		{Title: "Closed loop", Caption: "Service time with every connection always busy. Not corrected: it says what saturation costs, not what a client at a normal rate sees."},
	}
	var drawn []chart
	for i, mode := range []string{"open", "closed"} {
		var outcomes []*outcome
		for j := range r.Outcomes {
			if o := &r.Outcomes[j]; o.Mode == mode && len(o.Curve) > 1 {
				outcomes = append(outcomes, o)
			}
		}
		if len(outcomes) > 0 {
			modes[i].draw(outcomes)
			drawn = append(drawn, modes[i])
		}
	}
	return drawn
}

var dashes = []string{"", "7 3", "2 3"}

func (c *chart) draw(outcomes []*outcome) {
	c.Width, c.Height = 860, 380
	c.Left, c.Right, c.Top, c.Bottom = 70, 820, 14, 340
	lo, hi, far := math.Inf(1), 0.0, 1.0
	for _, o := range outcomes {
		for _, p := range o.Curve {
			lo, hi = min(lo, max(p[1], 1)), max(hi, p[1])
			far = max(far, nines(p[0]))
		}
	}
	bottom, top := math.Floor(math.Log10(lo)), math.Ceil(math.Log10(max(hi, lo*1.01)))
	far = math.Ceil(far)
	x := func(p float64) float64 { return round1(c.Left + nines(p)/far*(c.Right-c.Left)) }
	y := func(us float64) float64 {
		return round1(c.Bottom - (math.Log10(max(us, 1))-bottom)/(top-bottom)*(c.Bottom-c.Top))
	}
	for n := 0.0; n <= far; n++ {
		p := 100 * (1 - math.Pow(10, -n))
		c.Columns = append(c.Columns, mark{x(p), fmt.Sprintf("%.*f %%", max(int(n)-2, 0), p)})
	}
	for n := bottom; n <= top; n++ {
		c.Rows = append(c.Rows, mark{y(math.Pow(10, n)), duration(math.Pow(10, n))})
	}
	for i, o := range outcomes {
		l := line{Name: o.Workload, Color: i % 8, Dash: dashes[i/8%len(dashes)]}
		for j, p := range o.Curve {
			l.Points += fmt.Sprintf("%g,%g ", x(p[0]), y(p[1]))
			if j%5 == 0 {
				l.Hovers = append(l.Hovers, hover{x(p[0]), y(p[1]), fmt.Sprintf("%s: %.5g %% within %s", o.Workload, p[0], duration(p[1]))})
			}
		}
		c.Lines = append(c.Lines, l)
	}
}

// nines is the place of a percentile on the axis: 1 for 90, 2 for 99, 3 for 99.9.
func nines(p float64) float64 { return -math.Log10(max(1-p/100, 1e-9)) }

func round1(v float64) float64 { return math.Round(v*10) / 10 }

func duration(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.3g µs", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1000)
	default:
		return fmt.Sprintf("%.3g s", us/1e6)
	}
}
