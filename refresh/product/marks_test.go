package product

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// A row of a series says by which method it was made, and whether the shares were split since the session before. Rows that were stored
// before there were these columns have null there.
func TestSeriesMarkSplitsAndMethods(t *testing.T) {
	a := newAnswers(t)
	day := time.Date(2026, time.November, 20, 16, 0, 0, 0, time.UTC)
	before := quietMarket(t, "NVDA", "", "NVDA", day.AddDate(0, 0, -1), 1200)
	const earlier = `{"snapshot":"","row":["2026-11-18","2026-11-18",1,2,3,4,5,6,7,"positive","2026-11-17",8,"cboe"]}`
	for _, c := range []struct {
		now      synthetic
		previous string
		split    string
	}{
		{quietMarket(t, "NVDA", "", "NVDA", day, 1210), "previous/options/NVDA.json", "false"},
		{halved(t, quietMarket(t, "NVDA", "", "NVDA", day, 1210)), "previous/options/NVDA.json", "true"},
		{quietMarket(t, "NVDA", "", "NVDA", day, 1210), "", "null"},
	} {
		now := madeInput{Name: "options/NVDA.json", Body: c.now.body}
		inputs := []madeInput{now}
		if c.previous != "" {
			inputs = append(inputs, madeInput{Name: c.previous, Body: before.body})
		}
		_, rows := a.sealRow("gex/nvda", 0.04, inputs...)
		rows.Body = bytes.Replace(rows.Body, []byte("[{"), []byte("["+earlier+",{"), 1)
		data := a.seal("gex/nvda/series", 0.04, now, rows).Data()
		for _, want := range []string{`8,"cboe",null,null],["2026-11-20",`, fmt.Sprintf(`,"made",%s,"gex/6"]]`, c.split)} {
			if !bytes.Contains(data, []byte(want)) {
				t.Errorf("split %s: want %s in %s", c.split, want, data)
			}
		}
	}
	a.verify()
}
