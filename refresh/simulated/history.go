package simulated

import (
	"strconv"
	"time"

	"strikecache/compute"
)

// historyHour is the hour of the day, New York, at which a history gets the row of the day.
const historyHour = 18

// lastBar returns the last session whose row the histories have.
func (m *Market) lastBar(at time.Time) int {
	today := compute.DateOf(at.In(compute.NewYork))
	return m.morning(today, at, historyHour)
}

// historyBody writes the daily history of an instrument up to session last. The values of indices are strings.
func (m *Market) historyBody(in *instrument, last int) []byte {
	b := make([]byte, 0, 110*(last+1)+64)
	b = append(append(b, `{"symbol":"`...), in.symbol...)
	b = append(b, `","data":[`...)
	for i, row := range m.bars(in, last) {
		if i < in.unlisted {
			row = bar{}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"date":"`...), m.factors.dates[i].String()...)
		b = append(b, '"')
		b = appendBar(b, row, in.index())
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

func appendBar(b []byte, r bar, quoted bool) []byte {
	for i, key := range [...]string{`,"open":`, `,"high":`, `,"low":`, `,"close":`} {
		b = append(b, key...)
		x := [...]float64{r.open, r.high, r.low, r.close}[i]
		if quoted {
			b = strconv.AppendFloat(append(b, '"'), x, 'f', 4, 64)
			b = append(b, '"')
		} else {
			b = appendFixed(b, x, 2)
		}
	}
	b = append(b, `,"volume":`...)
	if quoted {
		return append(b, `"0"`...)
	}
	return strconv.AppendInt(b, r.shares, 10)
}
