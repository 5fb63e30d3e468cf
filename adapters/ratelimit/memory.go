// Package ratelimit counts requests in the memory of one process: GCRA over
// several keys at once (contracts section 6).
package ratelimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anuencia-harness/anuencia/internal/harness"
)

const (
	defaultMaxKeys = 50_000  // of one kind: some 8 MiB
	longestKey     = 64      // bytes; longer ones are kept as their SHA-256
	sample         = 8       // keys looked at for each new one
	farthest       = 1 << 61 // ns, some 73 years: no limit reaches further, and sums stay within an int64
)

// Memory implements harness.Limiter. Safe for concurrent use.
//
// It is a GCRA (generic cell rate algorithm): for each key one instant, the
// theoretical arrival time at which all that was let through would be used up.
// It is our own because the kept libraries take one key a call: a request that
// its third key refuses would already count against the first two.
type Memory struct {
	now     func() time.Time
	maxKeys int
	mu      sync.Mutex
	kinds   map[string]map[string]int64 // kind -> value -> theoretical arrival, Unix ns
}

var _ harness.Limiter = (*Memory)(nil)

// NewMemory makes an empty limiter.
func NewMemory(now func() time.Time) *Memory { return NewBounded(now, defaultMaxKeys) }

// NewBounded is NewMemory with another bound on the keys kept for each kind.
// Kinds are bounded apart, so that a flood of addresses cannot push principals
// out.
func NewBounded(now func() time.Time, maxKeys int) *Memory {
	return &Memory{now: now, maxKeys: max(1, maxKeys), kinds: map[string]map[string]int64{}}
}

// Allow lets the request pass if all keys have room, and counts it against
// each; else it counts against none and names the key with the longest wait. A
// key given twice counts once. An error means a limit that is none.
func (m *Memory) Allow(_ context.Context, keys ...harness.RateKey) (harness.RateResult, error) {
	for _, k := range keys {
		if err := check(k); err != nil {
			return harness.RateResult{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().UnixNano()
	res := harness.RateResult{Allowed: true}
	next := make([]int64, len(keys))
	for i, k := range keys {
		var wait time.Duration
		next[i], wait = m.step(k, now)
		if wait > res.RetryAfter {
			res = harness.RateResult{Hit: k, RetryAfter: wait}
		}
	}
	if !res.Allowed {
		return res, nil
	}
	for i, k := range keys {
		m.put(k.Kind, short(k.Value), next[i], now)
	}
	return res, nil
}

func check(k harness.RateKey) error {
	if k.Kind == "" {
		return errors.New("rate limit: a key without a kind")
	}
	if k.Limit.Count <= 0 || k.Limit.Burst <= 0 || k.Limit.Window <= 0 {
		return fmt.Errorf("rate limit: the limit of %q needs count, window and burst", k.Kind)
	}
	return nil
}

// step gives the arrival time after this request, and how long it is too early.
func (m *Memory) step(k harness.RateKey, now int64) (next int64, wait time.Duration) {
	// Rounded up: never a request more than the rate.
	count := int64(k.Limit.Count)
	interval := max(1, (int64(k.Limit.Window)+count-1)/count)
	room := interval * min(int64(k.Limit.Burst), farthest/interval)
	arrival := max(now, m.kinds[k.Kind][short(k.Value)])
	// A clock set back, or a limit made narrower, must not lock a key out for
	// longer than a full bucket takes.
	arrival = min(arrival, now+room)
	next = arrival + interval
	return next, time.Duration(max(0, next-room-now))
}

func (m *Memory) put(kind, value string, arrival, now int64) {
	of := m.kinds[kind]
	if of == nil {
		of = map[string]int64{}
		m.kinds[kind] = of
	}
	if _, known := of[value]; !known {
		m.makeRoom(of, now)
	}
	of[value] = arrival
}

// makeRoom drops keys whose time is over: they are as good as absent. When the
// bound is reached all the same, it forgets, of a few at random, the one that
// owes the least.
func (m *Memory) makeRoom(of map[string]int64, now int64) {
	seen, least, first := 0, "", true
	for value, arrival := range of {
		if seen++; seen > sample {
			break
		}
		if arrival <= now {
			delete(of, value)
			continue
		}
		if first || arrival < of[least] {
			least, first = value, false
		}
	}
	if len(of) >= m.maxKeys && !first {
		delete(of, least)
	}
}

// short bounds a key whose text a caller chose.
func short(value string) string {
	if len(value) <= longestKey {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return string(sum[:])
}

// Keys says how many keys are kept.
func (m *Memory) Keys() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, of := range m.kinds {
		n += len(of)
	}
	return n
}
