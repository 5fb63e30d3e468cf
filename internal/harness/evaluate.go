package harness

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// evaluate asks policy about an execution. The fault is the denial; a failing,
// undefined or slow engine denies by rule "engine" (governance section 5).
func (s *Service) evaluate(ctx context.Context, c Catalog, e anuencia.Execution, def anuencia.Intent, p anuencia.Principal) (anuencia.Decision, *anuencia.Fault) {
	d, err := s.ask(ctx, c, e, def, p)
	if err != nil {
		s.log(ctx, "policy gave no usable answer", err, slogExecution(e.ID), slog.String("intent", e.Intent))
		denied := anuencia.Decision{PolicyID: anuencia.PolicyEngine, Revision: s.o.Policy.Revision()}
		return denied, anuencia.Denied(anuencia.PolicyEngine).WithCause(err)
	}
	return d, denial(d)
}

func (s *Service) ask(ctx context.Context, c Catalog, e anuencia.Execution, def anuencia.Intent, p anuencia.Principal) (anuencia.Decision, error) {
	in := PolicyInput{
		Stage: anuencia.PolicyExecution, ExecutionID: e.ID, Intent: def, Agent: def.Agent, Actor: e.Actor,
		Principal: p, Channel: e.Channel, Input: e.Input, Time: s.now(),
	}
	tool, known := c.Tool(def.Tool)
	if known {
		in.Tool = &tool
	}
	d, err := s.o.Policy.Decide(ctx, in)
	if err != nil {
		return d, err
	}
	// A tool that needs consent is never reached by an answer that forgot it.
	if d.Allow && known && tool.Risk.NeedsApproval() && !d.Risk.NeedsApproval() {
		return d, errRiskBelowTool
	}
	return d, nil
}

var errRiskBelowTool = errors.New("policy set a risk without approval for a tool that needs it")

func denial(d anuencia.Decision) *anuencia.Fault {
	if d.Allow {
		return nil
	}
	code := d.Code
	if !code.Valid() {
		code = anuencia.CodePolicyDenied
	}
	det := anuencia.Details{PolicyID: d.PolicyID, NextAction: d.NextAction}
	if d.Risk.Valid() {
		det.RiskLevel = d.Risk
	}
	return anuencia.NewFault(code, "").WithDetails(det)
}

// couldBeDecided says whether the people of the directory could satisfy the
// requirement without those who ask (governance section 1, rule 8).
func (s *Service) couldBeDecided(ctx context.Context, req anuencia.Requirement, excluded ...anuencia.PersonID) (bool, error) {
	var people []anuencia.Person
	asked := map[string]bool{}
	for _, st := range req.Stages {
		for _, role := range st.Roles {
			if asked[role] {
				continue
			}
			asked[role] = true
			holders, err := s.o.Directory.Holders(ctx, role)
			if err != nil {
				return false, err
			}
			people = append(people, holders...)
		}
	}
	return req.CouldBeFilledBy(people, excluded...), nil
}

// newApproval asks for consent to exactly e's step.
func (s *Service) newApproval(e anuencia.Execution, d anuencia.Decision, now time.Time) (anuencia.Approval, error) {
	text, hash, err := audit.Subject(e)
	if err != nil {
		return anuencia.Approval{}, anuencia.Internal("subject", err)
	}
	life := d.Approval.ExpiresIn
	if life <= 0 {
		life = defaultApprovalLife
	}
	return anuencia.Approval{
		ID: anuencia.ApprovalID(s.o.NewID()), ExecutionID: e.ID, Status: anuencia.ApprovalPending,
		Subject: text, SubjectHash: hash, Requirement: d.Approval, Intent: e.Intent, Risk: d.Risk, PolicyID: d.PolicyID,
		Reasons: d.Reasons, Requester: e.Actor.ID, OnBehalfOf: e.OnBehalfOf, CreatedAt: now, ExpiresAt: now.Add(life),
	}, nil
}

func approvalPayload(a anuencia.Approval) map[string]any {
	return map[string]any{
		"approval_id": a.ID.String(), "subject": raw(a.Subject), "subject_hash": a.SubjectHash,
		"risk_level": string(a.Risk), "reasons": append([]string{}, a.Reasons...),
		"requirement": requirementPayload(a.Requirement), "expires_at": a.ExpiresAt.Format(time.RFC3339Nano),
	}
}
