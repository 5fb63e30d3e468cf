package harness

import (
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// ErrConflict says that another writer was first and the retries were used up.
var ErrConflict = errors.New("conflict: another writer was first")

// ErrUnknownOutcome says that a tool cannot tell whether its effect happened.
var ErrUnknownOutcome = errors.New("the outcome of the effect is unknown")

// ErrSuperseded says that what a step would change is no longer what it was
// when it was planned: nothing was done (governance section 1, rule 2).
var ErrSuperseded = errors.New("the state before is not the one planned for")

// Request is what every surface knows of a call, once authenticated.
type Request struct {
	ID        anuencia.ExecutionID // minted when the request arrived (contracts section 1)
	Principal anuencia.Principal
	ActFor    string           // external id of the actor named, "" for the credential's own person
	Channel   anuencia.Channel // "" : the credential's default
	TraceID   string           // 32 hex digits of traceparent, or ""
	Remote    string           // address, for limits before a credential is known
	Received  time.Time
	Wait      time.Duration // how long an answer may wait for a running execution
}

// Submission is a request for work. Input and Metadata are JSON as received,
// checked for form by the edge.
type Submission struct {
	Intent   string
	Input    []byte
	Metadata []byte   // nil for none
	Keys     []string // idempotency keys; all must point at one execution
	Route    string   // part of what a key binds
}

// Answer is what a native route gives about an execution. Contract renders it.
type Answer struct {
	Execution anuencia.Execution
	// Ran: this very request ran (or refused) the execution synchronously, so an
	// error gets its own HTTP status.
	Ran bool
	// Submitted: a submission or a repeat of one: only these answer 202 with a contract.
	Submitted bool
	// Unfinished: the wait was over before the run: 202 without a body.
	Unfinished bool
	// HideResult: policy does not let this caller see the result.
	HideResult bool
	// Brief: details are withheld (external channel or actor not institutional).
	Brief bool
}

// DecideCommand is an approver's act. Ref is the approval's id or short code.
type DecideCommand struct {
	Ref         string
	Verdict     anuencia.Verdict
	Reason      string
	SubjectHash string // "" : the stored one, where the channel showed it
}

// ApprovalView is an approval with what an approver must see of its execution.
type ApprovalView struct {
	Approval  anuencia.Approval
	Execution anuencia.Execution
	Intent    anuencia.Intent
	Missing   int // people still needed
}

// Reconstruction is all that an auditor needs of one execution. Execution is
// nil for a request that was refused before it became one.
type Reconstruction struct {
	Execution *anuencia.Execution
	Intent    *anuencia.Intent
	Events    []anuencia.SealedEvent
	Approvals []anuencia.Approval
}

// NewToken is what is asked of a credential to be made.
type NewToken struct {
	Name      string
	Person    anuencia.Handle
	Scopes    []anuencia.Scope
	Channels  []anuencia.Channel
	ActFor    []string
	ExpiresIn time.Duration // 0: never
}
