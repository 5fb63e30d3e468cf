// Package opa answers policy questions with an embedded Open Policy Agent
// (governance section 5). It decides nothing itself: the rules are Rego. What it
// holds is that only a whole, well-formed, timely answer is one.
package opa

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// The ways in which the engine gives no answer. Each is a denial at intake
// (policy_id "engine") and no answer at resume.
var (
	ErrUndefined = errors.New("policy: the decision is undefined")
	ErrMalformed = errors.New("policy: the decision is malformed")
	ErrLate      = errors.New("policy: the decision is late")
)

// defaultTimeout bounds one decision; a lean policy needs a thousandth of it.
const defaultTimeout = 250 * time.Millisecond

// Options of an Engine.
type Options struct {
	Timeout time.Duration // of one decision; 250 ms when zero
}

// Engine implements harness.Policy. Safe for concurrent use.
type Engine struct {
	timeout time.Duration
	mu      sync.Mutex // one reload at a time
	current atomic.Pointer[revision]
}

// revision is one content of the policies folder, prepared once.
type revision struct {
	hash  string
	query rego.PreparedEvalQuery
}

var _ harness.Policy = (*Engine)(nil)

// New prepares the Rego files of fsys (tests left out). Errors: a folder without
// a decision rule, bad Rego, or a built-in that policies may not use.
func New(ctx context.Context, fsys fs.FS, o Options) (*Engine, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	e := &Engine{timeout: o.Timeout}
	r, err := prepare(ctx, fsys)
	if err != nil {
		return nil, err
	}
	e.current.Store(r)
	return e, nil
}

// Reload takes a new content into force and says whether it differs. A bad one
// is refused and the last good one stays.
func (e *Engine) Reload(ctx context.Context, fsys fs.FS) (changed bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next, err := prepare(ctx, fsys)
	if err != nil {
		return false, fmt.Errorf("reload policies: %w", err)
	}
	changed = next.hash != e.Revision()
	e.current.Store(next)
	return changed, nil
}

// Revision is the hex SHA-256 over the files in force.
func (e *Engine) Revision() string { return e.current.Load().hash }

// Decide asks the revision in force. ErrUndefined, ErrMalformed or ErrLate, or
// the failure of a built-in: there is no answer, and so no permission.
func (e *Engine) Decide(ctx context.Context, in harness.PolicyInput) (anuencia.Decision, error) {
	r := e.current.Load()
	none := anuencia.Decision{Revision: r.hash}
	input, err := inputValue(in)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	rs, err := r.query.Eval(ctx, rego.EvalParsedInput(input))
	if err != nil {
		return none, evalError(ctx, err)
	}
	answer, err := single(rs)
	if err != nil {
		return none, err
	}
	d, err := decisionFrom(answer, in.Stage, baseRisk(in))
	if err != nil {
		return none, err
	}
	d.Revision = r.hash
	return d, nil
}

func evalError(ctx context.Context, err error) error {
	// OPA's cancellation is its own error, not the context's.
	if topdown.IsCancel(err) || ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrLate, err)
	}
	return fmt.Errorf("evaluate policy: %w", err)
}

// single gives the one value of a result. An undefined decision is an empty set
// and no error.
func single(rs rego.ResultSet) (any, error) {
	if len(rs) == 0 {
		return nil, ErrUndefined
	}
	if len(rs) != 1 || len(rs[0].Expressions) != 1 {
		return nil, fmt.Errorf("%w: not one value", ErrMalformed)
	}
	return rs[0].Expressions[0].Value, nil
}

func prepare(ctx context.Context, fsys fs.FS) (*revision, error) {
	m, err := load(fsys)
	if err != nil {
		return nil, err
	}
	c, err := m.compile()
	if err != nil {
		return nil, err
	}
	if len(c.GetRulesExact(decisionRef())) == 0 {
		return nil, errors.New("policies: there is no rule data.anuencia.decision")
	}
	q, err := rego.New(
		rego.Query(decisionQuery),
		rego.Compiler(c),
		rego.Store(inmem.NewFromObjectWithOpts(map[string]any{}, inmem.OptReturnASTValuesOnRead(true))),
		rego.StrictBuiltinErrors(true),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare policies: %w", err)
	}
	return &revision{hash: m.hash, query: q}, nil
}
