// Package agent does the work of executions: runners over the port Tool. It
// decides nothing; allow-lists of the catalog are its only judgement
// (governance section 9).
package agent

import (
	"context"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Call is one resolved tool call. ExecutionID and Step together are the key of
// its effect: the same key never takes effect twice.
type Call struct {
	ExecutionID anuencia.ExecutionID
	Step        int
	Tool        anuencia.Tool // its Config is the kind's own settings
	Arguments   string        // RFC 8785 text of an object, checked by the tool's schema
	Before      string        // what the state was when it was planned, "" when the tool changes nothing
}

// Tool is one kind of tool (sql_view, document_search, ...). Implementations
// are safe for concurrent use and return soon after their context ends: a tool
// with an effect is waited for, because what it did must be known.
//
// An error may be an anuencia.Fault; anything else is INTERNAL_ERROR.
type Tool interface {
	// Before reads, now, what the call would change, as RFC 8785 text; "" when it
	// changes nothing. VALIDATION_FAILED/not_found when what it concerns does not exist.
	Before(ctx context.Context, c Call) (string, error)
	// Run does it once. harness.ErrSuperseded when the state is no longer
	// c.Before; then nothing was done.
	Run(ctx context.Context, c Call) (harness.StepResult, error)
}

// Ledger is a Tool that keeps a record of its effects, in the transaction of
// the effect, and so can tell what happened after a crash.
type Ledger interface {
	Tool
	// Look gives what the call gave, and whether it happened. It waits for one
	// that is being committed. It does nothing.
	Look(ctx context.Context, c Call) (harness.StepResult, bool, error)
}
