package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/harness"
)

// maxBatch bounds how many units share a transaction of SQLite, so that others
// who write (the queue, another process) get their turn.
const maxBatch = 64

// committer is the one goroutine that writes to SQLite. It runs the closures
// that are waiting, each under a savepoint, in one transaction, and commits them
// with one sync of the disk (core-data.md, Do 3). A closure that fails is rolled
// back alone.
type committer struct {
	s     *Store
	queue chan *entry
	quit  chan struct{}
	done  chan struct{}
}

// entry is one closure that waits for its turn.
type entry struct {
	ctx   context.Context //nolint:containedctx // handed over to the goroutine that runs the closure
	c     *call
	fn    func(context.Context, harness.Tx) error
	unit  *unit
	err   error
	panic any
	ready chan struct{}
}

func startCommitter(ctx context.Context, s *Store) *committer {
	b := &committer{s: s, queue: make(chan *entry, maxBatch), quit: make(chan struct{}), done: make(chan struct{})}
	go b.loop(ctx)
	return b
}

func (b *committer) stop() {
	close(b.quit)
	<-b.done
}

// run hands a closure over and waits for the end of its transaction. It waits
// even when ctx ends: the closure may be running.
func (b *committer) run(ctx context.Context, c *call, fn func(context.Context, harness.Tx) error) (*unit, error) {
	e := &entry{ctx: ctx, c: c, fn: fn, unit: newUnit(b.s, c, nil), ready: make(chan struct{})}
	select {
	case b.queue <- e:
	case <-ctx.Done():
		return e.unit, fmt.Errorf("wait for the writer: %w", context.Cause(ctx))
	case <-b.quit:
		return e.unit, e.unit.fail("write", errStopped)
	}
	select {
	case <-e.ready:
	case <-b.done:
		select {
		case <-e.ready:
		default: // it was left in the queue
			return e.unit, e.unit.fail("write", errStopped)
		}
	}
	if e.panic != nil {
		panic(e.panic) // the closure's own, back in the caller's goroutine
	}
	return e.unit, e.err
}

func (b *committer) loop(ctx context.Context) {
	defer close(b.done)
	for {
		select {
		case <-b.quit:
			return
		case first := <-b.queue:
			b.commit(ctx, b.collect(first))
		}
	}
}

// collect takes what is waiting now and waits for no more.
func (b *committer) collect(first *entry) []*entry {
	batch := []*entry{first}
	for len(batch) < maxBatch {
		select {
		case e := <-b.queue:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

func (b *committer) commit(ctx context.Context, batch []*entry) {
	defer func() {
		for _, e := range batch {
			close(e.ready)
		}
	}()
	head := b.s.system.head
	err := b.transaction(ctx, batch)
	if err == nil {
		return
	}
	b.s.system.head, b.s.system.unsure = head, true
	for _, e := range batch {
		if e.err == nil && e.panic == nil {
			e.err = e.unit.fail("shared transaction", err)
		}
	}
}

// transaction runs the batch. Its error is that of the whole: every closure that
// had no failure of its own has it.
func (b *committer) transaction(ctx context.Context, batch []*entry) error {
	tx := b.s.gwrite.WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	b.s.statement(ctx, "begin")
	for _, e := range batch {
		if err := b.savepoint(ctx, tx, e); err != nil {
			return errors.Join(fmt.Errorf("%w: %w", errBatch, err), ignoreDone(tx.Rollback().Error))
		}
	}
	b.s.statement(ctx, "commit")
	if err := tx.Commit().Error; err != nil {
		return errors.Join(fmt.Errorf("commit: %w", err), ignoreDone(tx.Rollback().Error))
	}
	for _, e := range batch {
		if e.err == nil && e.panic == nil {
			e.err = e.unit.committed(ctx)
		}
	}
	return nil
}

// ignoreDone: a transaction that SQLite has rolled back by itself is gone.
func ignoreDone(err error) error {
	if err == nil || strings.Contains(err.Error(), "already been committed or rolled back") ||
		strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return wrap("roll back", err)
}

// savepoint runs one closure. It gives an error only when the transaction
// itself is lost.
func (b *committer) savepoint(ctx context.Context, tx *gorm.DB, e *entry) error {
	if cause := context.Cause(e.ctx); cause != nil { //nolint:contextcheck // the caller's context, not the writer's
		e.err = fmt.Errorf("wait for the writer: %w", cause)
		return nil
	}
	pool := tx.Statement.ConnPool
	if _, err := pool.ExecContext(ctx, "savepoint one"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	head, unsure := b.s.system.head, b.s.system.unsure
	e.unit.tx = tx
	e.err = b.closure(e) //nolint:contextcheck // it runs with the caller's context
	if e.err == nil && e.panic == nil {
		if _, err := pool.ExecContext(ctx, "release one"); err != nil {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	}
	b.s.system.head, b.s.system.unsure = head, unsure
	for _, text := range []string{"rollback to one", "release one"} {
		if _, err := pool.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// closure runs the caller's function and its writes. Statements run without the
// caller's cancellation: an interrupted write makes SQLite roll the whole shared
// transaction back.
func (b *committer) closure(e *entry) (err error) {
	defer func() { e.panic = recover() }()
	ctx := context.WithoutCancel(e.ctx)
	u := e.unit
	if err := u.run(ctx, e.fn); err != nil {
		return err
	}
	u.order()
	if err := u.writes(ctx); err != nil {
		return err
	}
	_, head, err := u.systemEvents(ctx)
	if err == nil && len(u.sys) > 0 {
		b.s.system.head = head
	}
	return err
}
