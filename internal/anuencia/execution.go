package anuencia

import (
	"fmt"
	"time"
)

// Execution is one governed piece of work (product.md, Words). It is a value:
// its transitions return a new one and never touch the receiver.
type Execution struct {
	ID             ExecutionID
	ShortCode      string
	Version        int64 // compare-and-set; the store adds one at each write
	Head           Head  // the end of its hash chain
	State          State
	Intent         string
	Agent          string
	Input          string // RFC 8785 text, defaults applied
	Metadata       string // RFC 8785 text of the caller's metadata, "" for none
	Channel        Channel
	Actor          Actor // as resolved at intake; re-resolved by its Handle
	PrincipalID    PrincipalID
	Principal      Principal // as authenticated at intake, for policy at resume
	OnBehalfOf     PersonID  // the person bound to the credential that asked for the actor, if any
	Behalf         Handle    // by which that person is resolved again
	SubjectRef     string
	Risk           Risk
	PolicyID       string
	PolicyRevision string
	Reasons        []string   // the rules that raised the risk
	ApprovalID     ApprovalID // the open or last approval
	AuditRef       EventID
	TraceID        string
	Timeout        time.Duration
	Step           Step // what runs, or would
	Attempt        int
	LeaseUntil     time.Time // while running: nobody else may look before
	Outcome        Outcome
	CreatedAt      time.Time
	UpdatedAt      time.Time
	FinishedAt     time.Time
}

// Step is one resolved tool call.
type Step struct {
	Number     int
	Agent      string
	Tool       string
	ToolDigest string
	Arguments  string // RFC 8785 text with defaults
	Before     string // RFC 8785 text of what would be changed, "" when it changes nothing
	Effect     bool
	Idempotent bool
	Risk       Risk
	Timeout    time.Duration
}

// Outcome is what an execution ended with, after the egress guard.
type Outcome struct {
	Result   string // RFC 8785 text of an object, "" for none
	Sources  []Source
	Warnings []Warning
	Fault    *Fault // nil when completed
}

// Artifact is a file that an execution made.
type Artifact struct {
	ID          ArtifactID
	ExecutionID ExecutionID
	Filename    string
	MediaType   string
	Content     []byte
	SHA256      [32]byte
	CreatedAt   time.Time
}

// StateError says that a transition is not one of the machine's.
type StateError struct{ From, To State }

// Error names both states.
func (e *StateError) Error() string { return fmt.Sprintf("no transition from %s to %s", e.From, e.To) }

func (e Execution) to(next State, at time.Time, from ...State) (Execution, error) {
	for _, f := range from {
		if e.State == f {
			e.State, e.UpdatedAt = next, at
			if next.Terminal() {
				e.FinishedAt = at
				e.LeaseUntil = time.Time{}
			}
			return e, nil
		}
	}
	return e, &StateError{From: e.State, To: next}
}

// Start makes a fresh execution run at once (low and medium risk).
func (e Execution) Start(at time.Time, lease time.Duration) (Execution, error) {
	return e.run(at, lease, "")
}

// Wait makes a fresh execution wait for an approval, or a running or approved
// one whose subject changed wait for a new one.
func (e Execution) Wait(id ApprovalID, at time.Time) (Execution, error) {
	next, err := e.to(StateWaiting, at, "", StateApproved, StateRunning)
	if err == nil {
		next.ApprovalID = id
		next.LeaseUntil = time.Time{}
	}
	return next, err
}

// Approved records that the quorum is met; a job resumes it.
func (e Execution) Approved(at time.Time) (Execution, error) {
	return e.to(StateApproved, at, StateWaiting)
}

// Resume starts an approved execution.
func (e Execution) Resume(at time.Time, lease time.Duration) (Execution, error) {
	return e.run(at, lease, StateApproved)
}

// Retry starts a running execution whose lease has ended again; only for a
// step without effect or one that is idempotent (governance section 9).
func (e Execution) Retry(at time.Time, lease time.Duration) (Execution, error) {
	if e.State == StateRunning && at.Before(e.LeaseUntil) {
		return e, fmt.Errorf("lease held until %s", e.LeaseUntil.Format(time.RFC3339Nano))
	}
	return e.run(at, lease, StateRunning)
}

func (e Execution) run(at time.Time, lease time.Duration, from State) (Execution, error) {
	next, err := e.to(StateRunning, at, from)
	if err == nil {
		next.Attempt++
		next.LeaseUntil = at.Add(lease)
	}
	return next, err
}

// Complete ends a running execution with its result.
func (e Execution) Complete(o Outcome, at time.Time) (Execution, error) {
	next, err := e.to(StateCompleted, at, StateRunning)
	if err == nil {
		o.Fault = nil
		next.Outcome = o
	}
	return next, err
}

// Fail ends an open or fresh execution with a fault.
func (e Execution) Fail(f *Fault, at time.Time) (Execution, error) {
	next, err := e.to(StateFailed, at, "", StateWaiting, StateApproved, StateRunning)
	if err == nil {
		next.Outcome.Fault = f
	}
	return next, err
}

// Incomplete ends a running execution whose budget ran out.
func (e Execution) Incomplete(o Outcome, at time.Time) (Execution, error) {
	next, err := e.to(StateIncomplete, at, StateRunning)
	if err == nil {
		next.Outcome = o
	}
	return next, err
}

// Cancel ends an open execution at its actor's wish. A waiting one is
// withdrawn; a running one is stopped.
func (e Execution) Cancel(f *Fault, at time.Time) (Execution, error) {
	next, err := e.to(StateCancelled, at, StateWaiting, StateApproved, StateRunning)
	if err == nil {
		next.Outcome.Fault = f
	}
	return next, err
}
