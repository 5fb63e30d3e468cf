package riverq_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/riverq"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore/storetest"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// patience is far above what anything here takes.
const patience = 30 * time.Second

type house struct {
	store *sqlstore.Store
	o     riverq.Options
	queue *riverq.Queue
	mu    sync.Mutex
	fail  map[string]int // id -> how often the handler still fails
	runs  map[string]int
	seen  chan harness.Job
}

func (h *house) handle(_ context.Context, job harness.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs[job.ID]++
	if h.fail[job.ID] > 0 {
		h.fail[job.ID]--
		return errors.New("not yet")
	}
	h.seen <- job
	return nil
}

func (h *house) count(id string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id]
}

func both(t *testing.T, test func(t *testing.T, h *house)) {
	t.Helper()
	for name, where := range map[string]func(*testing.T, *sqlstore.Options){
		"sqlite":   func(t *testing.T, o *sqlstore.Options) { t.Helper(); o.SQLitePath = filepath.Join(t.TempDir(), "a.db") },
		"postgres": func(t *testing.T, o *sqlstore.Options) { t.Helper(); o.DatabaseURL = pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &house{fail: map[string]int{}, runs: map[string]int{}, seen: make(chan harness.Job, 10_000)}
			so := storetest.Options()
			where(t, &so)
			so.Enqueue = func(ctx context.Context, tx *sql.Tx, job harness.Job) error { return h.queue.Insert(ctx, tx, job) }
			must(t, sqlstore.Migrate(t.Context(), so))
			var err error
			h.store, err = sqlstore.Open(t.Context(), so)
			must(t, err)
			h.o = riverq.Options{
				DB: h.store.DB(), Pool: h.store.Pool(), Handler: h.handle, Log: slog.New(slog.DiscardHandler), Now: time.Now,
				SweepEvery: time.Hour,
			}
			must(t, riverq.Migrate(t.Context(), h.o))
			must(t, riverq.Migrate(t.Context(), h.o)) // a second time changes nothing
			h.renew(t)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
				defer cancel()
				if err := errors.Join(h.queue.Stop(ctx), h.store.Close()); err != nil {
					t.Error(err)
				}
			})
			test(t, h)
		})
	}
}

func (h *house) renew(t *testing.T) {
	t.Helper()
	q, err := riverq.New(h.o)
	must(t, err)
	h.queue = q
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unit stores an execution and asks for a job.
func (h *house) unit(ctx context.Context, kind harness.JobKind, runAt time.Time, fail error) (string, error) {
	e := storetest.Execution()
	ev := storetest.Event(e, anuencia.EventReceived)
	id := e.ID.String()
	err := h.store.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, e, ev)
		return errors.Join(err, tx.Enqueue(ctx, harness.Job{Kind: kind, ID: id, RunAt: runAt}), fail)
	})
	return id, err
}

// wait gives the next job that is no sweep or cleanup.
func (h *house) wait(t *testing.T) harness.Job {
	t.Helper()
	late, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case job := <-h.seen:
			if job.ID != "" {
				return job
			}
		case <-late.Done():
			t.Fatal("no job came")
		}
	}
}

func TestCommittedRunsAndRolledBackDoesNot(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		boom := errors.New("boom")
		must(t, h.queue.Start(t.Context()))
		bad, err := h.unit(t.Context(), harness.JobResume, time.Time{}, boom)
		if !errors.Is(err, boom) {
			t.Fatal(err)
		}
		good, err := h.unit(t.Context(), harness.JobResume, time.Time{}, nil)
		must(t, err)
		if job := h.wait(t); job.ID != good || job.Kind != harness.JobResume {
			t.Errorf("got %+v", job)
		}
		if n := h.count(bad); n != 0 {
			t.Errorf("a rolled-back job ran %d times", n)
		}
	})
}

func TestJobSurvivesARestart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		must(t, h.queue.Start(t.Context()))
		must(t, h.queue.Stop(t.Context()))
		must(t, h.queue.Stop(t.Context()))
		id, err := h.unit(t.Context(), harness.JobResume, time.Time{}, nil)
		must(t, err)
		h.renew(t)
		must(t, h.queue.Start(t.Context()))
		if job := h.wait(t); job.ID != id {
			t.Errorf("got %+v", job)
		}
	})
}

func TestScheduledAndTriedAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		must(t, h.queue.Start(t.Context()))
		due := time.Now().Add(3 * time.Second)
		id, err := h.unit(t.Context(), harness.JobExpire, due, nil)
		must(t, err)
		again, err := h.unit(t.Context(), harness.JobResume, time.Time{}, nil)
		must(t, err)
		if job := h.wait(t); job.ID != again {
			t.Errorf("first %+v", job)
		}
		stubborn := "stubborn"
		h.mu.Lock()
		h.fail[stubborn] = 2
		h.mu.Unlock()
		err = h.store.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
			return tx.Enqueue(ctx, harness.Job{Kind: harness.JobResume, ID: stubborn, RunAt: time.Time{}})
		})
		must(t, err)
		got := map[string]bool{}
		for range 2 {
			job := h.wait(t)
			got[job.ID] = true
			if now := time.Now(); job.ID == id && now.Before(due) {
				t.Errorf("it ran %s before it was due", due.Sub(now))
			}
		}
		if !got[id] || !got[stubborn] || h.count(stubborn) != 3 {
			t.Errorf("ran %v, stubborn %d times", got, h.count(stubborn))
		}
	})
}

func TestOneOfManyForTheSameObject(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		due := time.Now().Add(time.Hour)
		for range 5 {
			err := h.store.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
				return errors.Join(
					tx.Enqueue(ctx, harness.Job{Kind: harness.JobResume, ID: "a", RunAt: due}),
					tx.Enqueue(ctx, harness.Job{Kind: harness.JobExpire, ID: "a", RunAt: due}))
			})
			must(t, err)
		}
		var n int
		must(t, h.store.DB().QueryRowContext(t.Context(), "select count(*) from river_job").Scan(&n))
		if n != 2 {
			t.Errorf("%d jobs, want one of each kind", n)
		}
	})
}

func TestSweepsComeAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		h.o.SweepEvery = time.Second
		h.renew(t)
		must(t, h.queue.Start(t.Context()))
		kinds := map[harness.JobKind]int{}
		late, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for kinds[harness.JobSweep] < 3 || kinds[harness.JobCleanup] < 1 {
			select {
			case job := <-h.seen:
				kinds[job.Kind]++
			case <-late.Done():
				t.Fatalf("only %v", kinds)
			}
		}
		if kinds[harness.JobCleanup] != 1 {
			t.Errorf("got %v", kinds)
		}
	})
}

// TestUnderLoad: writers and workers share the database, and neither starves.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, h *house) {
		t.Helper()
		const writers, each = 8, 40
		must(t, h.queue.Start(t.Context()))
		started := time.Now()
		var written atomic.Int64
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					if _, err := h.unit(t.Context(), harness.JobResume, time.Time{}, nil); err != nil {
						t.Errorf("unit: %v", err)
						return
					}
					written.Add(1)
				}
			})
		}
		ran := map[string]int{}
		for range writers * each {
			ran[h.wait(t).ID]++
		}
		all.Wait()
		t.Log(strconv.FormatInt(written.Load(), 10), "units and their jobs in", time.Since(started))
		if len(ran) != writers*each || written.Load() != writers*each {
			t.Errorf("%d units, %d different jobs", written.Load(), len(ran))
		}
	})
}

// TestRunTimeRole: a role with no more than the grants inserts and works jobs.
func TestRunTimeRole(t *testing.T) {
	t.Parallel()
	h := &house{fail: map[string]int{}, runs: map[string]int{}, seen: make(chan harness.Job, 100)}
	so := storetest.Options()
	so.DatabaseURL = pgtest.URL(t)
	must(t, sqlstore.Migrate(t.Context(), so))
	owner, err := sqlstore.Open(t.Context(), so)
	must(t, err)
	defer func() { must(t, owner.Close()) }()
	o := riverq.Options{DB: owner.DB(), Pool: owner.Pool(), Handler: h.handle, Log: slog.New(slog.DiscardHandler), Now: time.Now, SweepEvery: time.Hour}
	must(t, riverq.Migrate(t.Context(), o))
	asOwner := so.DatabaseURL
	u, err := url.Parse(asOwner)
	must(t, err)
	role := "runner_" + filepath.Base(u.Path)
	must(t, pgtest.Exec(t.Context(), asOwner, "create role "+role+" login"))
	t.Cleanup(func() {
		for _, q := range []string{"drop owned by " + role, "drop role " + role} {
			if err := pgtest.Exec(context.WithoutCancel(t.Context()), asOwner, q); err != nil {
				t.Error(err)
			}
		}
	})
	must(t, sqlstore.GrantTo(t.Context(), so, role))
	must(t, riverq.GrantTo(t.Context(), o, role))
	u.User = url.User(role)
	so.DatabaseURL = u.String()
	so.Enqueue = func(ctx context.Context, tx *sql.Tx, job harness.Job) error { return h.queue.Insert(ctx, tx, job) }
	h.store, err = sqlstore.Open(t.Context(), so)
	must(t, err)
	defer func() { must(t, h.store.Close()) }()
	h.o = o
	h.o.DB, h.o.Pool = h.store.DB(), h.store.Pool()
	h.renew(t)
	must(t, h.queue.Start(t.Context()))
	defer func() { must(t, h.queue.Stop(context.WithoutCancel(t.Context()))) }()
	id, err := h.unit(t.Context(), harness.JobResume, time.Time{}, nil)
	must(t, err)
	if job := h.wait(t); job.ID != id {
		t.Errorf("got %+v", job)
	}
}
