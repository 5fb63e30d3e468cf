package rest

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// eventRow is a row of audit_events (governance section 3). For its actor, the
// fields that speak of others or of the inside are left out.
type eventRow struct {
	ID             string          `json:"id"`
	StreamID       string          `json:"stream_id"`
	ExecutionID    *string         `json:"execution_id"`
	Seq            int64           `json:"seq"`
	EventType      string          `json:"event_type"`
	OccurredAt     time.Time       `json:"occurred_at"`
	ActorID        *string         `json:"actor_id,omitempty"`
	PrincipalID    *string         `json:"principal_id,omitempty"`
	Channel        *string         `json:"channel"`
	SubjectRef     *string         `json:"subject_ref"`
	ErrorCode      *string         `json:"error_code"`
	PolicyRevision *string         `json:"policy_revision,omitempty"`
	TraceID        *string         `json:"trace_id,omitempty"`
	Payload        json.RawMessage `json:"payload,omitempty"`
	Salt           *string         `json:"salt,omitempty"`
	PayloadDigest  string          `json:"payload_digest"`
	PrevHash       string          `json:"prev_hash"`
	Hash           string          `json:"hash"`
}

func safeEventOf(e anuencia.SealedEvent) eventRow {
	return eventRow{
		ID: e.ID.String(), StreamID: e.StreamID.String(), ExecutionID: optionalID(e.ExecutionID), Seq: e.Seq, EventType: string(e.Type),
		OccurredAt: e.OccurredAt, Channel: optional(string(e.Channel)), SubjectRef: optional(e.SubjectRef), ErrorCode: optional(string(e.ErrorCode)),
		PayloadDigest: hexOf(e.PayloadDigest), PrevHash: hexOf(e.PrevHash), Hash: hexOf(e.Hash),
	}
}

func eventOf(e anuencia.SealedEvent) eventRow {
	r := safeEventOf(e)
	r.ActorID, r.PrincipalID = optionalID(e.ActorID), optionalID(e.PrincipalID)
	r.PolicyRevision, r.TraceID = optional(e.PolicyRevision), optional(e.TraceID)
	if e.PayloadText != "" {
		r.Payload = json.RawMessage(e.PayloadText)
		r.Salt = optional(hex.EncodeToString(e.Salt))
	}
	return r
}

func (s *surface) auditEvents(c *httpkit.Call) error {
	q := c.Query()
	f := harness.AuditFilter{
		Page: q.Page(), Type: httpkit.Enum[anuencia.EventType](q, "event_type"), ExecutionID: httpkit.ID[anuencia.ExecutionID](q, "execution_id"),
		Actor: httpkit.ID[anuencia.PersonID](q, "actor"), Principal: httpkit.ID[anuencia.PrincipalID](q, "principal"),
		Channel: httpkit.Enum(q, "channel", anuencia.ChannelCLI), Subject: q.Text("subject"), Code: httpkit.Enum[anuencia.Code](q, "code"),
		From: q.Time("from"), To: q.Time("to"),
	}
	if err := q.Err(); err != nil {
		return err
	}
	items, next, err := s.o.Service.AuditEvents(c.Context(), c.Request, f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(items, next, eventOf))
}

func (s *surface) auditEvent(c *httpkit.Call) error {
	v, err := id[anuencia.EventID](c, "id")
	if err != nil {
		return err
	}
	e, err := s.o.Service.AuditEvent(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, eventOf(e))
}

// reconstruction is all of one execution. Execution is null for a request that
// was refused before it became one.
type reconstruction struct {
	Execution *auditedExecution `json:"execution"`
	Events    []eventRow        `json:"events"`
	Approvals []auditedApproval `json:"approvals"`
}

// auditedExecution is an execution as an auditor sees it: with what went in,
// what ran, what came out, and who is responsible for the intent.
type auditedExecution struct {
	executionRow
	PrincipalID    string                `json:"principal_id"`
	OnBehalfOf     *string               `json:"on_behalf_of"`
	PolicyID       *string               `json:"policy_id"`
	Reasons        []string              `json:"reasons"`
	Input          json.RawMessage       `json:"input"`
	Metadata       json.RawMessage       `json:"metadata"`
	Tool           *string               `json:"tool"`
	ToolDigest     *string               `json:"tool_digest"`
	Arguments      json.RawMessage       `json:"arguments"`
	Before         json.RawMessage       `json:"before"`
	Result         json.RawMessage       `json:"result"`
	Sources        []contract.SourceBody `json:"sources"`
	Attempt        int                   `json:"attempt"`
	Responsibility *responsibility       `json:"responsibility"`
}

type responsibility struct {
	OwnerUnit  string `json:"owner_unit"`
	Supervisor string `json:"supervisor"`
	Appeals    string `json:"appeals"`
	LegalBasis string `json:"legal_basis"`
}

type auditedApproval struct {
	ApprovalID  string          `json:"approval_id"`
	ShortCode   string          `json:"short_code"`
	Status      string          `json:"status"`
	RiskLevel   string          `json:"risk_level"`
	PolicyID    *string         `json:"policy_id"`
	Reasons     []string        `json:"reasons"`
	Subject     json.RawMessage `json:"subject"`
	SubjectHash string          `json:"subject_hash"`
	Stages      []stageRow      `json:"stages"`
	Decisions   []decisionRow   `json:"decisions"`
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	ClosedAt    *time.Time      `json:"closed_at"`
}

func (s *surface) reconstruct(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	rec, err := s.o.Service.Reconstruct(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	out := reconstruction{Events: listOf(rec.Events, "", eventOf).Items, Approvals: []auditedApproval{}}
	if e := rec.Execution; e != nil {
		out.Execution = auditedOf(*e, rec.Intent)
	}
	for _, a := range rec.Approvals {
		out.Approvals = append(out.Approvals, auditedApproval{
			ApprovalID: a.ID.String(), ShortCode: a.ShortCode, Status: string(a.Status), RiskLevel: string(a.Risk), PolicyID: optional(a.PolicyID),
			Reasons: nonNil(a.Reasons), Subject: orNull(json.RawMessage(a.Subject)), SubjectHash: a.SubjectHash, Stages: stagesOf(a),
			Decisions: decisionsOf(a, verbatim), CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, ClosedAt: optionalTime(a.ClosedAt),
		})
	}
	return c.JSON(http.StatusOK, out)
}

func auditedOf(e anuencia.Execution, in *anuencia.Intent) *auditedExecution {
	out := &auditedExecution{
		executionRow: rowOf(e), PrincipalID: e.PrincipalID.String(), OnBehalfOf: optionalID(e.OnBehalfOf), PolicyID: optional(e.PolicyID),
		Reasons: nonNil(e.Reasons), Input: orNull(json.RawMessage(e.Input)), Metadata: orNull(json.RawMessage(e.Metadata)),
		Sources: contract.Sources(e.Outcome.Sources),
		Tool:    optional(e.Step.Tool), ToolDigest: optional(e.Step.ToolDigest), Arguments: orNull(json.RawMessage(e.Step.Arguments)),
		Before: orNull(json.RawMessage(e.Step.Before)), Result: orNull(json.RawMessage(e.Outcome.Result)), Attempt: e.Attempt,
	}
	if in != nil && in.Responsibility.Complete() {
		out.Responsibility = &responsibility{
			OwnerUnit: in.Responsibility.OwnerUnit, Supervisor: in.Responsibility.Supervisor,
			Appeals: in.Responsibility.Appeals, LegalBasis: in.Responsibility.LegalBasis,
		}
	}
	return out
}
