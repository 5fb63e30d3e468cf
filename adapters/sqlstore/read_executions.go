package sqlstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func (*Store) executionBy(db *gorm.DB, condition string, arg any) (anuencia.Execution, error) {
	row, err := one[executionRow](db.Table("executions").Select(executionSelect()).Where(condition, arg))
	if err != nil {
		return anuencia.Execution{}, err
	}
	return row.execution()
}

// Execution implements harness.ExecutionStore.
func (s *Store) Execution(ctx context.Context, id anuencia.ExecutionID) (anuencia.Execution, error) {
	e, err := s.executionBy(s.reader(ctx), "id = ?", idArg(id))
	return e, reachable("read execution", err)
}

// ExecutionByCode implements harness.ExecutionStore.
func (s *Store) ExecutionByCode(ctx context.Context, code string) (anuencia.Execution, error) {
	e, err := s.executionBy(s.reader(ctx), "short_code = ?", code)
	return e, reachable("read execution by code", err)
}

// Executions implements harness.ExecutionStore.
func (s *Store) Executions(ctx context.Context, f harness.ExecutionFilter) ([]anuencia.Execution, error) {
	q := page(s.reader(ctx).Table("executions").Select(executionSelect()), f.Page)
	q = where(q, "actor_id", f.Actor, idArg[anuencia.PersonID])
	q = where(q, "state", f.State, text[anuencia.State])
	q = where(q, "intent", f.Intent, text[string])
	q = where(q, "subject_ref", f.Subject, text[string])
	q = where(q, "channel", f.Channel, text[anuencia.Channel])
	q = where(q, "risk", f.Risk, text[anuencia.Risk])
	q = where(q, "fault_code", f.Code, text[anuencia.Code])
	q = s.between(q, "created_at", f.From, f.To)
	return executionsOf(q, "list executions")
}

// between narrows by time: from inclusive, to exclusive, zero for open.
func (s *Store) between(q *gorm.DB, column string, from, to time.Time) *gorm.DB {
	if !from.IsZero() {
		q = q.Where(column+" >= ?", s.timeArg(from))
	}
	if !to.IsZero() {
		q = q.Where(column+" < ?", s.timeArg(to))
	}
	return q
}

func executionsOf(q *gorm.DB, doing string) ([]anuencia.Execution, error) {
	rows, err := many[executionRow](q)
	if err != nil {
		return nil, reachable(doing, err)
	}
	list, err := convert(rows, executionRow.execution)
	if err != nil {
		return nil, wrap(doing, err)
	}
	return list, nil
}

// Unsettled implements harness.ExecutionStore.
func (s *Store) Unsettled(ctx context.Context, at time.Time, limit int) ([]anuencia.Execution, error) {
	// The literal list is what the partial index is on.
	q := s.reader(ctx).Table("executions").Select(executionSelect()).
		Where("state in ('approved', 'running')").
		Where("state = 'approved' or lease_until <= ?", s.timeArg(at)).
		Order("id").Limit(limit)
	return executionsOf(q, "list unsettled executions")
}

type artifactRow struct {
	ID          uid     `gorm:"column:id"`
	ExecutionID uid     `gorm:"column:execution_id"`
	Filename    string  `gorm:"column:filename"`
	MediaType   string  `gorm:"column:media_type"`
	Content     []byte  `gorm:"column:content"`
	SHA256      digest  `gorm:"column:sha256"`
	CreatedAt   instant `gorm:"column:created_at"`
}

func artifactColumns() []string {
	return []string{"id", "execution_id", "filename", "media_type", "sha256", "created_at"}
}

func (r artifactRow) artifact() (anuencia.Artifact, error) {
	return anuencia.Artifact{
		ID: anuencia.ArtifactID(r.ID), ExecutionID: anuencia.ExecutionID(r.ExecutionID), Filename: r.Filename,
		MediaType: r.MediaType, Content: r.Content, SHA256: r.SHA256, CreatedAt: r.CreatedAt.at,
	}, nil
}

// Artifacts implements harness.ExecutionStore: by filename, without content.
func (s *Store) Artifacts(ctx context.Context, id anuencia.ExecutionID) ([]anuencia.Artifact, error) {
	rows, err := many[artifactRow](s.reader(ctx).Table("artifacts").Select(artifactColumns()).
		Where("execution_id = ?", idArg(id)).Order("filename"))
	if err != nil {
		return nil, reachable("list artifacts", err)
	}
	return convert(rows, artifactRow.artifact)
}

// Artifact implements harness.ExecutionStore.
func (s *Store) Artifact(ctx context.Context, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error) {
	row, err := one[artifactRow](s.reader(ctx).Table("artifacts").Select(append(artifactColumns(), "content")).
		Where("execution_id = ? and filename = ?", idArg(id), filename))
	if err != nil {
		return anuencia.Artifact{}, reachable("read artifact", err)
	}
	return row.artifact()
}

type keyRow struct {
	Digest      digest  `gorm:"column:digest"`
	ExecutionID uid     `gorm:"column:execution_id"`
	CreatedAt   instant `gorm:"column:created_at"`
}

func keyBy(db *gorm.DB, p anuencia.PrincipalID, key string) (harness.IdempotencyKey, bool, error) {
	row, err := one[keyRow](db.Table("idempotency_keys").Select("digest", "execution_id", "created_at").
		Where("principal_id = ? and key = ?", p.String(), key))
	switch {
	case err == nil:
	case isNotFound(err):
		return harness.IdempotencyKey{}, false, nil
	default:
		return harness.IdempotencyKey{}, false, err
	}
	return harness.IdempotencyKey{
		Principal: p, Key: key, Digest: row.Digest, ExecutionID: anuencia.ExecutionID(row.ExecutionID), CreatedAt: row.CreatedAt.at,
	}, true, nil
}

// Key implements harness.ExecutionStore.
func (s *Store) Key(ctx context.Context, p anuencia.PrincipalID, key string) (harness.IdempotencyKey, bool, error) {
	k, ok, err := keyBy(s.reader(ctx), p, key)
	return k, ok, reachable("read idempotency key", err)
}

// DropKeys implements harness.ExecutionStore.
func (s *Store) DropKeys(ctx context.Context, before time.Time) (int64, error) {
	res := s.gwrite.WithContext(ctx).Exec("delete from idempotency_keys where created_at < ?", s.timeArg(before))
	return res.RowsAffected, reachable("drop idempotency keys", res.Error)
}
