// Package riverq keeps durable jobs in the store's own database with River, so
// that a job exists if, and only if, the transaction that asked for it was
// committed. It knows no rule: a job is a kind and an id, and what it means is
// the handler's.
package riverq

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/anuencia-harness/anuencia/internal/harness"
)

const (
	// fetchCooldown on both the inserting and the working client: with River's
	// default, notifications close to each other are dropped (core-data.md).
	fetchCooldown = 5 * time.Millisecond
	// rescueMargin: a job of a process that died is given to another one this long
	// after its timeout. River's default is an hour.
	rescueMargin = 15 * time.Second
	// uniquePeriod: of the jobs for the same kind and id that fall due in the same
	// period one is kept. A period, and not for as long as the job lives, because
	// the job of a killed process stays "running" until it is rescued, and the
	// sweep must get past it.
	uniquePeriod = 5 * time.Second
	// most is as often as River can try: with the longest pause, eleven days.
	most         = 32767
	longestPause = 30 * time.Second
	// keptFor is how long finished jobs are kept.
	keptFor = time.Hour
)

// Options are the parts of a Queue.
type Options struct {
	// DB is the store's writing handle. On SQLite the queue works on it as well,
	// so that it and the store's writer take turns on one connection.
	DB *sql.DB
	// Pool is the pool under DB on PostgreSQL; nil means SQLite.
	Pool *pgxpool.Pool
	// Handler does a job. An error means: again, after 1 s and then up to 30 s. It
	// may be given the same job twice, and jobs that are no longer due. Nil makes a
	// queue that only inserts.
	Handler func(ctx context.Context, job harness.Job) error
	// Log receives River's own messages. Required.
	Log *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
	// Workers is how many jobs run at once; 8 when zero.
	Workers int
	// JobTimeout ends a job's context; 15 minutes when zero, above the longest run
	// of an agent.
	JobTimeout time.Duration
	// SweepEvery is the period of JobSweep, 10 s when zero; CleanupEvery that of
	// JobCleanup, an hour when zero.
	SweepEvery, CleanupEvery time.Duration
}

func (o *Options) defaults() error {
	if o.DB == nil || o.Log == nil || o.Now == nil {
		return errors.New("riverq: the database, the logger and the clock are required")
	}
	if o.Workers == 0 {
		o.Workers = 8
	}
	if o.JobTimeout == 0 {
		o.JobTimeout = 15 * time.Minute
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = 10 * time.Second
	}
	if o.CleanupEvery == 0 {
		o.CleanupEvery = time.Hour
	}
	return nil
}

// args is what River keeps of a job. One kind of River's serves all of ours, so
// that a binary that does not know a new one tries it again later instead of
// dropping it.
type args struct {
	JobKind harness.JobKind `json:"kind" river:"unique"`
	ID      string          `json:"id" river:"unique"`
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "anuencia" }

// runner is the part of a River client that does not depend on the database.
type runner interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	StopAndCancel(ctx context.Context) error
	Insert(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

type inserter interface {
	InsertTx(ctx context.Context, tx *sql.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Queue inserts jobs and, with a handler, runs them. Safe for concurrent use.
type Queue struct {
	o      Options
	insert inserter
	work   runner // nil without a handler

	mu      sync.Mutex
	running bool
}

// New makes a queue over a migrated database (Migrate); it starts nothing. The
// error is that of a missing part.
func New(o Options) (*Queue, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	q := &Queue{o: o}
	if o.Pool == nil {
		c, err := river.NewClient(riversqlite.New(o.DB), q.config())
		if err != nil {
			return nil, fmt.Errorf("queue on SQLite: %w", err)
		}
		q.insert = c
		if o.Handler != nil {
			q.work = c
		}
		return q, nil
	}
	c, err := river.NewClient(riverdatabasesql.New(o.DB), &river.Config{Logger: o.Log, FetchCooldown: fetchCooldown})
	if err != nil {
		return nil, fmt.Errorf("inserting queue: %w", err)
	}
	q.insert = c
	if o.Handler != nil {
		w, err := river.NewClient(riverpgxv5.New(o.Pool), q.config())
		if err != nil {
			return nil, fmt.Errorf("working queue: %w", err)
		}
		q.work = w
	}
	return q, nil
}

func (q *Queue) config() *river.Config {
	cfg := &river.Config{Logger: q.o.Log, FetchCooldown: fetchCooldown}
	if q.o.Handler == nil {
		return cfg
	}
	cfg.Workers = river.NewWorkers()
	river.AddWorker(cfg.Workers, &worker{handle: q.o.Handler})
	cfg.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.o.Workers}}
	cfg.JobTimeout = q.o.JobTimeout
	cfg.RescueStuckJobsAfter = q.o.JobTimeout + rescueMargin
	cfg.RetryPolicy = retry{now: q.o.Now}
	cfg.MaxAttempts = most
	cfg.CompletedJobRetentionPeriod = keptFor
	cfg.PeriodicJobs = []*river.PeriodicJob{
		periodic(harness.JobSweep, q.o.SweepEvery), periodic(harness.JobCleanup, q.o.CleanupEvery),
	}
	return cfg
}

// periodic jobs are tried once: the next one comes anyway.
func periodic(kind harness.JobKind, every time.Duration) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) {
		return args{JobKind: kind, ID: ""}, &river.InsertOpts{MaxAttempts: 1}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// Insert adds a job in the transaction given; it is the store's Enqueue. The
// store is opened before its queue, so cmd hands it a function that calls the
// queue made later.
func (q *Queue) Insert(ctx context.Context, tx *sql.Tx, job harness.Job) error {
	opts := &river.InsertOpts{
		MaxAttempts: most,
		ScheduledAt: job.RunAt,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByPeriod: uniquePeriod},
	}
	opts.UniqueOpts.ByState = []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
		rivertype.JobStateScheduled,
	}
	if _, err := q.insert.InsertTx(ctx, tx, args{JobKind: job.Kind, ID: job.ID}, opts); err != nil {
		return fmt.Errorf("insert job: %w", err)
	}
	return nil
}

// Start begins to work and asks for a sweep at once: the periodic one waits for
// the leadership that a killed process may still hold. It outlives ctx; Stop
// ends it.
func (q *Queue) Start(ctx context.Context) error {
	if q.work == nil {
		return errors.New("start the queue: it has no handler")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running {
		return errors.New("start the queue: it runs already")
	}
	if err := q.work.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the queue: %w", err)
	}
	q.running = true
	if _, err := q.work.Insert(ctx, args{JobKind: harness.JobSweep, ID: ""}, &river.InsertOpts{MaxAttempts: 1}); err != nil {
		return fmt.Errorf("first sweep: %w", err)
	}
	return nil
}

// Stop takes no new job and waits for those that run; when ctx ends it cancels
// them and waits for their end. A cancelled job is tried again later.
func (q *Queue) Stop(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running {
		return nil
	}
	q.running = false
	err := q.work.Stop(ctx)
	if err == nil || ctx.Err() == nil {
		return wrapped("stop the queue", err)
	}
	hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), rescueMargin)
	defer cancel()
	return wrapped("stop the queue", q.work.StopAndCancel(hard))
}

func wrapped(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

type worker struct {
	river.WorkerDefaults[args]

	handle func(ctx context.Context, job harness.Job) error
}

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	return w.handle(ctx, harness.Job{Kind: job.Args.JobKind, ID: job.Args.ID, RunAt: job.ScheduledAt})
}

// retry doubles the pause from one second to thirty.
type retry struct {
	now func() time.Time
}

// NextRetry implements river.ClientRetryPolicy.
func (r retry) NextRetry(job *rivertype.JobRow) time.Time {
	pause := min(time.Second<<min(max(job.Attempt-1, 0), 5), longestPause)
	pause -= time.Duration(rand.Int64N(int64(pause / 5))) //nolint:gosec // jitter is no secret
	return r.now().UTC().Add(pause)
}
