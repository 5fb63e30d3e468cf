package anuencia

import (
	"slices"
	"time"
)

// EventType is the kind of an audit event. This is the one list of them
// (governance section 3).
type EventType string

// The event types.
const (
	EventReceived              EventType = "execution.received"
	EventValidated             EventType = "input.validated"
	EventIdentityResolved      EventType = "identity.resolved"
	EventRateChecked           EventType = "ratelimit.checked"
	EventPolicyEvaluated       EventType = "policy.evaluated"
	EventApprovalRequested     EventType = "approval.requested"
	EventApprovalNotified      EventType = "approval.notified"
	EventApprovalUndeliverable EventType = "approval.undeliverable"
	EventApprovalDecided       EventType = "approval.decided"
	EventApprovalRefused       EventType = "approval.refused"
	EventApprovalReminded      EventType = "approval.reminded"
	EventApprovalEscalated     EventType = "approval.escalated"
	EventApprovalExpired       EventType = "approval.expired"
	EventApprovalWithdrawn     EventType = "approval.withdrawn"
	EventApprovalSuperseded    EventType = "approval.superseded"
	EventResumed               EventType = "execution.resumed"
	EventAgentStarted          EventType = "agent.started"
	EventModelCalled           EventType = "model.called"
	EventToolRequested         EventType = "tool.requested"
	EventToolCompleted         EventType = "tool.completed"
	EventToolFailed            EventType = "tool.failed"
	EventToolUnknown           EventType = "tool.outcome_unknown"
	EventOutputRedacted        EventType = "output.redacted"
	EventCompleted             EventType = "execution.completed"
	EventFailed                EventType = "execution.failed"
	EventIncomplete            EventType = "execution.incomplete"
	EventCancelled             EventType = "execution.cancelled"
	EventCallbackDelivered     EventType = "callback.delivered"
	EventCallbackFailed        EventType = "callback.failed"
	EventAccessAudited         EventType = "access.audited"
	EventIntakeSuppressed      EventType = "intake.suppressed"
	EventPolicyActivated       EventType = "policy.activated"
	EventCatalogActivated      EventType = "catalog.activated"
	EventHoldPlaced            EventType = "hold.placed"
	EventHoldLifted            EventType = "hold.lifted"
	EventTokenCreated          EventType = "token.created"
	EventTokenRevoked          EventType = "token.revoked"
	EventIdentityLinked        EventType = "identity.linked"
	EventIdentityUnlinked      EventType = "identity.unlinked"
	EventSessionShared         EventType = "session.shared"
	EventSessionUnshared       EventType = "session.unshared"
	EventPayloadErased         EventType = "payload.erased"
	EventPrefixRetired         EventType = "prefix.retired"
)

// EventTypes lists every type there is.
func EventTypes() []EventType {
	return []EventType{
		EventReceived, EventValidated, EventIdentityResolved, EventRateChecked, EventPolicyEvaluated,
		EventApprovalRequested, EventApprovalNotified, EventApprovalUndeliverable, EventApprovalDecided,
		EventApprovalRefused, EventApprovalReminded, EventApprovalEscalated, EventApprovalExpired,
		EventApprovalWithdrawn, EventApprovalSuperseded, EventResumed, EventAgentStarted, EventModelCalled,
		EventToolRequested, EventToolCompleted, EventToolFailed, EventToolUnknown, EventOutputRedacted,
		EventCompleted, EventFailed, EventIncomplete, EventCancelled, EventCallbackDelivered,
		EventCallbackFailed, EventAccessAudited, EventIntakeSuppressed, EventPolicyActivated,
		EventCatalogActivated, EventHoldPlaced, EventHoldLifted, EventTokenCreated, EventTokenRevoked,
		EventIdentityLinked, EventIdentityUnlinked, EventSessionShared, EventSessionUnshared,
		EventPayloadErased, EventPrefixRetired,
	}
}

// Valid says whether t is on the list.
func (t EventType) Valid() bool { return slices.Contains(EventTypes(), t) }

// AuditEvent is one fact, before it is sealed into its chain. Payload is any
// JSON value that internal/audit can bring to its canonical form.
type AuditEvent struct {
	ID             EventID
	StreamID       StreamID
	ExecutionID    ExecutionID // zero for system events
	Type           EventType
	OccurredAt     time.Time // UTC, microseconds
	ActorID        PersonID
	PrincipalID    PrincipalID
	Channel        Channel
	SubjectRef     string // the person an act concerns, by the intent's subject path
	ErrorCode      Code
	PolicyRevision string
	TraceID        string
	Payload        map[string]any
}

// SealedEvent is a row of audit_events (governance section 3). PayloadText is
// the RFC 8785 form exactly as stored and hashed; it and Salt are empty after
// an erasure.
type SealedEvent struct {
	AuditEvent
	Seq           int64
	PayloadText   string
	Salt          []byte
	PayloadDigest [32]byte
	PrevHash      [32]byte // zero for seq 1
	Hash          [32]byte
}

// Head is the end of a hash chain: the sequence number and hash of its last
// event. The zero value is an empty chain.
type Head struct {
	Seq  int64
	Hash [32]byte
}

// Instant brings t to what every store keeps: UTC, microseconds.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
