package sqlstore

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// AuditEvent implements harness.AuditStore. The events that this store gives
// have PayloadText and no Payload.
func (s *Store) AuditEvent(ctx context.Context, id anuencia.EventID) (anuencia.SealedEvent, error) {
	row, err := one[eventRow](s.reader(ctx).Table("audit_events").Select(eventColumns()).Where("id = ?", idArg(id)))
	if err != nil {
		return anuencia.SealedEvent{}, reachable("read audit event", err)
	}
	return row.event(), nil
}

// AuditEvents implements harness.AuditStore.
func (s *Store) AuditEvents(ctx context.Context, f harness.AuditFilter) ([]anuencia.SealedEvent, error) {
	q := page(s.reader(ctx).Table("audit_events").Select(eventColumns()), f.Page)
	q = where(q, "event_type", f.Type, text[anuencia.EventType])
	q = where(q, "execution_id", f.ExecutionID, idArg[anuencia.ExecutionID])
	q = where(q, "actor_id", f.Actor, idArg[anuencia.PersonID])
	q = where(q, "principal_id", f.Principal, idArg[anuencia.PrincipalID])
	q = where(q, "channel", f.Channel, text[anuencia.Channel])
	q = where(q, "subject_ref", f.Subject, text[string])
	q = where(q, "error_code", f.Code, text[anuencia.Code])
	return eventsOf(s.between(q, "occurred_at", f.From, f.To), "list audit events")
}

// Stream implements harness.AuditStore.
func (s *Store) Stream(ctx context.Context, id anuencia.StreamID) ([]anuencia.SealedEvent, error) {
	q := s.reader(ctx).Table("audit_events").Select(eventColumns()).Where("stream_id = ?", idArg(id)).Order("seq")
	return eventsOf(q, "read stream")
}

func eventsOf(q *gorm.DB, doing string) ([]anuencia.SealedEvent, error) {
	rows, err := many[eventRow](q)
	if err != nil {
		return nil, reachable(doing, err)
	}
	return convert(rows, func(r eventRow) (anuencia.SealedEvent, error) { return r.event(), nil })
}

// Streams lists the chains there are, in order of id after the one given (zero:
// from the first), at most limit. It reads what rows there are, so that a chain
// without its first row is listed too.
func (s *Store) Streams(ctx context.Context, after anuencia.StreamID, limit int) ([]anuencia.StreamID, error) {
	type row struct {
		StreamID uid `gorm:"column:stream_id"`
	}
	rows, err := many[row](s.reader(ctx).Table("audit_events").Distinct("stream_id").
		Where("stream_id > ?", after.String()).Order("stream_id").Limit(limit))
	if err != nil {
		return nil, reachable("list streams", err)
	}
	return convert(rows, func(r row) (anuencia.StreamID, error) { return anuencia.StreamID(r.StreamID), nil })
}

// ExecutionHead is the end of an execution's chain as the row of the execution
// remembers it: a chain whose tail was cut ends before it.
type ExecutionHead struct {
	ID   anuencia.ExecutionID
	Head anuencia.Head
}

// Heads lists the ends of the executions' chains, in order of id after the one
// given (zero: from the first), at most limit.
func (s *Store) Heads(ctx context.Context, after anuencia.ExecutionID, limit int) ([]ExecutionHead, error) {
	type row struct {
		ID       uid    `gorm:"column:id"`
		HeadSeq  int64  `gorm:"column:head_seq"`
		HeadHash digest `gorm:"column:head_hash"`
	}
	rows, err := many[row](s.reader(ctx).Table("executions").Select("id", "head_seq", "head_hash").
		Where("id > ?", after.String()).Order("id").Limit(limit))
	if err != nil {
		return nil, reachable("list heads", err)
	}
	return convert(rows, func(r row) (ExecutionHead, error) {
		return ExecutionHead{ID: anuencia.ExecutionID(r.ID), Head: anuencia.Head{Seq: r.HeadSeq, Hash: r.HeadHash}}, nil
	})
}

// lastOf reads the end of a chain from its rows.
func lastOf(db *gorm.DB, stream anuencia.StreamID) (anuencia.Head, error) {
	type row struct {
		Seq  int64  `gorm:"column:seq"`
		Hash digest `gorm:"column:hash"`
	}
	rows, err := many[row](db.Table("audit_events").Select("seq", "hash").
		Where("stream_id = ?", idArg(stream)).Order("seq desc").Limit(1))
	if err != nil {
		return anuencia.Head{}, fmt.Errorf("end of the stream: %w", err)
	}
	if len(rows) == 0 {
		return anuencia.Head{}, nil
	}
	return anuencia.Head{Seq: rows[0].Seq, Hash: rows[0].Hash}, nil
}
