package sqlstore

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// approvalBy reads one approval; with lock the row is held to the end of the
// transaction (on SQLite the transaction itself is the lock).
func (s *Store) approvalBy(db *gorm.DB, lock bool, condition string, arg any) (anuencia.Approval, error) {
	q := db.Table("approvals").Select(approvalColumns()).Where(condition, arg)
	if lock {
		q = q.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	}
	row, err := one[approvalRow](q)
	if err != nil {
		return anuencia.Approval{}, err
	}
	list, err := s.withDecisions(db, []approvalRow{row})
	if err != nil {
		return anuencia.Approval{}, err
	}
	return list[0], nil
}

// withDecisions reads the decisions of all rows with one query.
func (*Store) withDecisions(db *gorm.DB, rows []approvalRow) ([]anuencia.Approval, error) {
	if len(rows) == 0 {
		return []anuencia.Approval{}, nil
	}
	ids := make([]any, len(rows))
	for i, r := range rows {
		ids[i] = idArg(r.ID)
	}
	found, err := many[decisionRow](db.Table("approval_decisions").
		Select("id", "approval_id", "approver", "approver_name", "handle", "roles", "verdict", "reason", "subject_hash", "channel",
			"principal_id", "decided_at").
		Where("approval_id in ?", ids).Order("approval_id, position"))
	if err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	of := map[uid][]anuencia.ApprovalDecision{}
	for _, r := range found {
		d, err := r.decision()
		if err != nil {
			return nil, err
		}
		of[r.ApprovalID] = append(of[r.ApprovalID], d)
	}
	return convert(rows, func(r approvalRow) (anuencia.Approval, error) { return r.approval(of[r.ID]) })
}

// Approval implements harness.ApprovalStore.
func (s *Store) Approval(ctx context.Context, id anuencia.ApprovalID) (anuencia.Approval, error) {
	a, err := s.approvalBy(s.reader(ctx), false, "id = ?", idArg(id))
	return a, reachable("read approval", err)
}

// ApprovalByCode implements harness.ApprovalStore.
func (s *Store) ApprovalByCode(ctx context.Context, code string) (anuencia.Approval, error) {
	a, err := s.approvalBy(s.reader(ctx), false, "short_code = ?", code)
	return a, reachable("read approval by code", err)
}

// ApprovalsOf implements harness.ApprovalStore: oldest first.
func (s *Store) ApprovalsOf(ctx context.Context, id anuencia.ExecutionID) ([]anuencia.Approval, error) {
	db := s.reader(ctx)
	return s.approvals(db, db.Table("approvals").Select(approvalColumns()).Where("execution_id = ?", idArg(id)).Order("id"))
}

// Approvals implements harness.ApprovalStore.
func (s *Store) Approvals(ctx context.Context, f harness.ApprovalFilter) ([]anuencia.Approval, error) {
	db := s.reader(ctx)
	q := page(db.Table("approvals").Select(approvalColumns()), f.Page)
	q = where(q, "status", f.Status, text[anuencia.ApprovalStatus])
	q = where(q, "intent", f.Intent, text[string])
	if len(f.Roles) > 0 {
		q = q.Where("exists (select 1 from approval_roles r where r.approval_id = approvals.id and r.role in ?)", f.Roles)
	}
	return s.approvals(db, q)
}

func (s *Store) approvals(db, q *gorm.DB) ([]anuencia.Approval, error) {
	rows, err := many[approvalRow](q)
	if err != nil {
		return nil, reachable("list approvals", err)
	}
	list, err := s.withDecisions(db, rows)
	return list, reachable("list approvals", err)
}

// LateApprovals implements harness.ApprovalStore: the latest last.
func (s *Store) LateApprovals(ctx context.Context, at time.Time, limit int) ([]anuencia.ApprovalID, error) {
	type row struct {
		ID uid `gorm:"column:id"`
	}
	rows, err := many[row](s.reader(ctx).Table("approvals").Select("id").
		Where("status = 'pending'").Where("expires_at <= ?", s.timeArg(at)).Order("expires_at").Limit(limit))
	if err != nil {
		return nil, reachable("list late approvals", err)
	}
	return convert(rows, func(r row) (anuencia.ApprovalID, error) { return anuencia.ApprovalID(r.ID), nil })
}
