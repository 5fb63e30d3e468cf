package opa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"
)

// Report is the outcome of the Rego tests of a folder.
type Report struct {
	Passed     int
	Failed     []string // "file:line name: why", sorted
	Coverage   float64  // per cent of the lines of the policies, tests left out
	NotCovered []string // "file:line" or "file:from-to", sorted
}

// OK says whether there were tests and all passed.
func (r Report) OK() bool { return r.Passed > 0 && len(r.Failed) == 0 }

// Test runs the *_test.rego files of fsys over its policies, under the same
// restrictions as the engine.
func Test(ctx context.Context, fsys fs.FS) (Report, error) {
	var r Report
	m, err := load(fsys)
	if err != nil {
		return r, err
	}
	if _, err := m.compile(); err != nil {
		return r, err
	}
	all := maps.Clone(m.rules)
	maps.Copy(all, m.tests)
	tracer := cover.New()
	results, err := tester.NewRunner().
		SetCompiler(newCompiler()).
		SetCoverageQueryTracer(tracer).
		RaiseBuiltinErrors(true).
		SetModules(all).
		RunTests(ctx, nil)
	if err != nil {
		return r, fmt.Errorf("run policy tests: %w", err)
	}
	for res := range results {
		switch {
		case res.Error != nil:
			r.Failed = append(r.Failed, fmt.Sprintf("%s %s: %v", place(res.Location), res.Name, res.Error))
		case res.Fail, res.Skip: // a skipped test shows nothing
			r.Failed = append(r.Failed, fmt.Sprintf("%s %s: not true", place(res.Location), res.Name))
		default:
			r.Passed++
		}
	}
	slices.Sort(r.Failed)
	report := tracer.Report(m.rules)
	r.Coverage = report.Coverage
	for name, f := range report.Files {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		for _, gap := range f.NotCovered {
			r.NotCovered = append(r.NotCovered, span(name, gap))
		}
	}
	slices.Sort(r.NotCovered)
	return r, nil
}

func place(l *ast.Location) string {
	if l == nil {
		return "?"
	}
	return fmt.Sprintf("%s:%d", l.File, l.Row)
}

func span(name string, g cover.Range) string {
	if g.Start.Row == g.End.Row {
		return fmt.Sprintf("%s:%d", name, g.Start.Row)
	}
	return fmt.Sprintf("%s:%d-%d", name, g.Start.Row, g.End.Row)
}

// Eval answers one input document (JSON, as the rules see it) with the decision
// as the rules give it, unchecked. ErrUndefined when there is none.
func Eval(ctx context.Context, fsys fs.FS, input []byte) ([]byte, error) {
	r, err := prepare(ctx, fsys)
	if err != nil {
		return nil, err
	}
	v, err := ast.ValueFromReader(strings.NewReader(string(input)))
	if err != nil {
		return nil, fmt.Errorf("read policy input: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 10*defaultTimeout, errors.New("policy took too long"))
	defer cancel()
	rs, err := r.query.Eval(ctx, rego.EvalParsedInput(v))
	if err != nil {
		return nil, evalError(ctx, err)
	}
	value, err := single(rs)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write decision: %w", err)
	}
	return out, nil
}
