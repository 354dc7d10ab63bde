package limits

import (
	"fmt"
	"testing"
)

func TestAdmitFields(t *testing.T) {
	const left = 12 * 3600 // seconds from noon to midnight
	cases := []struct {
		name              string
		perMinute         int
		perDay            int64
		requests          int // at once; the last one is checked
		outcome           Outcome
		today, retry      int64
		policy, rateLimit string
		limit             [3]int64 // X-RateLimit-Limit, -Remaining and -Reset
	}{
		{"unlimited", 0, 0, 5, Allowed, 5, 0, "", "", [3]int64{}},
		{"rate", 600, 0, 1, Allowed, 1, 0, `"minute";q=600;w=60`, `"minute";r=599;t=1`, [3]int64{600, 599, 1}},
		{"rate refused", 2, 0, 3, RateLimited, 2, 30, `"minute";q=2;w=60`, `"minute";r=0;t=30`, [3]int64{2, 0, 60}},
		{"quota", 0, 10, 3, Allowed, 3, 0, `"day";q=10;w=86400`, `"day";r=7;t=43200`, [3]int64{10, 7, left}},
		{"quota refused", 0, 2, 9, QuotaExceeded, 2, left, `"day";q=2;w=86400`, `"day";r=0;t=43200`, [3]int64{2, 0, left}},
		{"both", 600, 100_000, 1, Allowed, 1, 0, `"minute";q=600;w=60, "day";q=100000;w=86400`, `"minute";r=599;t=1, "day";r=99999;t=43200`, [3]int64{600, 599, 1}},
		{"quota is nearer", 600, 10, 1, Allowed, 1, 0, `"minute";q=600;w=60, "day";q=10;w=86400`, `"minute";r=599;t=1, "day";r=9;t=43200`, [3]int64{10, 9, left}},
		{"both used up", 2, 2, 3, QuotaExceeded, 2, left, `"minute";q=2;w=60, "day";q=2;w=86400`, `"minute";r=0;t=30, "day";r=0;t=43200`, [3]int64{2, 0, left}},
		{"equal", 2, 2, 2, Allowed, 2, 0, `"minute";q=2;w=60, "day";q=2;w=86400`, `"minute";r=0;t=30, "day";r=0;t=43200`, [3]int64{2, 0, left}},
		{"rate before quota", 2, 3, 4, RateLimited, 2, 30, `"minute";q=2;w=60, "day";q=3;w=86400`, `"minute";r=0;t=30, "day";r=1;t=43200`, [3]int64{2, 0, 60}},
	}
	for _, c := range cases {
		var u Usage
		var v Verdict
		for range c.requests {
			v = u.Admit(c.perMinute, c.perDay, noon)
		}
		if v.Outcome != c.outcome || v.Today != c.today || v.RetryAfter() != c.retry {
			t.Errorf("%s: %+v, retry after %d", c.name, v, v.RetryAfter())
		}
		want := ""
		if c.policy != "" {
			want = fmt.Sprintf("RateLimit-Policy: %s\r\nRateLimit: %s\r\nX-RateLimit-Limit: %d\r\nX-RateLimit-Remaining: %d\r\nX-RateLimit-Reset: %d\r\n",
				c.policy, c.rateLimit, c.limit[0], c.limit[1], c.limit[2])
		}
		if got := string(v.AppendFields(nil)); got != want {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

func TestAppendUsage(t *testing.T) {
	end := midnight / second
	for want, got := range map[string][]byte{
		`{"tier":"keyed","key":"k_0","requests_today":3,"limit_per_day":10,"remaining_today":7,"resets_at":"2026-11-22T00:00:00Z"}`:       Verdict{Today: 3, PerDay: 10, DayEnd: end}.AppendUsage(nil, "k_0"),
		`{"tier":"keyed","key":"k_1","requests_today":12,"limit_per_day":10,"remaining_today":0,"resets_at":"2026-11-22T00:00:00Z"}`:      Verdict{Today: 12, PerDay: 10, DayEnd: end}.AppendUsage(nil, "k_1"),
		`x{"tier":"keyed","key":"k_2","requests_today":0,"limit_per_day":null,"remaining_today":null,"resets_at":"2026-11-22T00:00:00Z"}`: Verdict{DayEnd: end}.AppendUsage([]byte("x"), "k_2"),
	} {
		if string(got) != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
