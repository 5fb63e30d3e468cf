package sqltool

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const (
	maxBefore = 200 // rows that an approver could still look at
)

// Action is sql_action: one statement that changes the institution's database,
// at most once for each (execution, step). The result is
// {"antes": [...], "despues": [...]}. It keeps a ledger.
type Action struct {
	sources *Sources
	now     func() time.Time
}

var _ agent.Ledger = (*Action)(nil)

// NewAction makes the tool; now stamps the ledger's rows.
func NewAction(s *Sources, now func() time.Time) *Action { return &Action{sources: s, now: now} }

type actionConfig struct {
	Source    string `json:"source"`
	SourceID  string `json:"source_id"`
	Before    string `json:"before"`
	Statement string `json:"statement"`
	After     string `json:"after"`
	Rows      int64  `json:"rows"` // that the statement must change; 0: one
}

// action is one call with its settings read.
type action struct {
	agent.Call
	cfg  actionConfig
	src  *Source
	args map[string]any
}

func (a *Action) open(c agent.Call) (action, error) {
	out := action{Call: c}
	if err := json.Unmarshal(c.Tool.Config, &out.cfg); err != nil {
		return out, fmt.Errorf("configuration of %s: %w", c.Tool.Name, err)
	}
	if out.cfg.Rows == 0 {
		out.cfg.Rows = 1
	}
	var err error
	if out.src, err = a.sources.get(out.cfg.Source); err != nil {
		return out, err
	}
	out.args, err = arguments(c.Arguments)
	return out, err
}

// Before implements agent.Tool: the rows that the query before gives now. None
// is VALIDATION_FAILED/not_found: what is to be changed does not exist.
func (a *Action) Before(ctx context.Context, c agent.Call) (string, error) {
	act, err := a.open(c)
	if err != nil {
		return "", err
	}
	var rows []map[string]any
	err = act.src.readOnly(ctx, func(q querier) error {
		rows, err = act.before(ctx, q)
		return err
	})
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", anuencia.NotFound().WithCause(fmt.Errorf("before of %s gives no row", c.Tool.Name))
	}
	return canonicalRows(rows)
}

func (act action) before(ctx context.Context, q querier) ([]map[string]any, error) {
	rows, more, err := read(ctx, q, act.src.d, act.cfg.Before, act.args, maxBefore)
	if err == nil && more {
		err = fmt.Errorf("more than %d rows", maxBefore)
	}
	if err != nil {
		return nil, fmt.Errorf("before: %w", err)
	}
	return rows, nil
}

// Run implements agent.Tool: ledger row, check of the state before, statement,
// state after and stored result in one transaction. A key that is in the ledger
// gives the stored result. It tries again by itself when another writer was
// first or the connection was lost: the ledger makes that harmless.
func (a *Action) Run(ctx context.Context, c agent.Call) (harness.StepResult, error) {
	act, err := a.open(c)
	if err != nil {
		return harness.StepResult{}, err
	}
	var result string
	err = repeat(ctx, func() error {
		result, err = a.once(ctx, act)
		return err
	})
	if err != nil {
		return harness.StepResult{}, reachable("change "+act.cfg.Source, err)
	}
	return act.result(result), nil
}

func (a *Action) once(ctx context.Context, act action) (result string, err error) {
	tx, err := act.src.begin(ctx)
	if err != nil {
		return "", err
	}
	result, err = a.inside(ctx, tx, act)
	if err != nil {
		return "", errors.Join(err, ended(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return "", fmt.Errorf("commit: %w", err)
	}
	return result, nil
}

// begin opens a transaction in which what was read stays as it was read to the
// end, or the commit fails.
func (s *Source) begin(ctx context.Context) (*sql.Tx, error) {
	db, err := s.writer()
	if err != nil {
		return nil, err
	}
	var opts *sql.TxOptions // SQLite: immediate, by the handle's own setting
	if s.d == postgres {
		opts = &sql.TxOptions{Isolation: sql.LevelSerializable}
	}
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	return tx, nil
}

func (a *Action) inside(ctx context.Context, tx *sql.Tx, act action) (string, error) {
	fresh, err := act.claim(ctx, tx, a.now())
	if err != nil {
		return "", err
	}
	if !fresh {
		return act.stored(ctx, tx)
	}
	rows, err := act.before(ctx, tx)
	if err != nil {
		return "", err
	}
	before, err := canonicalRows(rows)
	if err != nil {
		return "", err
	}
	if before != act.Before {
		return "", fmt.Errorf("before of %s: %w", act.Tool.Name, harness.ErrSuperseded)
	}
	if err := act.change(ctx, tx); err != nil {
		return "", err
	}
	rows, _, err = read(ctx, tx, act.src.d, act.cfg.After, act.args, maxBefore)
	if err != nil {
		return "", fmt.Errorf("after: %w", err)
	}
	after, err := canonicalRows(rows)
	if err != nil {
		return "", err
	}
	result := `{"antes":` + before + `,"despues":` + after + `}`
	p := act.src.d.placeholder
	_, err = tx.ExecContext(ctx, "update anuencia_effects set result = "+p(1)+" where execution_id = "+p(2)+" and step = "+p(3), //nolint:gosec // placeholders only
		result, act.ExecutionID.String(), act.Step)
	if err != nil {
		return "", fmt.Errorf("ledger: %w", err)
	}
	return result, nil
}

// claim inserts the ledger's row and says whether it is new. It waits for
// another transaction that has inserted the same row and not yet ended.
func (act action) claim(ctx context.Context, tx *sql.Tx, at time.Time) (bool, error) {
	p := act.src.d.placeholder
	res, err := tx.ExecContext(ctx, "insert into anuencia_effects (execution_id, step, result, at) values ("+ //nolint:gosec // placeholders only
		p(1)+", "+p(2)+", '', "+p(3)+") on conflict do nothing",
		act.ExecutionID.String(), act.Step, at.UTC().Format(time.RFC3339Nano))
	if err != nil {
		return false, fmt.Errorf("ledger: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("ledger: %w", err)
	}
	return n == 1, nil
}

func (act action) stored(ctx context.Context, tx *sql.Tx) (string, error) {
	p := act.src.d.placeholder
	var result string
	err := tx.QueryRowContext(ctx, "select result from anuencia_effects where execution_id = "+p(1)+" and step = "+p(2),
		act.ExecutionID.String(), act.Step).Scan(&result)
	if err != nil {
		return "", fmt.Errorf("ledger: %w", err)
	}
	return result, nil
}

// change runs the statement; another number of rows than declared is refused,
// and the transaction with it.
func (act action) change(ctx context.Context, tx *sql.Tx) error {
	st, err := prepare(act.cfg.Statement, act.src.d)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	bound, err := st.bind(act.args)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	res, err := tx.ExecContext(ctx, st.text, bound...)
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	if n != act.cfg.Rows {
		return fmt.Errorf("statement of %s changed %d rows instead of %d", act.Tool.Name, n, act.cfg.Rows)
	}
	return nil
}

// Look implements agent.Ledger. It claims the row and rolls back: so it waits
// for a transaction of a run that has lost its caller in the middle of the
// commit, which a plain read would not see.
func (a *Action) Look(ctx context.Context, c agent.Call) (harness.StepResult, bool, error) {
	act, err := a.open(c)
	if err != nil {
		return harness.StepResult{}, false, err
	}
	var result string
	var happened bool
	err = repeat(ctx, func() error {
		result, happened, err = a.look(ctx, act)
		return err
	})
	if err != nil || !happened {
		return harness.StepResult{}, false, reachable("look into "+act.cfg.Source, err)
	}
	return act.result(result), true, nil
}

func (a *Action) look(ctx context.Context, act action) (result string, happened bool, err error) {
	tx, err := act.src.begin(ctx)
	if err != nil {
		return "", false, err
	}
	fresh, err := act.claim(ctx, tx, a.now())
	if err == nil && !fresh {
		result, err = act.stored(ctx, tx)
	}
	if err = errors.Join(err, ended(tx.Rollback())); err != nil {
		return "", false, err
	}
	return result, !fresh, nil
}

func (act action) result(text string) harness.StepResult {
	return harness.StepResult{
		Result:  text,
		Sources: []anuencia.Source{{Type: KindAction, ID: act.cfg.SourceID, Ref: act.cfg.Source + "." + act.cfg.SourceID, Hash: audit.Digest(text)}},
	}
}
