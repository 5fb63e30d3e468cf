package sqltool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// The kinds by which the catalog knows the tools of this package.
const (
	KindView   = "sql_view"
	KindAction = "sql_action"
)

// View is sql_view: one named query in a read-only transaction. The result is
// {"filas": [...]}.
type View struct {
	sources *Sources
}

var _ agent.Tool = (*View)(nil)

// NewView makes the tool.
func NewView(s *Sources) *View { return &View{sources: s} }

type viewConfig struct {
	Source   string `json:"source"`
	SourceID string `json:"source_id"`
	Query    string `json:"query"`
	MaxRows  int    `json:"max_rows"`
}

// Before implements agent.Tool: a view changes nothing.
func (*View) Before(context.Context, agent.Call) (string, error) { return "", nil }

// Run implements agent.Tool. Rows past max_rows are cut with the warning
// partial_result; none at all gives no_results.
func (v *View) Run(ctx context.Context, c agent.Call) (harness.StepResult, error) {
	var none harness.StepResult
	var cfg viewConfig
	if err := json.Unmarshal(c.Tool.Config, &cfg); err != nil {
		return none, fmt.Errorf("configuration of %s: %w", c.Tool.Name, err)
	}
	src, err := v.sources.get(cfg.Source)
	if err != nil {
		return none, err
	}
	args, err := arguments(c.Arguments)
	if err != nil {
		return none, err
	}
	var rows []map[string]any
	var more bool
	err = src.readOnly(ctx, func(q querier) error {
		rows, more, err = read(ctx, q, src.d, cfg.Query, args, max(cfg.MaxRows, 1))
		return err
	})
	if err != nil {
		return none, err
	}
	text, err := canonicalRows(rows)
	if err != nil {
		return none, err
	}
	res := harness.StepResult{
		Result:  `{"filas":` + text + `}`,
		Sources: []anuencia.Source{{Type: KindView, ID: cfg.SourceID, Ref: cfg.Source + "." + cfg.SourceID, Hash: audit.Digest(text)}},
	}
	switch {
	case more:
		res.Warnings = []anuencia.Warning{{Code: "partial_result", Severity: anuencia.SeverityWarning}}
	case len(rows) == 0:
		res.Warnings = []anuencia.Warning{{Code: "no_results", Severity: anuencia.SeverityInfo}}
	}
	return res, nil
}
