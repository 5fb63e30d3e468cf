package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// unit is one try of a unit of work. Its writes are buffered in ops and sent by
// flush. It is used by one goroutine.
type unit struct {
	s    *Store
	c    *call
	tx   *gorm.DB // the open transaction, nil while there is none
	ops  []op
	jobs []harness.Job
	sys  []anuencia.AuditEvent // sealed at the very end, see system
	exec map[anuencia.ExecutionID]anuencia.Execution
	said map[anuencia.ApprovalID]int // decisions that the database has
	// failed is the first error of the database: the try is lost, whatever the
	// closure made of it.
	failed error
}

// call is what the tries of one Atomically share: the seals, so that a repeat
// of the same events has the same salts and so the same head, and the events by
// which a lost commit can be recognised.
type call struct {
	seals map[anuencia.EventID]seal
	marks []mark
}

type seal struct {
	from   anuencia.Head
	events []anuencia.AuditEvent
	rows   []anuencia.SealedEvent
	to     anuencia.Head
}

// mark is an event that is in the database if, and only if, the try that made
// it was committed: nobody else can make its hash.
type mark struct {
	id   anuencia.EventID
	hash [32]byte
}

func newUnit(s *Store, c *call, tx *gorm.DB) *unit {
	return &unit{
		s: s, c: c, tx: tx,
		exec: map[anuencia.ExecutionID]anuencia.Execution{}, said: map[anuencia.ApprovalID]int{},
	}
}

// fail remembers a database error.
func (u *unit) fail(doing string, err error) error {
	err = wrap(doing, err)
	if u.failed == nil {
		u.failed = err
	}
	return err
}

// session is where this unit reads: its transaction, or the writing handle.
func (u *unit) session(ctx context.Context) *gorm.DB {
	if u.tx != nil {
		return u.tx.WithContext(ctx)
	}
	return u.s.gwrite.WithContext(ctx)
}

// begin opens the transaction on PostgreSQL; on SQLite it is open.
func (u *unit) begin(ctx context.Context) error {
	if u.tx != nil {
		return nil
	}
	tx := u.s.gwrite.WithContext(ctx).Begin()
	if tx.Error != nil {
		return u.fail("begin", tx.Error)
	}
	u.tx = tx
	return nil
}

// sqlTx is the transaction under GORM's, which the queue joins.
func (u *unit) sqlTx() (*sql.Tx, error) {
	tx, ok := u.tx.Statement.ConnPool.(*sql.Tx)
	if !ok {
		return nil, fmt.Errorf("no *sql.Tx under the transaction but %T", u.tx.Statement.ConnPool)
	}
	return tx, nil
}

// LockApproval implements harness.Tx.
func (u *unit) LockApproval(ctx context.Context, id anuencia.ApprovalID) (anuencia.Approval, error) {
	if err := u.begin(ctx); err != nil {
		return anuencia.Approval{}, err
	}
	a, err := u.s.approvalBy(u.session(ctx), true, "id = ?", idArg(id))
	if err != nil {
		if isNotFound(err) {
			return a, err
		}
		return a, u.fail("lock approval", err)
	}
	u.said[id] = len(a.Decisions)
	return a, nil
}

// Execution implements harness.Tx. What this unit has put already is what it
// reads.
func (u *unit) Execution(ctx context.Context, id anuencia.ExecutionID) (anuencia.Execution, error) {
	if e, ok := u.exec[id]; ok {
		return e, nil
	}
	e, err := u.s.executionBy(u.session(ctx), "id = ?", idArg(id))
	if err != nil && !isNotFound(err) {
		err = u.fail("read execution", err)
	}
	return e, err
}

// Key implements harness.Tx.
func (u *unit) Key(ctx context.Context, p anuencia.PrincipalID, key string) (harness.IdempotencyKey, bool, error) {
	k, ok, err := keyBy(u.session(ctx), p, key)
	if err != nil {
		err = u.fail("read idempotency key", err)
	}
	return k, ok, err
}

// PutExecution implements harness.Tx.
func (u *unit) PutExecution(_ context.Context, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Execution, error) {
	events, err := inStream(anuencia.StreamOf(e.ID), first, more)
	if err != nil {
		return e, err
	}
	if e.Version == 0 && e.Head != (anuencia.Head{}) {
		return e, errors.New("put execution: a new one has no chain yet")
	}
	rows, head, err := u.c.seal(e.Head, events)
	if err != nil {
		return e, err
	}
	was := e.Version
	e.Version, e.Head = was+1, head
	u.exec[e.ID] = e
	u.ops = append(u.ops, &executionOp{e: e, was: was, events: rows})
	return e, nil
}

// PutApproval implements harness.Tx.
func (u *unit) PutApproval(ctx context.Context, a anuencia.Approval, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Approval, anuencia.Execution, error) {
	if a.ExecutionID != e.ID {
		return a, e, errors.New("put approval: it is of another execution")
	}
	e, err := u.PutExecution(ctx, e, first, more...)
	if err != nil {
		return a, e, err
	}
	was := a.Version
	a.Version++
	u.ops = append(u.ops, &approvalOp{a: a, was: was, said: u.said[a.ID]})
	u.said[a.ID] = len(a.Decisions)
	return a, e, nil
}

// PutArtifact implements harness.Tx.
func (u *unit) PutArtifact(_ context.Context, a anuencia.Artifact) error {
	if _, ok := u.exec[a.ExecutionID]; !ok {
		return errors.New("put artifact: its execution is not in this unit")
	}
	u.ops = append(u.ops, &artifactOp{a: a})
	return nil
}

// BindKey implements harness.Tx.
func (u *unit) BindKey(_ context.Context, k harness.IdempotencyKey) error {
	if _, ok := u.exec[k.ExecutionID]; !ok {
		return errors.New("bind key: its execution is not in this unit")
	}
	u.ops = append(u.ops, &keyOp{k: k})
	return nil
}

// PutToken implements harness.Tx.
func (u *unit) PutToken(_ context.Context, t anuencia.Token, first anuencia.AuditEvent) error {
	u.ops = append(u.ops, &tokenOp{t: t})
	u.sys = append(u.sys, first)
	return nil
}

// PutHold implements harness.Tx.
func (u *unit) PutHold(_ context.Context, h anuencia.Hold, first anuencia.AuditEvent) error {
	u.ops = append(u.ops, &holdOp{h: h})
	u.sys = append(u.sys, first)
	return nil
}

// Record implements harness.Tx. Events that name no stream get that of the
// first event's id, so that a retry makes the same chain.
func (u *unit) Record(_ context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error {
	stream := first.StreamID
	if stream.IsZero() {
		stream = anuencia.StreamID(first.ID)
	}
	events, err := inStream(stream, first, more)
	if err != nil {
		return err
	}
	rows, _, err := u.c.seal(anuencia.Head{}, events)
	if err != nil {
		return err
	}
	u.ops = append(u.ops, &recordOp{events: rows})
	return nil
}

// RecordSystem implements harness.Tx.
func (u *unit) RecordSystem(_ context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error {
	u.sys = append(append(u.sys, first), more...)
	return nil
}

// Enqueue implements harness.Tx.
func (u *unit) Enqueue(_ context.Context, job harness.Job) error {
	if u.s.o.Enqueue == nil {
		return errors.New("enqueue: the store has no queue")
	}
	u.jobs = append(u.jobs, job)
	return nil
}

// inStream puts events into a chain and refuses those of another one.
func inStream(stream anuencia.StreamID, first anuencia.AuditEvent, more []anuencia.AuditEvent) ([]anuencia.AuditEvent, error) {
	events := append([]anuencia.AuditEvent{first}, more...)
	for i := range events {
		if events[i].StreamID.IsZero() {
			events[i].StreamID = stream
		}
		if events[i].StreamID != stream {
			return nil, fmt.Errorf("event %s is of another stream", events[i].Type)
		}
		events[i].OccurredAt = anuencia.Instant(events[i].OccurredAt)
	}
	return events, nil
}

func (c *call) seal(from anuencia.Head, events []anuencia.AuditEvent) ([]anuencia.SealedEvent, anuencia.Head, error) {
	known, ok := c.seals[events[0].ID]
	if ok && known.from == from && reflect.DeepEqual(known.events, events) {
		return known.rows, known.to, nil
	}
	rows, to, err := audit.Seal(from, events)
	if err != nil {
		return nil, from, wrap("seal", err)
	}
	c.seals[events[0].ID] = seal{from: from, events: events, rows: rows, to: to}
	return rows, to, nil
}

var _ harness.Tx = (*unit)(nil)
