package harness

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// decidable refuses an approval that nobody could decide: the people of the
// directory, without those who ask, whom policy lets decide, must be able to
// satisfy it together (governance section 1, rule 8). Directory away:
// INTERNAL_ERROR/unavailable. Engine without an answer: a denial by "engine".
func (s *Service) decidable(ctx context.Context, e anuencia.Execution, def anuencia.Intent, a anuencia.Approval) *anuencia.Fault {
	var eligible []anuencia.Person
	asked := map[anuencia.PersonID]bool{a.Requester: true, a.OnBehalfOf: true}
	for _, role := range rolesOf(a.Requirement) {
		holders, err := s.o.Directory.Holders(ctx, role)
		if err != nil {
			return anuencia.AsFault(err)
		}
		for _, p := range holders {
			if asked[p.ID] {
				continue
			}
			asked[p.ID] = true
			d, err := s.o.Policy.Decide(ctx, s.approvalQuestion(e, def, a, anuencia.Actor{Person: p}, anuencia.Principal{}, firstChannel(a), anuencia.Approve))
			if err != nil {
				return anuencia.Denied(anuencia.PolicyEngine).WithCause(err)
			}
			if d.Allow {
				eligible = append(eligible, p)
			}
			if a.Requirement.CouldBeFilledBy(eligible) {
				return nil
			}
		}
	}
	return anuencia.Denied(anuencia.PolicyNoApprover).WithDetails(anuencia.Details{PolicyID: anuencia.PolicyNoApprover, RiskLevel: a.Risk})
}

func rolesOf(r anuencia.Requirement) []string {
	var roles []string
	for _, st := range r.Stages {
		for _, role := range st.Roles {
			if !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	return roles
}

// firstChannel is one on which the approval may be decided.
func firstChannel(a anuencia.Approval) anuencia.Channel {
	if len(a.Requirement.Channels) > 0 {
		return a.Requirement.Channels[0]
	}
	return anuencia.ChannelAPI
}

// approvalQuestion asks policy whether a person may decide.
func (s *Service) approvalQuestion(e anuencia.Execution, def anuencia.Intent, a anuencia.Approval, who anuencia.Actor,
	p anuencia.Principal, ch anuencia.Channel, v anuencia.Verdict,
) PolicyInput {
	return PolicyInput{
		Stage: anuencia.PolicyApproval, ExecutionID: e.ID, Intent: def, Agent: e.Agent, Actor: who, Principal: p,
		Channel: ch, Input: e.Input, Time: s.now(), Approval: &a, Verdict: v,
	}
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

func (s *Service) approvalPayload(a anuencia.Approval) map[string]any {
	return map[string]any{
		"approval_id": a.ID.String(), "subject": s.withoutSecrets(a.Subject), "subject_hash": a.SubjectHash,
		"risk_level": string(a.Risk), "reasons": append([]string{}, a.Reasons...),
		"requirement": requirementPayload(a.Requirement), "expires_at": a.ExpiresAt.Format(time.RFC3339Nano),
	}
}
