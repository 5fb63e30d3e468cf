package harness

import (
	"context"
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Expire closes an approval whose time is over, with its execution:
// TIMEOUT/approval_expired. Called for one that is decided, gone or not late
// yet, it changes nothing.
func (s *Service) Expire(ctx context.Context, id anuencia.ApprovalID) error {
	now := s.now()
	ids := []anuencia.EventID{anuencia.EventID(s.o.NewID()), anuencia.EventID(s.o.NewID())}
	var execution anuencia.ExecutionID
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		a, err := tx.LockApproval(ctx, id)
		if errors.Is(err, anuencia.NotFound()) {
			return nil
		}
		if err != nil {
			return err
		}
		if a.Status != anuencia.ApprovalPending || now.Before(a.ExpiresAt) {
			return nil
		}
		e, err := tx.Execution(ctx, a.ExecutionID)
		if err != nil {
			return err
		}
		execution = e.ID
		next, err := a.Close(anuencia.ApprovalExpired, now)
		if err != nil {
			return anuencia.Internal("expire", err)
		}
		return s.putExpired(ctx, tx, next, e, now, ids)
	})
	if err == nil && !execution.IsZero() {
		s.o.Watcher.Notify(execution, true)
	}
	return err
}

func (s *Service) putExpired(ctx context.Context, tx Tx, a anuencia.Approval, e anuencia.Execution, at time.Time, ids []anuencia.EventID) error {
	f := anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonApprovalExpired).WithDetails(anuencia.Details{RiskLevel: a.Risk})
	next, err := e.Fail(f, at)
	if err != nil {
		return anuencia.Internal("expire", err)
	}
	expired := s.event(next, anuencia.EventApprovalExpired, map[string]any{
		"approval_id": a.ID.String(), "expires_at": a.ExpiresAt.Format(time.RFC3339Nano),
	})
	failed := s.failed(next, f)
	expired.ID, failed.ID = ids[0], ids[1]
	expired.OccurredAt, failed.OccurredAt = at, at
	_, _, err = tx.PutApproval(ctx, a, next, expired, failed)
	return err
}
