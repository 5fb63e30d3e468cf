package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// Resume runs an approved execution. Identity and policy are asked again, the
// subject is computed again, and only what was approved runs (governance
// section 1, rules 1 to 3). For anything that is not approved it does nothing.
// An error means "no answer now": the job is tried again.
func (s *Service) Resume(ctx context.Context, id anuencia.ExecutionID) error {
	e, err := s.o.Store.Execution(ctx, id)
	if errors.Is(err, anuencia.NotFound()) {
		return nil
	}
	if err != nil || e.State != anuencia.StateApproved {
		return err
	}
	return s.restart(ctx, e)
}

// restart takes an approved execution, or a running one whose run died without
// its effect, to a new run.
func (s *Service) restart(ctx context.Context, e anuencia.Execution) error {
	var a anuencia.Approval
	if !e.ApprovalID.IsZero() {
		var err error
		if a, err = s.o.Store.Approval(ctx, e.ApprovalID); err != nil {
			return err
		}
		if f := consent(a, e, s.now()); f != nil {
			return s.failOpen(ctx, e, f, nil)
		}
	}
	if held, err := s.held(ctx, e.Intent); err != nil || held {
		return errors.Join(err, errHeld)
	}
	c := s.o.Catalog()
	fresh, d, f, err := s.reconsider(ctx, c, e)
	if err != nil {
		return err
	}
	if f != nil {
		return s.failOpen(ctx, fresh, f, &d)
	}
	if f, err = s.planAgain(ctx, c, &fresh); err != nil || f != nil {
		if err != nil {
			return err
		}
		return s.failOpen(ctx, fresh, f, &d)
	}
	if !e.ApprovalID.IsZero() || d.Risk.NeedsApproval() {
		_, hash, err := audit.Subject(fresh)
		if err != nil {
			return anuencia.Internal("subject", err)
		}
		stands, err := s.stillStands(ctx, c, fresh, a, d)
		if err != nil {
			return err
		}
		if hash != a.SubjectHash || !stands {
			return s.supersede(ctx, fresh, a, d)
		}
	}
	return s.start(ctx, fresh, d)
}

// stillStands asks directory and policy again about every person who approved:
// those who are gone, or may not decide any more, do not count (governance
// section 1, rules 1 and 3). The rest must satisfy what policy asks now, or
// asked then where it asks nothing now. An error is no answer.
func (s *Service) stillStands(ctx context.Context, c Catalog, e anuencia.Execution, a anuencia.Approval, d anuencia.Decision) (bool, error) {
	def, known := c.Intent(e.Intent)
	if !known || a.ID.IsZero() {
		return false, nil
	}
	now := a
	now.Decisions = nil
	if d.Risk.NeedsApproval() {
		now.Requirement = d.Approval
	}
	for _, dec := range a.Decisions {
		who, err := s.o.Directory.ResolveFresh(ctx, dec.Handle)
		if err != nil {
			if anuencia.AsFault(err).Code == anuencia.CodeIdentityNotFound {
				continue
			}
			return false, err
		}
		if who.ID != dec.Approver {
			continue
		}
		p := anuencia.Principal{ID: dec.PrincipalID, Person: dec.Handle, Scopes: []anuencia.Scope{anuencia.ScopeDecide}, Channels: []anuencia.Channel{dec.Channel}}
		answer, err := s.o.Policy.Decide(ctx, s.approvalQuestion(e, def, a, who, p, dec.Channel, dec.Verdict))
		if err != nil {
			return false, fmt.Errorf("policy: %w", err)
		}
		if answer.Allow {
			dec.Roles = who.Roles
			now.Decisions = append(now.Decisions, dec)
		}
	}
	return now.Satisfied(), nil
}

// consent says whether the decisions on record still permit: the stored subject
// hashes to the stored hash, every approving decision names it, enough distinct
// people gave it, and its time is not over.
func consent(a anuencia.Approval, e anuencia.Execution, now time.Time) *anuencia.Fault {
	if !now.Before(a.ExpiresAt) {
		return anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonApprovalExpired).
			WithDetails(anuencia.Details{RiskLevel: a.Risk})
	}
	sound := a.Status == anuencia.ApprovalApproved && a.ExecutionID == e.ID &&
		audit.Digest(a.Subject) == a.SubjectHash && a.Satisfied()
	if !sound {
		return anuencia.Internal("consent", errors.New("the approval on record does not permit this run"))
	}
	return nil
}

// reconsider asks directory and policy again about who asked. A fault ends the
// execution; an error is no answer.
func (s *Service) reconsider(ctx context.Context, c Catalog, e anuencia.Execution) (anuencia.Execution, anuencia.Decision, *anuencia.Fault, error) {
	var none anuencia.Decision
	actor, err := s.o.Directory.ResolveFresh(ctx, e.Actor.Handle)
	if err != nil {
		f := anuencia.AsFault(err)
		if f.Code == anuencia.CodeIdentityNotFound {
			return e, none, f, nil
		}
		return e, none, nil, err
	}
	if actor.ID != e.Actor.ID {
		return e, none, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor), nil
	}
	e.Actor = actor
	if !e.Behalf.IsZero() {
		if _, err := s.o.Directory.ResolveFresh(ctx, e.Behalf); err != nil {
			if f := anuencia.AsFault(err); f.Code == anuencia.CodeIdentityNotFound {
				return e, none, f, nil
			}
			return e, none, nil, err
		}
	}
	def, known := c.Intent(e.Intent)
	if !known {
		return e, none, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonUnknownIntent), nil
	}
	d, err := s.ask(ctx, c, e, def, e.Principal)
	if err != nil {
		return e, none, nil, err
	}
	e.PolicyRevision = d.Revision
	return e, d, denial(d), nil
}

func (s *Service) planAgain(ctx context.Context, c Catalog, e *anuencia.Execution) (*anuencia.Fault, error) {
	def, known := c.Intent(e.Intent)
	if !known {
		return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonUnknownIntent), nil
	}
	step, err := s.o.Runner.Plan(ctx, c, *e, def)
	if err != nil {
		f := anuencia.AsFault(err)
		if f.Code == anuencia.CodeInternal {
			return nil, f // the source is away: no answer
		}
		return f, nil
	}
	step.Number = e.Step.Number
	e.Step = step
	return nil, nil //nolint:nilnil // no fault and no error: the plan stands
}

// start commits approved -> running with tool.requested, the lease and the
// attempt, and runs.
func (s *Service) start(ctx context.Context, fresh anuencia.Execution, d anuencia.Decision) error {
	lease := fresh.Timeout + s.o.Grace
	from := fresh.State
	events := []anuencia.AuditEvent{
		s.event(fresh, anuencia.EventPolicyEvaluated, decisionPayload(d)),
		s.event(fresh, anuencia.EventResumed, map[string]any{"from": string(from)}),
		s.event(fresh, anuencia.EventAgentStarted, map[string]any{"agent": fresh.Step.Agent, "attempt": fresh.Attempt + 1}),
		s.event(fresh, anuencia.EventToolRequested, s.stepPayload(fresh.Step)),
	}
	var kept anuencia.Execution
	var late *anuencia.Fault
	started := false
	if !s.begin() {
		return errStopping
	}
	defer s.running.Done()
	now := s.now() // after the questions, which may have taken long: expiry is checked where it starts
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		started, late = false, nil
		current, err := s.lockOpen(ctx, tx, fresh)
		if err != nil || current == nil {
			return err
		}
		if !fresh.ApprovalID.IsZero() {
			late = consent(*current, fresh, now)
		}
		if late != nil {
			return nil //nolint:nilerr // late is returned to below, once the lock is free
		}
		next := fresh
		if from == anuencia.StateApproved {
			next, err = next.Resume(now, lease)
		} else {
			next, err = next.Retry(now, lease)
		}
		if err != nil {
			return anuencia.Internal("resume", err)
		}
		if kept, err = tx.PutExecution(ctx, next, events[0], events[1:]...); err != nil {
			return err
		}
		started = true
		return nil
	})
	if late != nil {
		return s.failOpen(ctx, fresh, late, nil)
	}
	if err != nil || !started {
		return err
	}
	_, err = s.execute(context.WithoutCancel(ctx), kept, d.Mask)
	return err
}

// lockOpen reads what a job worked on again, under the approval's lock. Nil:
// somebody else went on with it.
func (s *Service) lockOpen(ctx context.Context, tx Tx, e anuencia.Execution) (*anuencia.Approval, error) {
	var a anuencia.Approval
	var err error
	if !e.ApprovalID.IsZero() {
		if a, err = tx.LockApproval(ctx, e.ApprovalID); err != nil {
			return nil, err
		}
		if a.Status != anuencia.ApprovalApproved {
			return nil, nil //nolint:nilnil // documented: nil means nothing to do
		}
	}
	current, err := tx.Execution(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if current.Version != e.Version || current.State != e.State {
		return nil, nil //nolint:nilnil // documented: nil means nothing to do
	}
	return &a, nil
}

// failOpen ends an approved or dead execution that may not run any more.
func (s *Service) failOpen(ctx context.Context, e anuencia.Execution, f *anuencia.Fault, d *anuencia.Decision) error {
	now := s.now()
	f = final(f)
	var events []anuencia.AuditEvent
	if d != nil && d.Revision != "" {
		events = append(events, s.event(e, anuencia.EventPolicyEvaluated, decisionPayload(*d)))
	}
	events = append(events, s.failed(e, f))
	if f.Code == anuencia.CodeInternal {
		s.log(ctx, "an approved execution cannot run", f, slogExecution(e.ID))
	}
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		current, err := tx.Execution(ctx, e.ID)
		if err != nil {
			return err
		}
		if current.Version != e.Version {
			return nil
		}
		next, err := current.Fail(f, now)
		if err != nil {
			return anuencia.Internal("fail", err)
		}
		next.PolicyRevision = e.PolicyRevision
		_, err = tx.PutExecution(ctx, next, events[0], events[1:]...)
		return err
	})
	if err == nil {
		s.o.Watcher.Notify(e.ID, true)
	}
	return err
}

// supersedeRunning asks again after the tool itself found another state before
// than the one approved; nothing was done. A run without approval just fails.
func (s *Service) supersedeRunning(ctx context.Context, e anuencia.Execution) (anuencia.Execution, error) {
	if e.ApprovalID.IsZero() {
		f := anuencia.Internal("run", ErrSuperseded)
		now := s.now()
		return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Fail(f, now) }, nil, s.failed(e, f))
	}
	a, err := s.o.Store.Approval(ctx, e.ApprovalID)
	if err != nil {
		return e, err
	}
	c := s.o.Catalog()
	fresh, d, f, err := s.reconsider(ctx, c, e)
	if err != nil {
		return e, err
	}
	if f == nil {
		f, err = s.planAgain(ctx, c, &fresh)
	}
	if err != nil {
		return e, err
	}
	if f != nil {
		return e, s.failOpen(ctx, fresh, f, &d)
	}
	if err := s.supersede(ctx, fresh, a, d); err != nil {
		return e, err
	}
	return s.o.Store.Execution(ctx, e.ID)
}

// supersede closes an approval whose subject is no longer what would run, and
// asks for consent to what would run now. fresh has the new step.
func (s *Service) supersede(ctx context.Context, fresh anuencia.Execution, old anuencia.Approval, d anuencia.Decision) error {
	if !d.Risk.NeedsApproval() {
		d.Risk, d.Approval = old.Risk, old.Requirement // what once needed consent asks for it again
	}
	now := s.now()
	next, err := s.newApproval(fresh, d, now)
	if err != nil {
		return err
	}
	def, known := s.o.Catalog().Intent(fresh.Intent)
	if !known {
		return s.failOpen(ctx, fresh, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonUnknownIntent), &d)
	}
	if f := s.decidable(ctx, fresh, def, next); f != nil {
		if f.Code == anuencia.CodeInternal || f.Details.PolicyID == anuencia.PolicyEngine {
			return f // no answer: the job is tried again
		}
		return s.failOpen(ctx, fresh, f, &d)
	}
	if next.ShortCode, err = s.shortCode(); err != nil {
		return err // one that is taken is a conflict, and the job is tried again
	}
	judged := s.event(fresh, anuencia.EventPolicyEvaluated, decisionPayload(d))
	closing := s.event(fresh, anuencia.EventApprovalSuperseded, map[string]any{
		"approval_id": old.ID.String(), "by": next.ID.String(), "old_hash": old.SubjectHash, "new_hash": next.SubjectHash,
	})
	asking := s.event(fresh, anuencia.EventApprovalRequested, s.approvalPayload(next))
	err = s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		current, err := s.lockOpen(ctx, tx, fresh)
		if err != nil || current == nil {
			return err
		}
		e := fresh
		e.Risk, e.Reasons, e.PolicyID = next.Risk, next.Reasons, next.PolicyID
		if e, err = e.Wait(next.ID, now); err != nil {
			return anuencia.Internal("wait again", err)
		}
		if !old.ID.IsZero() {
			closed, err := current.Supersede(now)
			if err != nil {
				return anuencia.Internal("supersede", err)
			}
			if _, e, err = tx.PutApproval(ctx, closed, e, judged, closing); err != nil {
				return err
			}
		}
		if _, _, err = tx.PutApproval(ctx, next, e, asking); err != nil {
			return err
		}
		return tx.Enqueue(ctx, Job{Kind: JobExpire, ID: next.ID.String(), RunAt: next.ExpiresAt})
	})
	if err == nil {
		s.o.Watcher.Notify(fresh.ID, true)
	}
	return err
}
