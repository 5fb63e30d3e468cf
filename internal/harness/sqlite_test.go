package harness_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// crashStore is the real store on SQLite, with faults on demand around its
// transactions and the queue held by the test.
type crashStore struct {
	*sqlstore.Store
	t          fataler
	mu         sync.Mutex
	jobs       []harness.Job
	failBefore int
	failAfter  int
}

func newCrashStore(t fataler, dir string) *crashStore {
	t.Helper()
	s := &crashStore{t: t}
	o := sqlstore.Options{
		SQLitePath: filepath.Join(dir, "a.db"), Now: anuenciatest.NewClock().Now,
		NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
		Enqueue: func(_ context.Context, _ *sql.Tx, job harness.Job) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.jobs = append(s.jobs, job) // one that is rolled back is late work, which must do no harm
			return nil
		},
	}
	if err := sqlstore.Migrate(context.Background(), o); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	var err error
	if s.Store, err = sqlstore.Open(context.Background(), o); err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

func (s *crashStore) FailBefore(n int) { s.mu.Lock(); s.failBefore = n; s.mu.Unlock() }
func (s *crashStore) FailAfter(n int)  { s.mu.Lock(); s.failAfter = n; s.mu.Unlock() }

func (s *crashStore) take(n *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *n == 0 {
		return false
	}
	*n--
	return true
}

// Atomically rolls back, or commits and says that it failed, when told to.
func (s *crashStore) Atomically(ctx context.Context, fn func(context.Context, harness.Tx) error) error {
	before, after := s.take(&s.failBefore), false
	err := s.Store.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if before {
			return anuencia.Unavailable("commit", anuenciatest.ErrStoreDown)
		}
		return nil
	})
	if err == nil {
		after = s.take(&s.failAfter)
	}
	if after {
		return anuencia.Unavailable("commit", anuenciatest.ErrStoreDown)
	}
	return err
}

// TakeJobs gives the queued jobs and empties the queue.
func (s *crashStore) TakeJobs() []harness.Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := s.jobs
	s.jobs = nil
	return jobs
}

// Chains gives every chain there is.
func (s *crashStore) Chains() map[anuencia.StreamID][]anuencia.SealedEvent {
	out := map[anuencia.StreamID][]anuencia.SealedEvent{}
	ids, err := s.Streams(context.Background(), anuencia.StreamID{}, 10_000)
	if err != nil {
		s.t.Fatalf("streams: %v", err)
	}
	for _, id := range ids {
		if out[id], err = s.Stream(context.Background(), id); err != nil {
			s.t.Fatalf("stream: %v", err)
		}
	}
	return out
}

// AllExecutions gives every execution there is.
func (s *crashStore) AllExecutions() []anuencia.Execution {
	list, err := s.Executions(context.Background(), harness.ExecutionFilter{Page: harness.Page{Limit: 201}})
	if err != nil {
		s.t.Fatalf("executions: %v", err)
	}
	return list
}

// TestLifecycleOnSQLite is TestLifecycleHoldsTheInvariants over the store that
// ships.
func TestLifecycleOnSQLite(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(parent, "db") //nolint:usetesting // one for each generated run, below t.TempDir
		if err != nil {
			rt.Fatalf("folder: %v", err)
		}
		store := newCrashStore(rt, dir)
		defer func() {
			if err := store.Close(); err != nil {
				rt.Errorf("close: %v", err)
			}
		}()
		m := &machine{w: newWorldOn(rt, store), ended: map[anuencia.ExecutionID]anuencia.Execution{}}
		rt.Repeat(rapid.StateMachineActions(m))
	})
}
