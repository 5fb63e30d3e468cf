package sqlstore

import (
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// bornColumns are written when an execution is created and never again.
func bornColumns() []string {
	return []string{
		"id", "short_code", "intent", "input", "metadata", "channel", "principal_id", "on_behalf_of", "trace_id", "created_at",
	}
}

// livingColumns are written by every write of an execution.
func livingColumns() []string {
	return []string{
		"version", "head_seq", "head_hash", "state", "agent", "actor_id", "actor", "subject_ref", "risk", "policy_id",
		"policy_revision", "reasons", "approval_id", "audit_ref", "timeout_ns", "step", "attempt", "lease_until", "outcome",
		"fault_code", "updated_at", "finished_at",
	}
}

func (s *Store) bornArgs(e anuencia.Execution) []any {
	return []any{
		idArg(e.ID), e.ShortCode, e.Intent, e.Input, e.Metadata, string(e.Channel), idArg(e.PrincipalID), idArg(e.OnBehalfOf),
		e.TraceID, s.timeArg(e.CreatedAt),
	}
}

func (s *Store) livingArgs(e anuencia.Execution) ([]any, error) {
	actor, err1 := encode(askedToJSON(e))
	reasons, err2 := encode(e.Reasons)
	step, err3 := encode(stepJSON(e.Step))
	outcome, err4 := encode(outcomeToJSON(e.Outcome))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	code := ""
	if e.Outcome.Fault != nil {
		code = string(e.Outcome.Fault.Code)
	}
	return []any{
		e.Version, e.Head.Seq, e.Head.Hash[:], string(e.State), e.Agent, idArg(e.Actor.ID), actor, e.SubjectRef, string(e.Risk),
		e.PolicyID, e.PolicyRevision, reasons, idArg(e.ApprovalID), idArg(e.AuditRef), int64(e.Timeout), step, e.Attempt,
		s.timeArg(e.LeaseUntil), outcome, code, s.timeArg(e.UpdatedAt), s.timeArg(e.FinishedAt),
	}, nil
}

type executionRow struct {
	ID             uid     `gorm:"column:id"`
	ShortCode      string  `gorm:"column:short_code"`
	Version        int64   `gorm:"column:version"`
	HeadSeq        int64   `gorm:"column:head_seq"`
	HeadHash       digest  `gorm:"column:head_hash"`
	State          string  `gorm:"column:state"`
	Intent         string  `gorm:"column:intent"`
	Agent          string  `gorm:"column:agent"`
	Input          string  `gorm:"column:input"`
	Metadata       string  `gorm:"column:metadata"`
	Channel        string  `gorm:"column:channel"`
	Actor          string  `gorm:"column:actor"`
	PrincipalID    uid     `gorm:"column:principal_id"`
	OnBehalfOf     uid     `gorm:"column:on_behalf_of"`
	SubjectRef     string  `gorm:"column:subject_ref"`
	Risk           string  `gorm:"column:risk"`
	PolicyID       string  `gorm:"column:policy_id"`
	PolicyRevision string  `gorm:"column:policy_revision"`
	Reasons        string  `gorm:"column:reasons"`
	ApprovalID     uid     `gorm:"column:approval_id"`
	AuditRef       uid     `gorm:"column:audit_ref"`
	TraceID        string  `gorm:"column:trace_id"`
	TimeoutNS      int64   `gorm:"column:timeout_ns"`
	Step           string  `gorm:"column:step"`
	Attempt        int     `gorm:"column:attempt"`
	LeaseUntil     instant `gorm:"column:lease_until"`
	Outcome        string  `gorm:"column:outcome"`
	CreatedAt      instant `gorm:"column:created_at"`
	UpdatedAt      instant `gorm:"column:updated_at"`
	FinishedAt     instant `gorm:"column:finished_at"`
}

func executionSelect() []string {
	return []string{
		"id", "short_code", "version", "head_seq", "head_hash", "state", "intent", "agent", "input", "metadata", "channel",
		"actor", "principal_id", "on_behalf_of", "subject_ref", "risk", "policy_id", "policy_revision", "reasons",
		"approval_id", "audit_ref", "trace_id", "timeout_ns", "step", "attempt", "lease_until", "outcome", "created_at",
		"updated_at", "finished_at",
	}
}

func (r executionRow) execution() (anuencia.Execution, error) {
	asked, err1 := decode[askedJSON](r.Actor)
	actor, err2 := asked.actor()
	principal, err6 := asked.Principal.principal()
	reasons, err3 := decode[[]string](r.Reasons)
	step, err4 := decode[stepJSON](r.Step)
	outcome, err5 := decode[outcomeJSON](r.Outcome)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return anuencia.Execution{}, err
	}
	return anuencia.Execution{
		ID: anuencia.ExecutionID(r.ID), ShortCode: r.ShortCode, Version: r.Version,
		Head: anuencia.Head{Seq: r.HeadSeq, Hash: r.HeadHash}, State: anuencia.State(r.State), Intent: r.Intent, Agent: r.Agent,
		Input: r.Input, Metadata: r.Metadata, Channel: anuencia.Channel(r.Channel), Actor: actor, Behalf: anuencia.Handle(asked.Behalf), Principal: principal,
		PrincipalID: anuencia.PrincipalID(r.PrincipalID), OnBehalfOf: anuencia.PersonID(r.OnBehalfOf), SubjectRef: r.SubjectRef,
		Risk: anuencia.Risk(r.Risk), PolicyID: r.PolicyID, PolicyRevision: r.PolicyRevision, Reasons: reasons,
		ApprovalID: anuencia.ApprovalID(r.ApprovalID), AuditRef: anuencia.EventID(r.AuditRef), TraceID: r.TraceID,
		Timeout: time.Duration(r.TimeoutNS), Step: anuencia.Step(step), Attempt: r.Attempt, LeaseUntil: r.LeaseUntil.at,
		Outcome: outcome.outcome(), CreatedAt: r.CreatedAt.at, UpdatedAt: r.UpdatedAt.at, FinishedAt: r.FinishedAt.at,
	}, nil
}

// eventColumns are the columns of audit_events, in the order of eventArgs.
func eventColumns() []string {
	return []string{
		"id", "stream_id", "execution_id", "seq", "event_type", "occurred_at", "actor_id", "principal_id", "channel",
		"subject_ref", "error_code", "policy_revision", "trace_id", "payload", "salt", "payload_digest", "prev_hash", "hash",
	}
}

func (s *Store) eventArgs(e anuencia.SealedEvent) []any {
	return []any{
		idArg(e.ID), idArg(e.StreamID), idArg(e.ExecutionID), e.Seq, string(e.Type), s.timeArg(e.OccurredAt), idArg(e.ActorID),
		idArg(e.PrincipalID), string(e.Channel), e.SubjectRef, string(e.ErrorCode), e.PolicyRevision, e.TraceID, e.PayloadText,
		e.Salt, e.PayloadDigest[:], e.PrevHash[:], e.Hash[:],
	}
}

type eventRow struct {
	ID             uid     `gorm:"column:id"`
	StreamID       uid     `gorm:"column:stream_id"`
	ExecutionID    uid     `gorm:"column:execution_id"`
	Seq            int64   `gorm:"column:seq"`
	EventType      string  `gorm:"column:event_type"`
	OccurredAt     instant `gorm:"column:occurred_at"`
	ActorID        uid     `gorm:"column:actor_id"`
	PrincipalID    uid     `gorm:"column:principal_id"`
	Channel        string  `gorm:"column:channel"`
	SubjectRef     string  `gorm:"column:subject_ref"`
	ErrorCode      string  `gorm:"column:error_code"`
	PolicyRevision string  `gorm:"column:policy_revision"`
	TraceID        string  `gorm:"column:trace_id"`
	Payload        *string `gorm:"column:payload"`
	Salt           []byte  `gorm:"column:salt"`
	PayloadDigest  digest  `gorm:"column:payload_digest"`
	PrevHash       digest  `gorm:"column:prev_hash"`
	Hash           digest  `gorm:"column:hash"`
}

// event leaves Payload nil: the text is what was hashed.
func (r eventRow) event() anuencia.SealedEvent {
	e := anuencia.SealedEvent{
		AuditEvent: anuencia.AuditEvent{
			ID: anuencia.EventID(r.ID), StreamID: anuencia.StreamID(r.StreamID), ExecutionID: anuencia.ExecutionID(r.ExecutionID),
			Type: anuencia.EventType(r.EventType), OccurredAt: r.OccurredAt.at, ActorID: anuencia.PersonID(r.ActorID),
			PrincipalID: anuencia.PrincipalID(r.PrincipalID), Channel: anuencia.Channel(r.Channel), SubjectRef: r.SubjectRef,
			ErrorCode: anuencia.Code(r.ErrorCode), PolicyRevision: r.PolicyRevision, TraceID: r.TraceID, Payload: nil,
		},
		Seq: r.Seq, PayloadText: "", Salt: r.Salt, PayloadDigest: r.PayloadDigest, PrevHash: r.PrevHash, Hash: r.Hash,
	}
	if r.Payload != nil {
		e.PayloadText = *r.Payload
	}
	return e
}
