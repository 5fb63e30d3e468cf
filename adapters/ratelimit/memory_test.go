package ratelimit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/adapters/ratelimit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// clock is a time that stands until it is moved.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ns.Store(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time      { return time.Unix(0, c.ns.Load()) }
func (c *clock) add(d time.Duration) { c.ns.Add(int64(d)) }

func key(kind, value string, count int, window time.Duration, burst int) harness.RateKey {
	return harness.RateKey{Kind: kind, Value: value, Limit: anuencia.Limit{Count: count, Window: window, Burst: burst}}
}

func allow(t *testing.T, m *ratelimit.Memory, keys ...harness.RateKey) harness.RateResult {
	t.Helper()
	res, err := m.Allow(t.Context(), keys...)
	if err != nil {
		t.Fatalf("allow: %v", err)
	}
	return res
}

func TestBurstThenRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.now)
	k := key("actor", "a", 60, time.Minute, 3)
	for i := range 3 {
		if res := allow(t, m, k); !res.Allowed {
			t.Fatalf("request %d of the burst was refused", i+1)
		}
	}
	res := allow(t, m, k)
	if res.Allowed || res.RetryAfter != time.Second || res.Hit != k {
		t.Errorf("after the burst: %+v", res)
	}
	c.add(999 * time.Millisecond)
	if res := allow(t, m, k); res.Allowed || res.RetryAfter != time.Millisecond {
		t.Errorf("a moment too early: %+v", res)
	}
	c.add(time.Millisecond)
	if res := allow(t, m, k); !res.Allowed {
		t.Errorf("after RetryAfter it was refused: %+v", res)
	}
	c.add(time.Hour)
	for i := range 4 {
		if res := allow(t, m, k); res.Allowed != (i < 3) {
			t.Errorf("after a long rest, request %d: %+v", i+1, res)
		}
	}
}

func TestARefusedRequestCountsAgainstNone(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.now)
	wide, narrow := key("principal", "p", 60, time.Minute, 5), key("intent", "i", 1, time.Minute, 1)
	if res := allow(t, m, wide, narrow); !res.Allowed {
		t.Fatalf("the first was refused: %+v", res)
	}
	for range 20 {
		res := allow(t, m, wide, narrow)
		if res.Allowed || res.Hit != narrow || res.RetryAfter != time.Minute {
			t.Fatalf("got %+v", res)
		}
	}
	for i := range 5 {
		if res := allow(t, m, wide); res.Allowed != (i < 4) {
			t.Errorf("the wide key, request %d: %+v", i+2, res)
		}
	}
}

func TestTheLongestWaitIsNamed(t *testing.T) {
	t.Parallel()
	m := ratelimit.NewMemory(newClock().now)
	short, long := key("a", "x", 60, time.Minute, 1), key("b", "x", 1, time.Hour, 1)
	for _, keys := range [][]harness.RateKey{{short, long}, {long, short}} {
		allow(t, m, keys...)
		if res := allow(t, m, keys...); res.Hit != long || res.RetryAfter != time.Hour {
			t.Errorf("got %+v", res)
		}
	}
}

func TestKeysAreApart(t *testing.T) {
	t.Parallel()
	m := ratelimit.NewMemory(newClock().now)
	for _, k := range []harness.RateKey{
		key("a", "x", 1, time.Hour, 1), key("a", "y", 1, time.Hour, 1), key("b", "x", 1, time.Hour, 1),
		key("a", strings.Repeat("z", 5000), 1, time.Hour, 1), key("a", strings.Repeat("z", 5001), 1, time.Hour, 1),
	} {
		if res := allow(t, m, k, k); !res.Allowed { // twice in one call counts once
			t.Errorf("%s %.10s was refused: %+v", k.Kind, k.Value, res)
		}
		if res := allow(t, m, k); res.Allowed {
			t.Errorf("%s %.10s was not counted", k.Kind, k.Value)
		}
	}
}

func TestNoKeysPass(t *testing.T) {
	t.Parallel()
	m := ratelimit.NewMemory(newClock().now)
	if res := allow(t, m); !res.Allowed {
		t.Errorf("got %+v", res)
	}
}

func TestALimitThatIsNone(t *testing.T) {
	t.Parallel()
	m := ratelimit.NewMemory(newClock().now)
	for _, bad := range []harness.RateKey{
		key("a", "x", 0, time.Minute, 1), key("a", "x", 1, 0, 1), key("a", "x", 1, time.Minute, 0), key("", "x", 1, time.Minute, 1),
	} {
		res, err := m.Allow(t.Context(), key("b", "y", 1, time.Minute, 1), bad)
		if err == nil || res.Allowed {
			t.Errorf("%+v passed: %+v, %v", bad, res, err)
		}
	}
	if res := allow(t, m, key("b", "y", 1, time.Minute, 1)); !res.Allowed {
		t.Error("an error counted")
	}
}

func TestAClockSetBackDoesNotLockOut(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewMemory(c.now)
	k := key("a", "x", 60, time.Minute, 2)
	allow(t, m, k)
	c.add(-24 * time.Hour)
	res := allow(t, m, k)
	if !res.Allowed && res.RetryAfter > 2*time.Second {
		t.Errorf("locked out for %v", res.RetryAfter)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := ratelimit.NewBounded(c.now, 100)
	hot := key("address", "hot", 10, time.Hour, 10)
	for range 10 {
		allow(t, m, hot)
	}
	principal := key("principal", "p", 1, time.Hour, 1)
	allow(t, m, principal)
	for i := range 5000 {
		allow(t, m, key("address", fmt.Sprintf("10.0.%d.%d", i/256, i%256), 10, time.Hour, 10))
	}
	if n := m.Keys(); n > 101 {
		t.Errorf("%d keys are kept", n)
	}
	if res := allow(t, m, hot); res.Allowed {
		t.Error("a flood made the limiter forget who owes the most")
	}
	if res := allow(t, m, principal); res.Allowed {
		t.Error("a flood of one kind pushed out a key of another")
	}
	c.add(24 * time.Hour)
	for i := range 100 {
		allow(t, m, key("address", fmt.Sprintf("later %d", i), 10, time.Hour, 10))
	}
	if n := m.Keys(); n > 101 {
		t.Errorf("%d keys are kept after a day", n)
	}
}

func TestConcurrentRequestsNeverPassMoreThanTheBurst(t *testing.T) {
	t.Parallel()
	m := ratelimit.NewMemory(newClock().now)
	a, b := key("principal", "p", 1, time.Hour, 50), key("actor", "a", 1, time.Hour, 70)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 25 {
				res, err := m.Allow(context.Background(), a, b)
				if err != nil {
					t.Error(err)
				}
				if res.Allowed {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := passed.Load(); n != 50 {
		t.Errorf("%d passed, want 50", n)
	}
	left := 0
	for allow(t, m, b).Allowed {
		left++
	}
	if left != 20 {
		t.Errorf("%d were left on the wider key, want 20: a refused request counted", left)
	}
}

// Whatever the limits and the arrivals: in no stretch of time do more pass than
// the burst and what the rate gives for it, and after RetryAfter one passes.
func TestNeverMoreThanBurstAndRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := ratelimit.NewMemory(c.now)
		k := key("k", "v", rapid.IntRange(1, 1000).Draw(t, "count"),
			time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "window")), rapid.IntRange(1, 50).Draw(t, "burst"))
		var passed []int64
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			c.add(time.Duration(rapid.Int64Range(0, int64(k.Limit.Window)/int64(k.Limit.Count)*2+1).Draw(t, "gap")))
			res, err := m.Allow(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			if res.Allowed {
				passed = append(passed, c.ns.Load())
				continue
			}
			if res.RetryAfter <= 0 {
				t.Fatalf("refused with RetryAfter %v", res.RetryAfter)
			}
			if rapid.Bool().Draw(t, "waits") {
				c.add(res.RetryAfter)
				again, err := m.Allow(t.Context(), k)
				if err != nil || !again.Allowed {
					t.Fatalf("after RetryAfter: %+v, %v", again, err)
				}
				passed = append(passed, c.ns.Load())
			}
		}
		for from := range passed {
			for to := from; to < len(passed); to++ {
				span := float64(passed[to] - passed[from])
				most := float64(k.Limit.Burst) + span*float64(k.Limit.Count)/float64(k.Limit.Window)
				if n := float64(to - from + 1); n > most+1e-6 {
					t.Fatalf("%v passed in %v ns, at most %v may", n, span, most)
				}
			}
		}
	})
}

func BenchmarkAllow(b *testing.B) {
	m := ratelimit.NewMemory(newClock().now)
	keys := []harness.RateKey{
		key("principal", "p", 1e9, time.Second, 1e6), key("actor", "a", 1e9, time.Second, 1e6), key("intent", "i", 1e9, time.Second, 1e6),
	}
	for b.Loop() {
		if _, err := m.Allow(b.Context(), keys...); err != nil {
			b.Fatal(err)
		}
	}
}
