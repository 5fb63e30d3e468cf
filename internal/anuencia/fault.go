package anuencia

import (
	"errors"
	"fmt"
)

// Code is one of the eight error codes of the standard error contract. The set
// is closed: nothing else is ever emitted (contracts section 1).
type Code string

// The eight codes.
const (
	CodePolicyDenied     Code = "POLICY_DENIED"
	CodeIdentityNotFound Code = "IDENTITY_NOT_FOUND"
	CodeToolNotAllowed   Code = "TOOL_NOT_ALLOWED"
	CodeRateLimited      Code = "RATE_LIMIT_EXCEEDED"
	CodeValidation       Code = "VALIDATION_FAILED"
	CodeInternal         Code = "INTERNAL_ERROR"
	CodeApprovalRejected Code = "APPROVAL_REJECTED"
	CodeTimeout          Code = "TIMEOUT"
)

// Codes lists the closed set, in the order of the client's document.
func Codes() []Code {
	return []Code{
		CodePolicyDenied, CodeIdentityNotFound, CodeToolNotAllowed, CodeRateLimited,
		CodeValidation, CodeInternal, CodeApprovalRejected, CodeTimeout,
	}
}

// Valid says whether c is one of the eight.
func (c Code) Valid() bool {
	switch c {
	case CodePolicyDenied, CodeIdentityNotFound, CodeToolNotAllowed, CodeRateLimited,
		CodeValidation, CodeInternal, CodeApprovalRejected, CodeTimeout:
		return true
	}
	return false
}

// Reason refines a code. It travels in details.reason where the code allows
// details, and chooses the message and the HTTP status together with the code.
type Reason string

// The reasons. Each belongs to one code, named beside it.
const (
	// VALIDATION_FAILED.
	ReasonMalformed       Reason = "malformed"          // 400: not JSON, duplicate keys, bad UTF-8, too deep
	ReasonSchema          Reason = "schema"             // 422: well formed, but not as declared
	ReasonNotFound        Reason = "not_found"          // 404: unknown or not yours
	ReasonMethod          Reason = "method_not_allowed" // 405
	ReasonMediaType       Reason = "media_type"         // 415
	ReasonTooLarge        Reason = "too_large"          // 413
	ReasonKeyReused       Reason = "idempotency_key_reused"
	ReasonUnknownIntent   Reason = "unknown_intent"   // 422
	ReasonActorMismatch   Reason = "actor_mismatch"   // 422: body and header name different actors
	ReasonDecided         Reason = "decided"          // 409
	ReasonExpired         Reason = "expired"          // 409
	ReasonWithdrawn       Reason = "withdrawn"        // 409; also APPROVAL_REJECTED
	ReasonSuperseded      Reason = "superseded"       // 409
	ReasonSubjectMismatch Reason = "subject_mismatch" // 409: the hash submitted is not the one stored
	ReasonReasonRequired  Reason = "reason_required"  // 422
	// APPROVAL_REJECTED.
	ReasonRejected Reason = "rejected"
	// TIMEOUT.
	ReasonTool            Reason = "tool"
	ReasonModel           Reason = "model"
	ReasonExecution       Reason = "execution"
	ReasonBudget          Reason = "budget"
	ReasonApprovalExpired Reason = "approval_expired"
	ReasonCancelled       Reason = "cancelled"
	// IDENTITY_NOT_FOUND.
	ReasonCredential Reason = "credential" // 401
	ReasonActor      Reason = "actor"      // 403
	// INTERNAL_ERROR.
	ReasonUnavailable    Reason = "unavailable"     // 503: a store or directory that cannot be reached
	ReasonOutcomeUnknown Reason = "outcome_unknown" // the effect may or may not have happened
)

// The rules that the harness itself names in details.policy_id.
const (
	PolicyScope         = "scope"                   // the credential lacks the scope
	PolicyFourEyes      = "approval.four_eyes"      // the requester may not decide
	PolicyNoApprover    = "approval.no_approver"    // nobody could decide
	PolicyApproverRole  = "approval.role"           // holds none of the roles asked for
	PolicyOwnCredential = "decision.own_credential" // decided with a credential that is not one's own
	PolicyChannel       = "decision.channel"        // this channel may not decide it
	PolicyEngine        = "engine"                  // undefined, malformed or late answer of the engine
	PolicyActFor        = "act_for"                 // the credential may not act for this person
	PolicyIntentRole    = "intent.role"             // the catalog does not offer it to this actor
)

// FieldError names what in the input is wrong, never the value (contracts
// section 1).
type FieldError struct {
	Path string // JSON pointer into the body, "" for the whole
	Rule string // the schema keyword or validator tag that failed
}

// Details are the only keys that error.details may have (contracts section 1).
// Zero values are left out.
type Details struct {
	RiskLevel    Risk
	PolicyID     string
	NextAction   string
	Fields       []FieldError
	RetryAfterMS int64
	Limit        int64
	Window       string // for instance "1m"
	MaxBytes     int64
	Supported    []string
}

// Fault is the one error type that carries a meaning for callers. The cause is
// for the audit event and the log; it never leaves the server (governance
// section 1, rule 12).
type Fault struct { //nolint:errname // the word of the domain; it is a value that travels, not only an error
	Code    Code
	Reason  Reason
	Details Details
	cause   error
}

// NewFault makes a fault with a reason and no cause.
func NewFault(code Code, reason Reason) *Fault { return &Fault{Code: code, Reason: reason} }

// WithCause gives a copy that remembers err.
func (f *Fault) WithCause(err error) *Fault {
	c := *f
	c.cause = err
	return &c
}

// WithDetails gives a copy with the details.
func (f *Fault) WithDetails(d Details) *Fault {
	c := *f
	c.Details = d
	return &c
}

// Error is for operators' logs; it is never sent to a caller.
func (f *Fault) Error() string {
	s := string(f.Code)
	if f.Reason != "" {
		s += "/" + string(f.Reason)
	}
	if f.Details.PolicyID != "" {
		s += " (" + f.Details.PolicyID + ")"
	}
	if f.cause != nil {
		s += ": " + f.cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (f *Fault) Unwrap() error { return f.cause }

// Is makes errors.Is compare code and reason; an empty reason in the target
// matches any.
func (f *Fault) Is(target error) bool {
	t := new(Fault)
	if !errors.As(target, &t) {
		return false
	}
	return f.Code == t.Code && (t.Reason == "" || f.Reason == t.Reason)
}

// Denied is POLICY_DENIED by the rule named.
func Denied(policyID string) *Fault {
	return &Fault{Code: CodePolicyDenied, Details: Details{PolicyID: policyID}}
}

// Invalid is VALIDATION_FAILED with the fields that are wrong.
func Invalid(reason Reason, fields ...FieldError) *Fault {
	return &Fault{Code: CodeValidation, Reason: reason, Details: Details{Fields: fields}}
}

// NotFound is the one answer for what does not exist and what is not the
// caller's (governance section 1, rule 13).
func NotFound() *Fault { return NewFault(CodeValidation, ReasonNotFound) }

// Internal wraps an unexpected failure.
func Internal(doing string, err error) *Fault {
	return NewFault(CodeInternal, "").WithCause(fmt.Errorf("%s: %w", doing, err))
}

// Unavailable wraps a failure of something that may be back soon (503).
func Unavailable(doing string, err error) *Fault {
	return NewFault(CodeInternal, ReasonUnavailable).WithCause(fmt.Errorf("%s: %w", doing, err))
}

// AsFault gives err as a fault; what is none is INTERNAL_ERROR with err as its
// cause. A nil err gives nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	f := new(Fault)
	if errors.As(err, &f) {
		return f
	}
	return NewFault(CodeInternal, "").WithCause(err)
}
