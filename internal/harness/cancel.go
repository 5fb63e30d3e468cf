package harness

import (
	"context"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

const cancelTries = 3

// Cancel withdraws a waiting execution or stops a running one, at its actor's
// wish; on a finished one it changes nothing (contracts section 2). A run whose
// step has an effect is asked to stop and then told as it ended: what happened
// is never reported as cancelled.
func (s *Service) Cancel(ctx context.Context, r Request, id anuencia.ExecutionID) (Answer, error) {
	if err := s.need(r, anuencia.ScopeSubmit); err != nil {
		return Answer{}, err
	}
	if err := s.allowRead(ctx, r); err != nil {
		return Answer{}, err
	}
	c, err := s.who(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	e, err := s.o.Store.Execution(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	if e.Actor.ID != c.actor.ID {
		return Answer{}, anuencia.NotFound()
	}
	if e.State == anuencia.StateRunning {
		s.stopHere(id)
	}
	for range cancelTries {
		if e.State.Terminal() {
			break
		}
		asked := e.ApprovalID
		if err := s.cancel(ctx, r, c.actor, e); err != nil {
			return Answer{}, err
		}
		if e, err = s.o.Store.Execution(ctx, id); err != nil {
			return Answer{}, err
		}
		if e.ApprovalID == asked {
			break // a new approval in between would have been left open
		}
	}
	s.o.Watcher.Notify(id, true)
	if e, err = s.settled(ctx, id, r.Wait); err != nil {
		return Answer{}, err
	}
	return answer(e, brief(s.channelOf(r), c.actor)), nil
}

func (s *Service) cancel(ctx context.Context, r Request, by anuencia.Actor, e anuencia.Execution) error {
	now := s.now()
	ids := []anuencia.EventID{anuencia.EventID(s.o.NewID()), anuencia.EventID(s.o.NewID())}
	mark := func(ev anuencia.AuditEvent, i int) anuencia.AuditEvent {
		ev.ID, ev.ActorID, ev.PrincipalID, ev.Channel, ev.OccurredAt = ids[i], by.ID, r.Principal.ID, s.channelOf(r), now
		return ev
	}
	return s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		var a anuencia.Approval
		var err error
		if !e.ApprovalID.IsZero() { // lock first (core-data.md, Do 4)
			if a, err = tx.LockApproval(ctx, e.ApprovalID); err != nil {
				return err
			}
		}
		current, err := tx.Execution(ctx, e.ID)
		if err != nil {
			return err
		}
		if current.State.Terminal() || current.ApprovalID != e.ApprovalID {
			return nil
		}
		f := anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonCancelled)
		waiting := current.State == anuencia.StateWaiting && a.Status == anuencia.ApprovalPending
		switch {
		case waiting:
			f = anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonWithdrawn)
		case current.State == anuencia.StateRunning && current.Step.Effect:
			return nil // its own run tells how it ended
		}
		next, err := current.Cancel(f, now)
		if err != nil {
			return anuencia.Internal("cancel", err)
		}
		cancelled := mark(s.event(next, anuencia.EventCancelled, faultPayload(f)), 1)
		cancelled.ErrorCode = f.Code
		if !waiting {
			_, err = tx.PutExecution(ctx, next, cancelled)
			return err
		}
		closed, err := a.Close(anuencia.ApprovalWithdrawn, now)
		if err != nil {
			return anuencia.Internal("withdraw", err)
		}
		withdrawn := mark(s.event(next, anuencia.EventApprovalWithdrawn, map[string]any{"approval_id": a.ID.String()}), 0)
		_, _, err = tx.PutApproval(ctx, closed, next, withdrawn, cancelled)
		return err
	})
}
