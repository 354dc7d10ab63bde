package refresh_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"strikecache/compute"
	"strikecache/refresh"
)

// The answer of each flow limit has the bytes that an encoder gives for the limited flow.
func TestFlowOfEachLimit(t *testing.T) {
	for _, n := range []int{0, 1, 30, 100, 130} {
		f := compute.Flow{Items: []compute.FlowItem{}, Universe: []string{"<SPX>", `a"count":0,`}, SessionDate: 20777}
		for i := range n {
			ratio := compute.Ratio(i) / 7
			f.Items = append(f.Items, compute.FlowItem{ID: fmt.Sprint(i), Symbol: "A&B", Volume: compute.Count(i), IV: &ratio, Reasons: []string{"\u2028", "],\"count\":0"}})
		}
		variants, err := refresh.FlowVariants(f)
		if err != nil || len(variants) != compute.MaxFlowItems {
			t.Fatalf("%d variants, error %v", len(variants), err)
		}
		for limit := 1; limit <= compute.MaxFlowItems; limit++ {
			want, err := json.Marshal(f.Limit(limit))
			if err != nil {
				t.Fatal(err)
			}
			if got := variants[strconv.Itoa(limit)]; got != string(want) {
				t.Fatalf("%d items, limit %d:\n%s\nwant\n%s", n, limit, got, want)
			}
		}
	}
}
