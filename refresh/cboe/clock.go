package cboe

import (
	"time"

	"strikecache/compute"
)

// The two clocks of a chain document have no zone. The top-level timestamp is UTC; every last_trade_time is New
// York time.

func parseUTC(raw []byte) (time.Time, bool) { return parseClock(raw, time.UTC) }

func parseNewYork(raw []byte) (time.Time, bool) {
	t, ok := parseClock(raw, compute.NewYork)
	return t.UTC(), ok
}

// parseClock parses YYYY-MM-DD, a space or a T, and HH:MM:SS, a fraction of a second allowed and dropped.
func parseClock(raw []byte, loc *time.Location) (time.Time, bool) {
	date, h, m, s, ok := splitClock(raw)
	if !ok {
		return time.Time{}, false
	}
	d, err := compute.ParseDate(string(date))
	if err != nil {
		return time.Time{}, false
	}
	return d.At(h, m, s, loc), true
}

func splitClock(raw []byte) (date []byte, h, m, s int, ok bool) {
	if len(raw) < 19 || raw[10] != ' ' && raw[10] != 'T' || raw[13] != ':' || raw[16] != ':' ||
		len(raw) > 19 && raw[19] != '.' {
		return nil, 0, 0, 0, false
	}
	h, okH := twoDigits(raw[11:])
	m, okM := twoDigits(raw[14:])
	s, okS := twoDigits(raw[17:])
	for _, c := range raw[19:] {
		ok = c == '.' || isDigit(c)
		if !ok {
			return nil, 0, 0, 0, false
		}
	}
	return raw[:10], h, m, s, okH && okM && okS && h < 24 && m < 60 && s < 60
}

func twoDigits(b []byte) (int, bool) {
	return int(b[0]-'0')*10 + int(b[1]-'0'), isDigit(b[0]) && isDigit(b[1])
}

// tradeClock converts the last trade times of a chain. Thousands of rows share a few hundred dates, so it
// remembers the midnight of each date on which the clocks do not change.
type tradeClock map[string]int64

// unix returns the Unix seconds of a New York time, 0 for one that is absent or malformed.
func (c *tradeClock) unix(raw []byte) int64 {
	date, h, m, s, ok := splitClock(raw)
	if !ok {
		return 0
	}
	if midnight, ok := (*c)[string(date)]; ok {
		return midnight + int64(h*3600+m*60+s)
	}
	t, ok := parseNewYork(raw)
	if !ok {
		return 0
	}
	d, _ := compute.ParseDate(string(date))
	midnight := d.At(0, 0, 0, compute.NewYork).Unix()
	if (d+1).At(0, 0, 0, compute.NewYork).Unix()-midnight == 24*3600 && len(*c) < 4096 {
		if *c == nil {
			*c = tradeClock{}
		}
		(*c)[string(date)] = midnight
	}
	return t.Unix()
}
