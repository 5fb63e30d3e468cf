package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Everyone in a list of roles stands for every resolved actor.
const everyone = "*"

// maxStack bounds, in bytes, what a panic leaves in the audit.
const maxStack = 4 << 10

// Direct runs an intent as the one tool call that it names, without a model
// (governance section 9). It implements harness.Runner and is safe for
// concurrent use.
type Direct struct {
	kinds map[string]Tool
}

var _ harness.Runner = (*Direct)(nil)

// NewDirect makes the runner over the kinds of tool there are, by the name that
// the catalog uses (anuencia.Tool.Kind).
func NewDirect(kinds map[string]Tool) *Direct { return &Direct{kinds: maps.Clone(kinds)} }

// Plan implements harness.Runner. The arguments are the validated input,
// validated again by the tool's own schema, so that a catalog in which the two
// disagree gives VALIDATION_FAILED and not a call nobody foresaw.
func (d *Direct) Plan(ctx context.Context, c harness.Catalog, e anuencia.Execution, in anuencia.Intent) (anuencia.Step, error) {
	a, known := c.Agent(in.Agent)
	if !known || a.Runner != "direct" || !slices.Contains(a.Tools, in.Tool) || !serves(a, e.Actor) {
		return anuencia.Step{}, anuencia.NewFault(anuencia.CodeToolNotAllowed, "")
	}
	tool, kind, err := d.find(c, in.Tool)
	if err != nil {
		return anuencia.Step{}, err
	}
	args, err := c.ValidateArguments(tool, []byte(e.Input))
	if err != nil {
		return anuencia.Step{}, fmt.Errorf("arguments: %w", err)
	}
	step := anuencia.Step{
		Number: max(e.Step.Number, 1), Agent: a.Name, Tool: tool.Name, ToolDigest: tool.Digest, Arguments: args,
		Effect: tool.Effect, Idempotent: tool.Idempotent, Risk: tool.Risk, Timeout: tool.Timeout,
	}
	step.Before, err = within(ctx, tool, func(ctx context.Context) (string, error) {
		return kind.Before(ctx, call(e.ID, tool, step))
	})
	if err != nil {
		return anuencia.Step{}, fmt.Errorf("read the state before: %w", err)
	}
	return step, nil
}

// Run implements harness.Runner. It runs the planned step once and never tries
// again. A definition that changed since the plan is ErrSuperseded: only what
// was planned runs (governance section 1, rule 2).
func (d *Direct) Run(ctx context.Context, c harness.Catalog, e anuencia.Execution) (harness.StepResult, error) {
	tool, kind, err := d.find(c, e.Step.Tool)
	if err != nil {
		return harness.StepResult{}, err
	}
	if tool.Digest != e.Step.ToolDigest {
		return harness.StepResult{}, fmt.Errorf("tool %s has another definition: %w", tool.Name, harness.ErrSuperseded)
	}
	res, err := within(ctx, tool, func(ctx context.Context) (harness.StepResult, error) {
		return kind.Run(ctx, call(e.ID, tool, e.Step))
	})
	if err != nil {
		return harness.StepResult{}, fmt.Errorf("run %s: %w", tool.Name, err)
	}
	return res, nil
}

// Look implements harness.Runner (governance section 9): a tool with a ledger
// says what happened; one without effect, or one that is idempotent, may
// certainly be started again; any other cannot tell.
func (d *Direct) Look(ctx context.Context, c harness.Catalog, e anuencia.Execution) (harness.StepResult, bool, error) {
	tool, kind, err := d.find(c, e.Step.Tool)
	ledger, keeps := kind.(Ledger)
	switch {
	case !e.Step.Effect:
		return harness.StepResult{}, false, nil
	case err != nil:
		// The tool is no longer in the catalog: whether it acted, nobody here can say.
		return harness.StepResult{}, false, fmt.Errorf("look for the effect of %s: %w", e.Step.Tool, harness.ErrUnknownOutcome)
	case keeps:
		type found struct {
			res      harness.StepResult
			happened bool
		}
		f, err := within(ctx, tool, func(ctx context.Context) (found, error) {
			res, happened, err := ledger.Look(ctx, call(e.ID, tool, e.Step))
			return found{res, happened}, err
		})
		if err != nil {
			return harness.StepResult{}, false, fmt.Errorf("look for the effect of %s: %w", tool.Name, err)
		}
		if !f.happened && tool.Digest != e.Step.ToolDigest {
			// Another definition may keep its record elsewhere: its "no" says nothing.
			return harness.StepResult{}, false, fmt.Errorf("%s was changed since it ran: %w", tool.Name, harness.ErrUnknownOutcome)
		}
		return f.res, f.happened, nil
	case tool.Digest != e.Step.ToolDigest:
		return harness.StepResult{}, false, fmt.Errorf("%s was changed since it ran: %w", tool.Name, harness.ErrUnknownOutcome)
	case e.Step.Idempotent:
		return harness.StepResult{}, false, nil
	}
	return harness.StepResult{}, false, fmt.Errorf("%s keeps no record: %w", tool.Name, harness.ErrUnknownOutcome)
}

func (d *Direct) find(c harness.Catalog, name string) (anuencia.Tool, Tool, error) {
	tool, known := c.Tool(name)
	if !known {
		return tool, nil, anuencia.NewFault(anuencia.CodeToolNotAllowed, "")
	}
	kind, known := d.kinds[tool.Kind]
	if !known {
		return tool, nil, anuencia.Internal("find tool", fmt.Errorf("no tool of kind %q", tool.Kind))
	}
	return tool, kind, nil
}

func serves(a anuencia.Agent, actor anuencia.Actor) bool {
	return slices.Contains(a.Roles, everyone) || actor.HasAnyRole(a.Roles)
}

func call(id anuencia.ExecutionID, tool anuencia.Tool, s anuencia.Step) Call {
	return Call{ExecutionID: id, Step: s.Number, Tool: tool, Arguments: s.Arguments, Before: s.Before}
}

// errToolTime is the cause of a context that ended by the tool's own timeout,
// told apart from the execution's.
var errToolTime = errors.New("the tool's time is up")

// within runs fn under the tool's own timeout and turns a panic into an error.
// A tool without an effect is left behind when its time is up; one with an
// effect is waited for.
func within[T any](ctx context.Context, tool anuencia.Tool, fn func(context.Context) (T, error)) (T, error) {
	limit := tool.Timeout
	if limit <= 0 {
		limit = time.Hour // the catalog refuses such a tool; never without a bound
	}
	limited, cancel := context.WithTimeoutCause(ctx, limit, errToolTime)
	defer cancel()
	type end struct {
		v   T
		err error
	}
	done := make(chan end, 1)
	go func() {
		v, err := guarded(limited, fn)
		done <- end{v, err}
	}()
	var zero T
	if !tool.Effect {
		select {
		case r := <-done:
			return r.v, named(limited, r.err)
		case <-limited.Done():
			return zero, named(limited, limited.Err())
		}
	}
	r := <-done
	return r.v, named(limited, r.err)
}

// named says TIMEOUT/tool of an error that the tool's timeout caused. An effect
// that was refused as superseded stays so.
func named(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errToolTime) && !errors.Is(err, harness.ErrSuperseded) {
		return anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool).WithCause(err)
	}
	return err
}

func guarded[T any](ctx context.Context, fn func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			err = fmt.Errorf("the tool panicked: %v\n%s", p, stack[:min(len(stack), maxStack)])
		}
	}()
	return fn(ctx)
}
