package harness

import (
	"encoding/json"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// event makes the audit event of something that happened to e. The ids of
// events are made here, before any closure, so that a retry finds its own.
func (s *Service) event(e anuencia.Execution, t anuencia.EventType, payload map[string]any) anuencia.AuditEvent {
	return anuencia.AuditEvent{
		ID: anuencia.EventID(s.o.NewID()), StreamID: anuencia.StreamOf(e.ID), ExecutionID: e.ID,
		Type: t, OccurredAt: s.now(), ActorID: e.Actor.ID, PrincipalID: e.PrincipalID, Channel: e.Channel,
		SubjectRef: e.SubjectRef, ErrorCode: "", PolicyRevision: e.PolicyRevision, TraceID: e.TraceID, Payload: payload,
	}
}

// failed is execution.failed, with the full details and the cause that callers
// never see.
func (s *Service) failed(e anuencia.Execution, f *anuencia.Fault) anuencia.AuditEvent {
	ev := s.event(e, anuencia.EventFailed, faultPayload(f))
	ev.ErrorCode = f.Code
	return ev
}

func faultPayload(f *anuencia.Fault) map[string]any {
	p := map[string]any{"code": string(f.Code)}
	if f.Reason != "" {
		p["reason"] = string(f.Reason)
	}
	d := f.Details
	if d.RiskLevel != "" {
		p["risk_level"] = string(d.RiskLevel)
	}
	if d.PolicyID != "" {
		p["policy_id"] = d.PolicyID
	}
	if d.NextAction != "" {
		p["next_action"] = d.NextAction
	}
	if len(d.Fields) > 0 {
		fields := make([]map[string]any, len(d.Fields))
		for i, fe := range d.Fields {
			fields[i] = map[string]any{"path": printable(fe.Path), "rule": fe.Rule}
		}
		p["fields"] = fields
	}
	if d.RetryAfterMS > 0 {
		p["retry_after_ms"] = d.RetryAfterMS
	}
	if cause := f.Unwrap(); cause != nil {
		p["cause"] = printable(cause.Error())
	}
	return p
}

// printable bounds a cause and drops what PostgreSQL's text cannot keep.
func printable(text string) string {
	const most = 8 << 10
	out := make([]rune, 0, min(len(text), most))
	for _, r := range text {
		if len(out) == most {
			break
		}
		if r == 0 {
			r = '\uFFFD'
		}
		out = append(out, r)
	}
	return string(out)
}

// raw puts canonical JSON text into a payload as it is; "" becomes null.
func raw(text string) any {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func names[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func requirementPayload(r anuencia.Requirement) map[string]any {
	stages := make([]map[string]any, len(r.Stages))
	for i, st := range r.Stages {
		stages[i] = map[string]any{"roles": st.Roles, "quorum": st.Quorum}
	}
	return map[string]any{
		"stages": stages, "four_eyes": r.FourEyes, "reason_required": r.ReasonRequired,
		"channels": names(r.Channels), "expires_in_s": int64(r.ExpiresIn.Seconds()),
	}
}

func decisionPayload(d anuencia.Decision) map[string]any {
	p := map[string]any{
		"allow": d.Allow, "risk_level": string(d.Risk), "reasons": append([]string{}, d.Reasons...),
	}
	if d.PolicyID != "" {
		p["policy_id"] = d.PolicyID
	}
	if d.Code != "" {
		p["code"] = string(d.Code)
	}
	if d.Allow && d.Risk.NeedsApproval() {
		p["approval"] = requirementPayload(d.Approval)
	}
	return p
}

// withoutSecrets puts canonical JSON text into a payload without what the
// guard's rules take for a secret: an append-only row would keep it for ever.
// What the guard cannot read is left out; its digest stands beside it.
func (s *Service) withoutSecrets(text string) any {
	if text == "" {
		return nil
	}
	guarded, _, err := s.o.Guard.Inspect(text, nil)
	if err != nil {
		return nil
	}
	return raw(guarded)
}

func (s *Service) stepPayload(st anuencia.Step) map[string]any {
	return map[string]any{
		"step": st.Number, "agent": st.Agent, "tool": st.Tool, "tool_digest": st.ToolDigest,
		"arguments": s.withoutSecrets(st.Arguments), "arguments_digest": audit.Digest(st.Arguments), "effect": st.Effect, "risk_level": string(st.Risk),
	}
}
