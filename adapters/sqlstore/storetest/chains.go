package storetest

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func chainsWithoutGap(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := create(t, s, Execution())
	const writers, each = 8, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range each {
				ev, sys := Event(e, anuencia.EventToolCompleted), systemEvent(i)
				boom := errors.New("boom")
				err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
					cur, err := tx.Execution(ctx, e.ID)
					if err != nil {
						return err
					}
					_, err = tx.PutExecution(ctx, cur, ev)
					if err = errors.Join(err, tx.RecordSystem(ctx, sys)); err == nil && i == 3 {
						return boom
					}
					return err
				})
				if err != nil && !errors.Is(err, boom) && !errors.Is(err, harness.ErrConflict) {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	all.Wait()
	kept, err := s.Execution(t.Context(), e.ID)
	must(t, err)
	if kept.Head.Seq != kept.Version+1 || kept.Version < 2 {
		t.Errorf("version %d, head %d", kept.Version, kept.Head.Seq)
	}
	verifyStream(t, s, anuencia.StreamOf(e.ID), &kept.Head)
	verifyStream(t, s, s.SystemStream(), nil)
	sys, err := s.Stream(t.Context(), s.SystemStream())
	must(t, err)
	if int64(len(sys)) != kept.Version-1 {
		t.Errorf("%d system events, %d updates", len(sys), kept.Version-1)
	}
}

// lostCommit: the database commits and the answer never comes.
func lostCommit(t *testing.T, open Opener) {
	t.Helper()
	var lose atomic.Bool
	o := Options()
	o.OnCommit = func(context.Context) error {
		if lose.Swap(false) {
			return driver.ErrBadConn
		}
		return nil
	}
	s := open(t, o)
	e := Execution()
	first := Event(e, anuencia.EventReceived)
	tries := 0
	put := func(ev anuencia.AuditEvent) {
		t.Helper()
		lose.Store(true)
		var out anuencia.Execution
		must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
			tries++
			var err error
			out, err = tx.PutExecution(ctx, e, ev)
			return err
		}))
		e = out
		verify(t, s, e)
	}
	put(first)
	put(Event(e, anuencia.EventToolRequested))
	put(Event(e, anuencia.EventToolCompleted))
	if e.Version != 3 || e.Head.Seq != 3 || lose.Load() {
		t.Errorf("version %d, head %d after three lost commits", e.Version, e.Head.Seq)
	}
	for i := range 3 {
		lose.Store(true)
		sys := systemEvent(i)
		must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.RecordSystem(ctx, sys) }))
	}
	rows, err := s.Stream(t.Context(), s.SystemStream())
	must(t, err)
	if len(rows) != 3 {
		t.Errorf("%d system events, want 3", len(rows))
	}
	verifyStream(t, s, s.SystemStream(), nil)
}

// lostConnection: a statement never arrived, so the closure runs again.
func lostConnection(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := Execution()
	ev := Event(e, anuencia.EventReceived)
	if s.SQLite() {
		e = create(t, s, e)
		verify(t, s, e)
		return // there is no connection to lose
	}
	// Connections die while others work.
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				x := Execution()
				ev := Event(x, anuencia.EventReceived)
				err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
					_, err := tx.PutExecution(ctx, x, ev)
					return err
				})
				if err != nil {
					t.Errorf("create: %v", err)
				}
			}
		})
	}
	for range 5 {
		_, err := s.Pool().Exec(t.Context(),
			"select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		must(t, err)
	}
	all.Wait()
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		var err error
		e, err = tx.PutExecution(ctx, e, ev)
		return err
	}))
	verify(t, s, e)
	list, err := s.Executions(t.Context(), harness.ExecutionFilter{Page: harness.Page{Limit: 100}})
	must(t, err)
	if len(list) != 41 {
		t.Errorf("%d executions, want 41", len(list))
	}
}

func statementCounts(t *testing.T, open Opener) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	o := Options()
	o.OnStatement = func(_ context.Context, text string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, text)
	}
	s := open(t, o)
	expect := func(what string, postgres, sqlite int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		want := postgres
		if s.SQLite() {
			want = sqlite
		}
		if len(seen) != want {
			t.Errorf("%s: %d statements, want %d:\n%s", what, len(seen), want, strings.Join(seen, "\n"))
		}
		seen = nil
	}
	mu.Lock()
	seen = nil
	mu.Unlock()
	e := create(t, s, Execution())
	expect("create", 1, 5) // begin, execution, two events, commit
	ev := Event(e, anuencia.EventCompleted)
	e.State = anuencia.StateCompleted
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, e, ev)
		return err
	}))
	expect("outcome", 1, 4)
	x := Execution()
	xe := Event(x, anuencia.EventReceived)
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, x, xe)
		key := harness.IdempotencyKey{Principal: x.PrincipalID, Key: "k", Digest: [32]byte{}, ExecutionID: x.ID, CreatedAt: Instant}
		return errors.Join(err, tx.BindKey(ctx, key))
	}))
	expect("create with a key", 1, 5)
	ghost := Event(Execution(), anuencia.EventFailed)
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.Record(ctx, ghost) }))
	expect("refusal", 1, 3)
	_, _, err := s.Key(t.Context(), x.PrincipalID, "k")
	must(t, err)
	_, err = s.Execution(t.Context(), x.ID)
	must(t, err)
	expect("two reads", 2, 0)
}

// poisonedClosure: of many units at once some fail and one panics; the others
// commit.
func poisonedClosure(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	twice := create(t, s, Execution())
	boom := errors.New("boom")
	var good sync.Map
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			defer func() {
				if v := recover(); (v != nil) != (i%15 == 14) {
					t.Errorf("unit %d: panic %v", i, v)
				}
			}()
			e := Execution()
			if i%5 == 1 {
				e.ID = twice.ID // exists
			}
			ev, sys := Event(e, anuencia.EventReceived), systemEvent(i)
			err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
				kept, err := tx.PutExecution(ctx, e, ev)
				if err = errors.Join(err, tx.RecordSystem(ctx, sys)); err != nil {
					return err
				}
				switch {
				case i%15 == 14:
					panic(boom)
				case i%5 == 2:
					return boom
				}
				e = kept
				return nil
			})
			switch i % 5 {
			case 1:
				if !errors.Is(err, harness.ErrConflict) {
					t.Errorf("unit %d: %v", i, err)
				}
			case 2:
				if !errors.Is(err, boom) {
					t.Errorf("unit %d: %v", i, err)
				}
			default:
				if err != nil {
					t.Errorf("unit %d: %v", i, err)
				}
				good.Store(e.ID, e)
			}
		})
	}
	all.Wait()
	n := 0
	good.Range(func(_, v any) bool {
		n++
		if e, ok := v.(anuencia.Execution); ok {
			verify(t, s, e)
		}
		return true
	})
	sys, err := s.Stream(t.Context(), s.SystemStream())
	must(t, err)
	if n != 32 || len(sys) != n {
		t.Errorf("%d good units, %d system events, want 32", n, len(sys))
	}
	verifyStream(t, s, s.SystemStream(), nil)
}

func nested(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var inner error
	outer := s.Atomically(ctx, func(ctx context.Context, _ harness.Tx) error {
		inner = s.Atomically(ctx, func(context.Context, harness.Tx) error { return nil })
		return nil
	})
	if outer != nil || inner == nil || ctx.Err() != nil {
		t.Errorf("outer %v, inner %v, %v", outer, inner, ctx.Err())
	}
}

func cancelledCaller(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := Execution()
	ev := Event(e, anuencia.EventReceived)
	err := s.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, e, ev)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Execution(t.Context(), e.ID); !errors.Is(err, anuencia.NotFound()) {
		t.Errorf("it was written: %v", err)
	}
}

func closedStore(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := create(t, s, Execution())
	must(t, s.Close())
	unavailable := anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonUnavailable)
	err := s.Atomically(t.Context(), func(context.Context, harness.Tx) error { return nil })
	if s.SQLite() && !errors.Is(err, unavailable) {
		t.Errorf("a unit: %v", err)
	}
	if _, err := s.Execution(t.Context(), e.ID); !errors.Is(err, unavailable) {
		t.Errorf("a read: %v", err)
	}
	ev := Event(e, anuencia.EventCompleted)
	err = s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, e, ev)
		return err
	})
	if !errors.Is(err, unavailable) {
		t.Errorf("a write: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, unavailable) {
		t.Errorf("ping: %v", err)
	}
}
