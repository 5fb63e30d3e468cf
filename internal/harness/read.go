package harness

import (
	"context"
	"slices"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Read gives the contract of an execution as it stands, to its actor, those who
// may decide it, and auditors. It waits while the execution runs.
func (s *Service) Read(ctx context.Context, r Request, id anuencia.ExecutionID) (Answer, error) {
	if err := s.allowRead(ctx, r); err != nil {
		return Answer{}, err
	}
	reader, _, err := s.visible(ctx, r, id)
	if err != nil {
		return Answer{}, err
	}
	e, err := s.settled(ctx, id, r.Wait)
	if err != nil {
		return Answer{}, err
	}
	isBrief := s.channelOf(r).External()
	if !isBrief && !reader.ID.IsZero() {
		isBrief = !reader.Institutional
	}
	a := answer(e, isBrief)
	if !r.Principal.Has(anuencia.ScopeAudit) {
		a.HideResult = s.hidden(ctx, r, reader, e)
	}
	return a, nil
}

// visible finds an execution that the caller may see; all else is 404. The
// actor is zero for an auditor's machine.
func (s *Service) visible(ctx context.Context, r Request, id anuencia.ExecutionID) (anuencia.Actor, anuencia.Execution, error) {
	var none anuencia.Execution
	if err := s.need(r, anuencia.ScopeSubmit, anuencia.ScopeDecide, anuencia.ScopeAudit); err != nil {
		return anuencia.Actor{}, none, err
	}
	audits := r.Principal.Has(anuencia.ScopeAudit) && r.ActFor == ""
	var c caller
	if !audits || !r.Principal.Person.IsZero() {
		var err error
		if c, err = s.who(ctx, r); err != nil {
			return c.actor, none, err
		}
	}
	e, err := s.o.Store.Execution(ctx, id)
	if err != nil {
		return c.actor, none, err
	}
	if e.Actor.ID == c.actor.ID {
		return c.actor, e, nil
	}
	if audits {
		return c.actor, e, s.recordAccess(ctx, r, map[string]any{"read": "execution", "execution_id": id.String()})
	}
	if r.Principal.Has(anuencia.ScopeDecide) && r.ActFor == "" {
		approvals, err := s.o.Store.ApprovalsOf(ctx, id)
		if err != nil {
			return c.actor, none, err
		}
		if slices.ContainsFunc(approvals, func(a anuencia.Approval) bool { return concerns(a, c.actor.Person) }) {
			return c.actor, e, nil
		}
	}
	return c.actor, none, anuencia.NotFound()
}

// List gives a page of one's own executions, of all to an auditor, and the
// cursor of the next page, "" at the end.
func (s *Service) List(ctx context.Context, r Request, f ExecutionFilter) ([]anuencia.Execution, string, error) {
	if err := s.need(r, anuencia.ScopeSubmit, anuencia.ScopeAudit); err != nil {
		return nil, "", err
	}
	if err := s.allowRead(ctx, r); err != nil {
		return nil, "", err
	}
	if !r.Principal.Has(anuencia.ScopeAudit) || r.ActFor != "" {
		c, err := s.who(ctx, r)
		if err != nil {
			return nil, "", err
		}
		if !f.Actor.IsZero() && f.Actor != c.actor.ID {
			return []anuencia.Execution{}, "", nil
		}
		f.Actor = c.actor.ID
	}
	if f.Actor.IsZero() || r.Principal.Has(anuencia.ScopeAudit) {
		what := map[string]any{
			"read": "executions", "state": string(f.State), "intent": f.Intent, "subject": f.Subject, "channel": string(f.Channel),
			"risk": string(f.Risk), "code": string(f.Code), "from": timeText(f.From), "to": timeText(f.To), "before": f.Before,
			"actor": idText(f.Actor.IsZero(), f.Actor.String()),
		}
		if err := s.recordAccess(ctx, r, what); err != nil {
			return nil, "", err
		}
	}
	return page(&f.Page, func() ([]anuencia.Execution, error) { return s.o.Store.Executions(ctx, f) },
		func(e anuencia.Execution) string { return e.ID.String() })
}

// page reads one item more than asked, to know whether there is a next page.
func page[T any](p *Page, read func() ([]T, error), id func(T) string) ([]T, string, error) {
	want := p.Limit
	p.Limit++
	items, err := read()
	if err != nil {
		return nil, "", err
	}
	if len(items) <= want {
		return items, "", nil
	}
	items = items[:want]
	return items, id(items[want-1]), nil
}

// Events gives the chain of an execution to its actor and to auditors.
func (s *Service) Events(ctx context.Context, r Request, id anuencia.ExecutionID) ([]anuencia.SealedEvent, error) {
	if err := s.ownOrAudit(ctx, r, id); err != nil {
		return nil, err
	}
	return s.o.Store.Stream(ctx, anuencia.StreamOf(id))
}

// ownOrAudit refuses an execution that is not the caller's own, auditors apart.
func (s *Service) ownOrAudit(ctx context.Context, r Request, id anuencia.ExecutionID) error {
	if err := s.allowRead(ctx, r); err != nil {
		return err
	}
	reader, e, err := s.visible(ctx, r, id)
	if err != nil {
		return err
	}
	if e.Actor.ID != reader.ID && !r.Principal.Has(anuencia.ScopeAudit) {
		return anuencia.NotFound()
	}
	return nil
}

// Artifacts lists the files of one's own execution, without their content.
func (s *Service) Artifacts(ctx context.Context, r Request, id anuencia.ExecutionID) ([]anuencia.Artifact, error) {
	if err := s.ownOrAudit(ctx, r, id); err != nil {
		return nil, err
	}
	return s.o.Store.Artifacts(ctx, id)
}

// Artifact gives one file with its content.
func (s *Service) Artifact(ctx context.Context, r Request, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error) {
	if err := s.ownOrAudit(ctx, r, id); err != nil {
		return anuencia.Artifact{}, err
	}
	return s.o.Store.Artifact(ctx, id, filename)
}

// Approvals lists what the caller may decide, newest first.
func (s *Service) Approvals(ctx context.Context, r Request, f ApprovalFilter) ([]ApprovalView, string, error) {
	approver, err := s.asApprover(ctx, r)
	if err != nil {
		return nil, "", err
	}
	f.Roles = approver.Roles
	if len(f.Roles) == 0 {
		return []ApprovalView{}, "", nil
	}
	list, next, err := page(&f.Page, func() ([]anuencia.Approval, error) { return s.o.Store.Approvals(ctx, f) },
		func(a anuencia.Approval) string { return a.ID.String() })
	if err != nil {
		return nil, "", err
	}
	views := make([]ApprovalView, 0, len(list))
	for _, a := range list {
		if a.Requester == approver.ID || a.OnBehalfOf == approver.ID {
			continue
		}
		v, err := s.view(ctx, a)
		if err != nil {
			return nil, "", err
		}
		views = append(views, v)
	}
	return views, next, nil
}

// Approval gives one approval by id or short code, to those it asks.
func (s *Service) Approval(ctx context.Context, r Request, ref string) (ApprovalView, error) {
	approver, err := s.asApprover(ctx, r)
	if err != nil {
		return ApprovalView{}, err
	}
	a, err := s.approvalByRef(ctx, ref)
	if err != nil {
		return ApprovalView{}, err
	}
	if !concerns(a, approver.Person) || a.Requester == approver.ID || a.OnBehalfOf == approver.ID {
		return ApprovalView{}, anuencia.NotFound()
	}
	return s.view(ctx, a)
}

func (s *Service) asApprover(ctx context.Context, r Request) (anuencia.Actor, error) {
	if err := s.need(r, anuencia.ScopeDecide); err != nil {
		return anuencia.Actor{}, err
	}
	if err := s.allowRead(ctx, r); err != nil {
		return anuencia.Actor{}, err
	}
	if r.Principal.Person.IsZero() || r.ActFor != "" {
		return anuencia.Actor{}, anuencia.Denied(anuencia.PolicyOwnCredential)
	}
	return s.o.Directory.Resolve(ctx, r.Principal.Person)
}

func (s *Service) view(ctx context.Context, a anuencia.Approval) (ApprovalView, error) {
	e, err := s.o.Store.Execution(ctx, a.ExecutionID)
	if err != nil {
		return ApprovalView{}, err
	}
	def, known := s.o.Catalog().Intent(a.Intent)
	if !known {
		def = anuencia.Intent{Name: a.Intent, Risk: a.Risk}
	}
	return ApprovalView{Approval: a, Execution: e, Intent: def, Missing: a.Missing()}, nil
}

// Intents lists what the caller's actor may ask for, by name. A machine without
// an actor sees all that its channel could be asked for.
func (s *Service) Intents(ctx context.Context, r Request) ([]anuencia.Intent, error) {
	if err := s.allowRead(ctx, r); err != nil {
		return nil, err
	}
	all := s.o.Catalog().Intents()
	if r.Principal.Person.IsZero() && r.ActFor == "" {
		return all, nil
	}
	c, err := s.who(ctx, r)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(in anuencia.Intent) bool { return !offered(in, c.actor.Person) }), nil
}

// offered says whether the catalog names this person among those who may ask;
// policy has the last word when they do.
func offered(in anuencia.Intent, p anuencia.Person) bool {
	return slices.Contains(in.Roles, "*") || p.HasAnyRole(in.Roles) || p.HasAnyRole(in.OwnRoles)
}
