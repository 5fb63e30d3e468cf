package harness

import (
	"context"
	"errors"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Decide applies a person's verdict to an approval. It is the one decide
// function behind every channel (governance section 1, rule 10). Who decides is
// the person to whom the credential itself is bound, resolved fresh. Faults:
// POLICY_DENIED by decision.own_credential, scope, approval.four_eyes or the
// policy's rule; VALIDATION_FAILED 404 for what is not there or not theirs, 409
// after the end, 422 for a missing reason.
func (s *Service) Decide(ctx context.Context, r Request, cmd DecideCommand) (Answer, error) {
	if err := s.allowRead(ctx, r); err != nil {
		return Answer{}, err
	}
	approver, a, err := s.mayDecide(ctx, r, cmd.Ref)
	if err != nil {
		return Answer{}, err
	}
	policy, err := s.askApproval(ctx, r, approver, a, cmd.Verdict)
	if err != nil {
		return Answer{}, err
	}
	d := anuencia.ApprovalDecision{
		ID: anuencia.EventID(s.o.NewID()), Approver: approver.ID, ApproverName: approver.DisplayName, Handle: approver.Handle, Roles: approver.Roles,
		Verdict: cmd.Verdict, Reason: cmd.Reason, SubjectHash: cmd.SubjectHash, Channel: s.channelOf(r),
		PrincipalID: r.Principal.ID, At: s.now(),
	}
	if d.SubjectHash == "" {
		d.SubjectHash = a.SubjectHash // the hash shown with the approval that this person named
	}
	if err := s.decide(ctx, r, a.ID, d, policy.Revision); err != nil {
		return Answer{}, err
	}
	s.o.Watcher.Notify(a.ExecutionID, true)
	e, err := s.settled(ctx, a.ExecutionID, r.Wait)
	if err != nil {
		return Answer{}, err
	}
	ans := answer(e, brief(d.Channel, approver))
	ans.HideResult = s.hidden(ctx, r, approver, e)
	return ans, nil
}

// mayDecide finds who decides and what. Whether an approval exists is told only
// to those who may see it.
func (s *Service) mayDecide(ctx context.Context, r Request, ref string) (anuencia.Actor, anuencia.Approval, error) {
	var none anuencia.Approval
	if r.Principal.Person.IsZero() || r.ActFor != "" {
		return anuencia.Actor{}, none, anuencia.Denied(anuencia.PolicyOwnCredential)
	}
	approver, err := s.o.Directory.ResolveFresh(ctx, r.Principal.Person)
	if err != nil {
		return approver, none, err
	}
	a, err := s.approvalByRef(ctx, ref)
	missing := errors.Is(err, anuencia.NotFound())
	if err != nil && !missing {
		return approver, none, err
	}
	if !missing && (a.Requester == approver.ID || a.OnBehalfOf == approver.ID) {
		return approver, none, anuencia.Denied(anuencia.PolicyFourEyes)
	}
	if err := s.need(r, anuencia.ScopeDecide); err != nil {
		return approver, none, err
	}
	if missing || !concerns(a, approver.Person) {
		return approver, none, anuencia.NotFound()
	}
	return approver, a, nil
}

// concerns says whether a person is among those an approval asks, or asked.
func concerns(a anuencia.Approval, p anuencia.Person) bool {
	for _, st := range a.Requirement.Stages {
		if p.HasAnyRole(st.Roles) {
			return true
		}
	}
	for _, d := range a.Decisions {
		if d.Approver == p.ID {
			return true
		}
	}
	return false
}

func (s *Service) approvalByRef(ctx context.Context, ref string) (anuencia.Approval, error) {
	if code, ok := anuencia.NormalizeShortCode(ref); ok {
		return s.o.Store.ApprovalByCode(ctx, code)
	}
	id, err := anuencia.ParseID[anuencia.ApprovalID](ref)
	if err != nil {
		return anuencia.Approval{}, anuencia.NotFound()
	}
	return s.o.Store.Approval(ctx, id)
}

// askApproval lets policy say whether this person may decide this, now. A
// failing engine denies.
func (s *Service) askApproval(ctx context.Context, r Request, approver anuencia.Actor, a anuencia.Approval, v anuencia.Verdict) (anuencia.Decision, error) {
	def, known := s.o.Catalog().Intent(a.Intent)
	if !known {
		def = anuencia.Intent{Name: a.Intent, Risk: a.Risk}
	}
	e, err := s.o.Store.Execution(ctx, a.ExecutionID)
	if err != nil {
		return anuencia.Decision{}, err
	}
	d, err := s.o.Policy.Decide(ctx, s.approvalQuestion(e, def, a, approver, r.Principal, s.channelOf(r), v))
	if err != nil {
		s.log(ctx, "policy gave no usable answer", err, slogExecution(e.ID))
		return d, anuencia.Denied(anuencia.PolicyEngine).WithCause(err)
	}
	if f := denial(d); f != nil {
		return d, f
	}
	return d, nil
}

// hidden asks policy whether an approver may see the result.
func (s *Service) hidden(ctx context.Context, r Request, reader anuencia.Actor, e anuencia.Execution) bool {
	if e.State != anuencia.StateCompleted || e.Actor.ID == reader.ID {
		return false
	}
	def, known := s.o.Catalog().Intent(e.Intent)
	if !known {
		return true
	}
	d, err := s.o.Policy.Decide(ctx, PolicyInput{
		Stage: anuencia.PolicyOutput, ExecutionID: e.ID, Intent: def, Agent: e.Agent, Actor: reader, Principal: r.Principal,
		Channel: s.channelOf(r), Input: e.Input, Time: s.now(),
	})
	if err != nil {
		s.log(ctx, "policy gave no usable answer", err, slogExecution(e.ID))
		return true
	}
	return !d.Allow
}

// decide is the transaction: lock, read again, compare-and-set the approval and
// its execution with their events, enqueue (core-data.md, Do 4). A late
// decision commits the expiry and then is refused.
func (s *Service) decide(ctx context.Context, r Request, id anuencia.ApprovalID, d anuencia.ApprovalDecision, revision string) error {
	var refused error
	ids := []anuencia.EventID{d.ID, anuencia.EventID(s.o.NewID())}
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		refused = nil
		a, err := tx.LockApproval(ctx, id)
		if err != nil {
			return err
		}
		e, err := tx.Execution(ctx, a.ExecutionID)
		if err != nil {
			return err
		}
		next, result, err := a.Decide(d)
		refused = err
		switch result {
		case anuencia.DecisionRepeated:
			return nil
		case anuencia.DecisionRecorded, anuencia.DecisionApproved, anuencia.DecisionRejected:
			if err != nil {
				return err
			}
			e.PolicyRevision = revision // the rules that let this person decide
			return s.putDecision(ctx, tx, r, next, e, d, ids)
		case anuencia.DecisionExpired:
			return s.putExpired(ctx, tx, next, e, d.At, ids)
		}
		return nil // refused: nothing changes, the edge records the attempt
	})
	if err != nil {
		return err
	}
	return refused
}

func (s *Service) putDecision(ctx context.Context, tx Tx, r Request, a anuencia.Approval, e anuencia.Execution, d anuencia.ApprovalDecision, ids []anuencia.EventID) error {
	decided := s.event(e, anuencia.EventApprovalDecided, map[string]any{
		"approval_id": a.ID.String(), "verdict": string(d.Verdict), "reason": d.Reason, "subject_hash": d.SubjectHash,
		"approver_name": d.ApproverName, "roles": d.Roles, "missing": a.Missing(), "status": string(a.Status),
	})
	decided.ID, decided.ActorID, decided.PrincipalID = ids[0], d.Approver, d.PrincipalID
	decided.Channel, decided.OccurredAt, decided.TraceID = d.Channel, d.At, r.TraceID
	var err error
	switch a.Status {
	case anuencia.ApprovalApproved:
		if e, err = e.Approved(d.At); err != nil {
			return anuencia.Internal("approve", err)
		}
		if _, _, err = tx.PutApproval(ctx, a, e, decided); err != nil {
			return err
		}
		return tx.Enqueue(ctx, Job{Kind: JobResume, ID: e.ID.String() + "/" + a.ID.String()})
	case anuencia.ApprovalRejected:
		f := anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonRejected).WithDetails(anuencia.Details{RiskLevel: a.Risk})
		if e, err = e.Fail(f, d.At); err != nil {
			return anuencia.Internal("reject", err)
		}
		failed := s.failed(e, f)
		failed.ID, failed.OccurredAt = ids[1], d.At
		_, _, err = tx.PutApproval(ctx, a, e, decided, failed)
		return err
	case anuencia.ApprovalPending, anuencia.ApprovalExpired, anuencia.ApprovalWithdrawn, anuencia.ApprovalSuperseded:
	}
	_, _, err = tx.PutApproval(ctx, a, e, decided)
	return err
}
