package harness

import (
	"context"
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// AuditEvents gives a page of the audit to an auditor. The read is itself
// audited, in the process's own chain (governance section 11).
func (s *Service) AuditEvents(ctx context.Context, r Request, f AuditFilter) ([]anuencia.SealedEvent, string, error) {
	if err := s.audited(ctx, r, map[string]any{
		"read": "events", "type": string(f.Type), "subject": f.Subject, "execution_id": idText(f.ExecutionID.IsZero(), f.ExecutionID.String()),
		"actor": idText(f.Actor.IsZero(), f.Actor.String()), "principal": idText(f.Principal.IsZero(), f.Principal.String()),
		"channel": string(f.Channel), "code": string(f.Code), "from": timeText(f.From), "to": timeText(f.To), "before": f.Before,
	}); err != nil {
		return nil, "", err
	}
	return page(&f.Page, func() ([]anuencia.SealedEvent, error) { return s.o.Store.AuditEvents(ctx, f) },
		func(e anuencia.SealedEvent) string { return e.ID.String() })
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func idText(zero bool, id string) string {
	if zero {
		return ""
	}
	return id
}

// AuditEvent gives one event: an audit_ref is found here.
func (s *Service) AuditEvent(ctx context.Context, r Request, id anuencia.EventID) (anuencia.SealedEvent, error) {
	if err := s.audited(ctx, r, map[string]any{"read": "event", "event_id": id.String()}); err != nil {
		return anuencia.SealedEvent{}, err
	}
	return s.o.Store.AuditEvent(ctx, id)
}

// Reconstruct gives all of one execution, or the chain of a request that was
// refused before it became one.
func (s *Service) Reconstruct(ctx context.Context, r Request, id anuencia.ExecutionID) (Reconstruction, error) {
	var rec Reconstruction
	if err := s.audited(ctx, r, map[string]any{"read": "execution", "execution_id": id.String()}); err != nil {
		return rec, err
	}
	var err error
	if rec.Events, err = s.o.Store.Stream(ctx, anuencia.StreamOf(id)); err != nil {
		return rec, err
	}
	if len(rec.Events) == 0 {
		return rec, anuencia.NotFound()
	}
	e, err := s.o.Store.Execution(ctx, id)
	if errors.Is(err, anuencia.NotFound()) {
		return rec, nil
	}
	if err != nil {
		return rec, err
	}
	rec.Execution = &e
	if in, known := s.o.Catalog().Intent(e.Intent); known {
		rec.Intent = &in
	}
	rec.Approvals, err = s.o.Store.ApprovalsOf(ctx, id)
	return rec, err
}

func (s *Service) audited(ctx context.Context, r Request, what map[string]any) error {
	if err := s.need(r, anuencia.ScopeAudit); err != nil {
		return err
	}
	if err := s.allowRead(ctx, r); err != nil {
		return err
	}
	if r.ActFor != "" {
		return anuencia.Denied(anuencia.PolicyActFor) // the audit is read as oneself
	}
	return s.recordAccess(ctx, r, what)
}

// recordAccess writes access.audited before anything is shown.
func (s *Service) recordAccess(ctx context.Context, r Request, what map[string]any) error {
	ev := s.systemEvent(anuencia.EventAccessAudited, what)
	ev.PrincipalID, ev.Channel, ev.TraceID = r.Principal.ID, s.channelOf(r), r.TraceID
	if !r.Principal.Person.IsZero() {
		a, err := s.o.Directory.Resolve(ctx, r.Principal.Person)
		if err != nil {
			return err
		}
		ev.ActorID = a.ID
	}
	return s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.RecordSystem(ctx, ev) })
}
