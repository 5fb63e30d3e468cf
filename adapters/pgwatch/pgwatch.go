// Package pgwatch wakes waiters across processes with PostgreSQL's LISTEN and
// NOTIFY. A notification may be lost, so whoever waits also polls: this only
// makes waits short.
package pgwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// channel is the name that processes meet at.
const channel = "anuencia_executions"

const (
	queued      = 1024 // notifications on their way out; above it they are dropped, and waiters poll
	sendWithin  = 5 * time.Second
	retryListen = time.Second
)

// Watcher implements harness.Watcher. Safe for concurrent use.
type Watcher struct {
	local *harness.LocalWatcher
	pool  *pgxpool.Pool
	log   *slog.Logger
	out   chan anuencia.ExecutionID
}

var _ harness.Watcher = (*Watcher)(nil)

// New makes a watcher that does nothing across processes until Run.
func New(pool *pgxpool.Pool, log *slog.Logger) *Watcher {
	return &Watcher{local: harness.NewLocalWatcher(), pool: pool, log: log, out: make(chan anuencia.ExecutionID, queued)}
}

// Notify wakes those of this process at once and, with far, tells the others.
// It never blocks.
func (w *Watcher) Notify(id anuencia.ExecutionID, far bool) {
	w.local.Notify(id, far)
	if !far {
		return
	}
	select {
	case w.out <- id:
	default: // the others poll
	}
}

// Watch implements harness.Watcher.
func (w *Watcher) Watch(id anuencia.ExecutionID) (<-chan struct{}, func()) { return w.local.Watch(id) }

// Run listens and sends until ctx ends. A connection that is lost is made
// again; what was missed meanwhile is found by polling.
func (w *Watcher) Run(ctx context.Context) {
	go w.send(ctx)
	for ctx.Err() == nil {
		err := w.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		w.log.WarnContext(ctx, "the connection that listens was lost; waiters poll meanwhile", slog.Any("error", err))
		pause, cancel := context.WithTimeout(ctx, retryListen)
		<-pause.Done()
		cancel()
	}
}

func (w *Watcher) listen(ctx context.Context) (err error) {
	conn, err := w.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	// The connection goes on to hear of the channel, so it is not given back.
	raw := conn.Hijack()
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
		defer cancel()
		err = errors.Join(err, raw.Close(end))
	}()
	if _, err := raw.Exec(ctx, "listen "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	for {
		n, err := raw.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		id, err := anuencia.ParseID[anuencia.ExecutionID](n.Payload)
		if err != nil {
			continue // not one of ours
		}
		w.local.Notify(id, false)
	}
}

func (w *Watcher) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-w.out:
			limited, cancel := context.WithTimeout(ctx, sendWithin)
			if _, err := w.pool.Exec(limited, "select pg_notify($1, $2)", channel, id.String()); err != nil && ctx.Err() == nil {
				w.log.WarnContext(ctx, "a notification was not sent; waiters poll", slog.Any("error", err))
			}
			cancel()
		}
	}
}
