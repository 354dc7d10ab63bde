package limits

import (
	"math/rand/v2"
	"testing"
	"time"
)

// noon is an instant in the middle of a UTC day.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).UnixNano()

const second = int64(time.Second)

var midnight = noon + 12*3600*second

func TestBucketByHand(t *testing.T) {
	var b bucket
	steps := []struct {
		at   int64 // seconds after noon
		want Decision
	}{ // 6 a minute: a token takes 10 s
		{0, Decision{true, 5, 10, 10}},
		{0, Decision{true, 4, 10, 20}},
		{4, Decision{true, 3, 6, 26}},
		{4, Decision{true, 2, 6, 36}},
		{4, Decision{true, 1, 6, 46}},
		{4, Decision{true, 0, 6, 56}},
		{4, Decision{false, 0, 6, 56}},
		{9, Decision{false, 0, 1, 51}},
		{10, Decision{true, 0, 10, 60}},
		{10, Decision{false, 0, 10, 60}},
		{130, Decision{true, 5, 10, 10}},
	}
	for i, s := range steps {
		if got := b.take(noon+s.at*second, 6, 1); got != s.want {
			t.Errorf("step %d at %d s: %+v, want %+v", i, s.at, got, s.want)
		}
	}
	full := Decision{OK: true, Remaining: 6}
	if got := b.take(noon+200*second, 6, 0); got != full {
		t.Errorf("full bucket: %+v", got)
	}
	if got := new(bucket).take(noon, 6, 0); got != full {
		t.Errorf("new bucket: %+v", got)
	}
}

// A refused client is allowed after NextSeconds. After half the time of a token it is still refused.
func TestBucketRetryIsExact(t *testing.T) {
	for _, rate := range []int{1, 2, 7, 59, 60, 61, 600, 999_999, MaxPerMinute} {
		if interval(rate)*int64(rate) < 60*second {
			t.Errorf("rate %d: a minute's tokens take less than a minute", rate)
		}
		var b bucket
		for i := range rate {
			if d := b.take(noon, rate, 1); !d.OK || d.Remaining != int64(rate-i-1) {
				t.Fatalf("rate %d, request %d: %+v", rate, i, d)
			}
		}
		d := b.take(noon, rate, 1)
		if d.OK || d.Remaining != 0 || d.NextSeconds != max(1, (60+int64(rate)-1)/int64(rate)) || d.ResetSeconds < 60 || d.ResetSeconds > 61 {
			t.Errorf("rate %d: empty bucket says %+v", rate, d)
		}
		if b.take(noon+interval(rate)/2, rate, 1).OK {
			t.Errorf("rate %d: allowed after half a token", rate)
		}
		if !b.take(noon+d.NextSeconds*second, rate, 1).OK {
			t.Errorf("rate %d: refused after the wait", rate)
		}
	}
}

// For random arrivals: at most a full bucket and the tokens refilled since the start are allowed, Remaining is exact,
// and no request is refused while there is a token.
func TestBucketProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		rate := 1 + random.IntN(1000)
		var b bucket
		now, allowed := noon, int64(0)
		for range 400 {
			now += random.Int64N(3 * interval(rate))
			before := b.take(now, rate, 0)
			d := b.take(now, rate, 1)
			if d.OK != (before.Remaining > 0) || d.OK && d.Remaining != before.Remaining-1 {
				t.Fatalf("rate %d: peeked %+v, took %+v", rate, before, d)
			}
			if d.OK {
				allowed++
			}
			if most := int64(rate) + (now-noon)/interval(rate); allowed > most {
				t.Fatalf("rate %d: %d allowed, at most %d", rate, allowed, most)
			}
			if d.Remaining < 0 || d.Remaining >= int64(rate) || d.NextSeconds < 1 || d.NextSeconds > 60 || d.ResetSeconds > 61 {
				t.Fatalf("rate %d: %+v", rate, d)
			}
		}
	}
}

func TestBucketClockGoesBack(t *testing.T) {
	for _, back := range []int64{1, second / 2, second, 2 * second, 3600 * second, noon} {
		var b bucket
		for range 60 {
			b.take(noon, 60, 1)
		}
		now := noon - back
		if d := b.take(now, 60, 1); d.OK || d.NextSeconds > 2 {
			t.Errorf("%v back: %+v", time.Duration(back), d)
		}
		if d := b.take(now+2*second, 60, 1); !d.OK {
			t.Errorf("%v back: still refused 2 s later: %+v", time.Duration(back), d)
		}
		if d := b.take(now, 60, 0); d.Remaining < 0 || d.Remaining > 60 {
			t.Errorf("%v back: %+v", time.Duration(back), d)
		}
	}
}

// A client keeps its share of the allowance when its rate changes.
func TestBucketRateChange(t *testing.T) {
	var b bucket
	for range 30 {
		b.take(noon, 60, 1)
	}
	for _, c := range []struct {
		rate int
		want int64
	}{{60, 30}, {600, 300}, {6, 3}} {
		if d := b.take(noon, c.rate, 0); d.Remaining != c.want {
			t.Errorf("at %d a minute: %+v", c.rate, d)
		}
	}
}
