package anuencia

// Risk is how much harm an act can do. High and critical always need approval
// (governance section 5). The zero value is not valid and ranks above all.
type Risk string

// The four levels.
const (
	RiskLow      Risk = "low"
	RiskMedium   Risk = "medium"
	RiskHigh     Risk = "high"
	RiskCritical Risk = "critical"
)

// Valid says whether r is one of the four levels.
func (r Risk) Valid() bool { return r.rank() > 0 && r.rank() < 5 }

func (r Risk) rank() int {
	switch r {
	case RiskLow:
		return 1
	case RiskMedium:
		return 2
	case RiskHigh:
		return 3
	case RiskCritical:
		return 4
	}
	return 5 // an unknown level is treated as worse than the worst
}

// Less says whether r is a lower risk than other.
func (r Risk) Less(other Risk) bool { return r.rank() < other.rank() }

// NeedsApproval says whether a person must consent: true for high, critical
// and anything that is not a known level.
func (r Risk) NeedsApproval() bool { return r.rank() >= 3 }

// Channel is the way a request came in (product.md, Words).
type Channel string

// The channels.
const (
	ChannelUI       Channel = "ui"
	ChannelAPI      Channel = "api"
	ChannelN8N      Channel = "n8n"
	ChannelTelegram Channel = "telegram"
	ChannelUHP      Channel = "uhp"
	ChannelMCP      Channel = "mcp"
	ChannelCLI      Channel = "cli" // acts on the host: token create, approvals; only in audit rows
)

// Valid says whether c is a channel that a credential may have.
func (c Channel) Valid() bool {
	switch c {
	case ChannelUI, ChannelAPI, ChannelN8N, ChannelTelegram, ChannelUHP, ChannelMCP:
		return true
	case ChannelCLI:
		return false
	}
	return false
}

// External says whether details are withheld on this channel (contracts
// section 1).
func (c Channel) External() bool { return c == ChannelN8N || c == ChannelTelegram }

// State is where an execution stands (governance section 2).
type State string

// The states. Waiting, approved and running are open; the others are terminal.
const (
	StateWaiting    State = "waiting_approval"
	StateApproved   State = "approved" // decided, not yet started: a resume job is queued
	StateRunning    State = "running"
	StateCompleted  State = "completed"
	StateFailed     State = "failed"
	StateIncomplete State = "incomplete"
	StateCancelled  State = "cancelled"
)

// Valid says whether s is a known state.
func (s State) Valid() bool {
	switch s {
	case StateWaiting, StateApproved, StateRunning, StateCompleted, StateFailed, StateIncomplete, StateCancelled:
		return true
	}
	return false
}

// Terminal says whether s never changes again (governance section 1, rule 5).
func (s State) Terminal() bool {
	switch s {
	case StateCompleted, StateFailed, StateIncomplete, StateCancelled:
		return true
	case StateWaiting, StateApproved, StateRunning:
		return false
	}
	return false
}

// ApprovalStatus is where an approval stands.
type ApprovalStatus string

// Pending is open; the others are ends.
const (
	ApprovalPending    ApprovalStatus = "pending"
	ApprovalApproved   ApprovalStatus = "approved"
	ApprovalRejected   ApprovalStatus = "rejected"
	ApprovalExpired    ApprovalStatus = "expired"
	ApprovalWithdrawn  ApprovalStatus = "withdrawn"
	ApprovalSuperseded ApprovalStatus = "superseded"
)

// Valid says whether s is a known status.
func (s ApprovalStatus) Valid() bool {
	switch s {
	case ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, ApprovalWithdrawn, ApprovalSuperseded:
		return true
	}
	return false
}

// Verdict is what an approver said. Only the literal approve permits
// (governance section 1, rule 10).
type Verdict string

// The two verdicts.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
)

// Valid says whether v is one of the two.
func (v Verdict) Valid() bool { return v == Approve || v == Reject }

// Scope is what a credential may be used for.
type Scope string

// The scopes. A credential holds a set of them; none implies another.
const (
	ScopeSubmit  Scope = "submit"  // hand in, read and cancel one's own executions
	ScopeDecide  Scope = "decide"  // decide approvals, as the person bound to the credential
	ScopeAudit   Scope = "audit"   // read all of the audit
	ScopePolicy  Scope = "policy"  // simulate policies
	ScopeAdmin   Scope = "admin"   // tokens, holds, delegations
	ScopeOperate Scope = "operate" // metrics and the failing part of readiness
)

// Valid says whether s is a known scope.
func (s Scope) Valid() bool {
	switch s {
	case ScopeSubmit, ScopeDecide, ScopeAudit, ScopePolicy, ScopeAdmin, ScopeOperate:
		return true
	}
	return false
}
