package limits

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func TestDay(t *testing.T) {
	var u Usage
	for i, s := range []struct {
		at, count int64
		outcome   Outcome
	}{
		{noon, 1, Allowed}, {noon, 2, Allowed}, {midnight - 1, 3, Allowed}, {midnight - 1, 3, QuotaExceeded},
		{midnight, 1, Allowed},
		{midnight - 3600*second, 3, QuotaExceeded}, // the clock went back to the day that it left
		{midnight, 2, Allowed},
		{midnight + 30*24*3600*second, 1, Allowed},
		{noon, 1, Allowed},
	} {
		if v := u.Admit(0, 3, s.at); v.Today != s.count || v.Outcome != s.outcome {
			t.Errorf("step %d: %+v", i, v)
		}
	}
	for _, c := range [][2]int64{{-5, 0}, {7, 7}, {math.MaxInt64, maxRestored}} {
		u.Restore(noon, c[0], c[0])
		if count, last := u.Today(noon); count != c[1] || last != c[1] || u.Refused.Load() != 2 {
			t.Errorf("restored %d as %d, last used %d, %d refused", c[0], count, last, u.Refused.Load())
		}
	}
	if count, last := u.Today(midnight); count != 0 || last != maxRestored {
		t.Errorf("count %d on another day, last used %d", count, last)
	}
	if u.Admit(0, 0, noon+1); u.last != noon/second {
		t.Errorf("last used %d", u.last)
	}
}

// A request over the quota takes no token.
func TestQuotaTakesNoToken(t *testing.T) {
	var u Usage
	u.Restore(noon, 5, 0)
	for range 100 {
		if v := u.Admit(60, 5, noon); v.Outcome != QuotaExceeded || v.Minute.Remaining != 60 {
			t.Fatalf("%+v", v)
		}
	}
	if v := u.Admit(60, 5, midnight-1); v.DayLeft != 1 {
		t.Errorf("just before midnight: %+v", v)
	}
	if v := u.Admit(60, 5, midnight); v.Outcome != Allowed || v.Today != 1 || v.DayLeft != 86_400 {
		t.Errorf("at midnight: %+v", v)
	}
}

// Of concurrent requests, as many are allowed as the lower limit says, and these are counted.
func TestAdmitConcurrent(t *testing.T) {
	admit := func(perMinute int, perDay int64) func(nowNanos int64) Verdict {
		u := &Usage{}
		return func(nowNanos int64) Verdict { return u.Admit(perMinute, perDay, nowNanos) }
	}
	addresses := NewAddresses(900)
	for name, admit := range map[string]func(nowNanos int64) Verdict{
		"day": admit(1000, 900), "minute": admit(900, 1000), "minute alone": admit(900, 0), "day alone": admit(0, 900),
		"address": func(nowNanos int64) Verdict { return addresses.Admit(v4(1), nowNanos) },
	} {
		var allowed atomic.Int64
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 300 { // the times of callers differ by less than a token
					if admit(noon+int64((i+g)%7)).Outcome == Allowed {
						allowed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if v := admit(noon); allowed.Load() != 900 || v.Outcome == Allowed || name != "address" && v.Today != 900 {
			t.Errorf("%s: allowed %d, then %+v", name, allowed.Load(), v)
		}
	}
}
