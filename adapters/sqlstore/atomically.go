package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// How often a unit is tried again.
const (
	conflictTries = 20 // another writer was first: short waits
	lostTries     = 6  // the connection went: longer waits, about two seconds in all
)

type insideKey struct{}

// Atomically implements harness.Transactor.
func (s *Store) Atomically(ctx context.Context, fn func(ctx context.Context, tx harness.Tx) error) error {
	if ctx.Value(insideKey{}) != nil {
		return errors.New("a unit of work inside another one") // on SQLite it would wait for itself
	}
	inside := context.WithValue(ctx, insideKey{}, true)
	c := &call{seals: map[anuencia.EventID]seal{}}
	conflicts, losses := 0, 0
	for {
		u, err := s.try(inside, c, fn)
		if err == nil {
			return nil
		}
		if u.failed == nil {
			return err // the closure's own
		}
		err = u.failed
		kind := classify(err)
		switch kind {
		case troubleOther, troubleDown:
			return reachable("unit of work", err)
		case troubleLost:
			losses++
			u.remember()
		case troubleConflict:
			conflicts++
		}
		if s.landed(inside, c) {
			return nil
		}
		switch {
		case losses >= lostTries:
			return anuencia.Unavailable("unit of work", err)
		case conflicts >= conflictTries:
			return fmt.Errorf("unit of work: %w: %w", harness.ErrConflict, err)
		}
		if err := pause(ctx, kind, conflicts+losses); err != nil {
			return err
		}
	}
}

// pause waits a random while that grows with the tries.
func pause(ctx context.Context, kind trouble, tries int) error {
	most := min(time.Millisecond<<min(tries, 6), 50*time.Millisecond)
	if kind == troubleLost {
		most = min(20*time.Millisecond<<min(tries, 6), 800*time.Millisecond)
	}
	wait := most/2 + time.Duration(rand.Int64N(int64(most))) //nolint:gosec // jitter is no secret
	timer, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-timer.Done()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("unit of work: %w", context.Cause(ctx))
	}
	return nil
}

// try runs the closure once. An error of the database is in the unit's failed;
// any other error is the closure's own.
func (s *Store) try(ctx context.Context, c *call, fn func(context.Context, harness.Tx) error) (*unit, error) {
	if s.sqlite {
		return s.batch.run(ctx, c, fn)
	}
	u := newUnit(s, c, nil)
	err := func() (err error) {
		defer func() { err = u.close(err) }() // also when the closure panics
		return s.tryPostgres(ctx, u, fn)
	}()
	return u, err
}

// close rolls back what is still open: something failed, or nothing was to be
// written. A rollback that fails matters only beside the error that led to it.
func (u *unit) close(err error) error {
	if u.tx == nil {
		return err
	}
	rollback := u.tx.Rollback().Error
	u.tx = nil
	if err == nil || rollback == nil || errors.Is(rollback, sql.ErrTxDone) {
		return err
	}
	return errors.Join(err, wrap("roll back", rollback))
}

func (s *Store) tryPostgres(ctx context.Context, u *unit, fn func(context.Context, harness.Tx) error) error {
	if err := u.run(ctx, fn); err != nil {
		return err
	}
	u.order()
	if u.tx == nil && u.alone() {
		if err := u.ops[0].apply(ctx, s, s.gwrite.Statement.ConnPool); err != nil {
			return u.fail("write", err)
		}
		return u.committed(ctx)
	}
	if len(u.ops) == 0 && len(u.jobs) == 0 && len(u.sys) == 0 {
		return nil
	}
	if err := u.begin(ctx); err != nil {
		return err
	}
	if err := u.writes(ctx); err != nil {
		return err
	}
	release, head, err := u.systemEvents(ctx)
	if err != nil {
		return err
	}
	err = u.tx.Commit().Error
	u.tx = nil
	if err != nil {
		err = u.fail("commit", lostCommit(err))
	} else {
		err = u.committed(ctx)
	}
	if release != nil {
		if s.system.unsure = err != nil; err == nil {
			s.system.head = head
		}
		release()
	}
	return err
}

// run calls the closure. When a statement failed the try is lost, whatever the
// closure made of it.
func (u *unit) run(ctx context.Context, fn func(context.Context, harness.Tx) error) error {
	err := fn(ctx, u)
	if u.failed != nil {
		return u.failed
	}
	return err
}

// lostCommit: whatever is not the server's own answer to a COMMIT leaves open
// whether it happened.
func lostCommit(err error) error {
	if classify(err) == troubleOther {
		return fmt.Errorf("%w: %w", errBatch, err)
	}
	return err
}

// committed lets a test lose the answer of a commit.
func (u *unit) committed(ctx context.Context) error {
	if u.s.o.OnCommit == nil {
		return nil
	}
	if err := u.s.o.OnCommit(ctx); err != nil {
		return u.fail("commit", err)
	}
	return nil
}

// order sorts the writes and binds the key with its execution.
func (u *unit) order() {
	slices.SortStableFunc(u.ops, func(a, b op) int { return a.rank() - b.rank() })
	if !u.s.sqlite {
		u.ops = mergeKey(u.ops)
	}
}

// alone says whether one statement is all there is.
func (u *unit) alone() bool {
	if len(u.ops) != 1 || len(u.jobs) > 0 || len(u.sys) > 0 {
		return false
	}
	switch u.ops[0].(type) {
	case *executionOp, *recordOp:
		return true
	}
	return false
}

// writes sends the buffered writes and the jobs into the open transaction.
func (u *unit) writes(ctx context.Context) error {
	tx, err := u.sqlTx()
	if err != nil {
		return u.fail("write", err)
	}
	for _, o := range u.ops {
		if err := o.apply(ctx, u.s, tx); err != nil {
			return u.fail("write", err)
		}
	}
	for _, job := range u.jobs {
		if err := u.s.o.Enqueue(ctx, tx, job); err != nil {
			return u.fail("enqueue "+string(job.Kind), err)
		}
	}
	return nil
}

// systemEvents seals and writes the events of the process's own chain. On
// PostgreSQL it is done last, with the connection in hand, and the slot is held
// until release: whoever waits for the slot waits for a commit only, never for a
// row or a connection. release is nil when there are none.
func (u *unit) systemEvents(ctx context.Context) (release func(), head anuencia.Head, err error) {
	if len(u.sys) == 0 {
		return nil, anuencia.Head{}, nil
	}
	sys := &u.s.system
	release = func() {}
	if !u.s.sqlite {
		select {
		case sys.slot <- struct{}{}:
			release = func() { <-sys.slot }
		case <-ctx.Done():
			return nil, head, u.fail("system events", context.Cause(ctx))
		}
	}
	if head, err = u.sealSystem(ctx); err != nil {
		release()
		return nil, head, err
	}
	return release, head, nil
}

func (u *unit) sealSystem(ctx context.Context) (anuencia.Head, error) {
	sys := &u.s.system
	if sys.unsure {
		head, err := lastOf(u.session(ctx), sys.stream)
		if err != nil {
			return head, u.fail("read the system chain", err)
		}
		sys.head, sys.unsure = head, false
	}
	for i := range u.sys {
		u.sys[i].StreamID = sys.stream
		u.sys[i].OccurredAt = anuencia.Instant(u.sys[i].OccurredAt)
	}
	rows, head, err := audit.Seal(sys.head, u.sys)
	if err != nil {
		return head, wrap("seal", err)
	}
	tx, err := u.sqlTx()
	if err != nil {
		return head, u.fail("system events", err)
	}
	o := &recordOp{events: rows}
	if err := o.apply(ctx, u.s, tx); err != nil {
		return head, u.fail("system events", err)
	}
	u.ops = append(u.ops, o) // for its mark
	return head, nil
}

// remember keeps the marks of a try whose commit may have happened.
func (u *unit) remember() {
	for _, o := range u.ops {
		if m, ok := o.mark(); ok {
			u.c.marks = append(u.c.marks, m)
			return
		}
	}
}

// landed says whether a try whose answer was lost was committed after all: its
// event is there, with the hash that only it can have. When the database cannot
// be asked the answer is no, and the next try finds out.
func (s *Store) landed(ctx context.Context, c *call) bool {
	for _, m := range c.marks {
		var row struct {
			Hash digest `gorm:"column:hash"`
		}
		res := s.reader(ctx).Table("audit_events").Select("hash").Where("id = ?", idArg(m.id)).Limit(1).Scan(&row)
		if res.Error == nil && res.RowsAffected == 1 && row.Hash == m.hash {
			return true
		}
	}
	return false
}
