package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// statements are the SQL of the write path. The prepared ones are SQLite's;
// pgx keeps its own.
type statements struct {
	text            texts
	createExecution *prepared
	setExecution    *prepared
	createEvent     *prepared
}

type texts struct {
	createExecution, setExecution, createEvent, createEvents string
	createApproval, setApproval, createRole, createDecision  string
	createArtifact, bindKey, putToken, putHold               string
}

type prepared struct {
	text string
	stmt *sql.Stmt
}

func (s *Store) prepare(ctx context.Context) error {
	s.hot.text = s.buildTexts()
	if !s.sqlite {
		return nil
	}
	for at, text := range map[**prepared]string{
		&s.hot.createExecution: s.hot.text.createExecution,
		&s.hot.setExecution:    s.hot.text.setExecution,
		&s.hot.createEvent:     s.hot.text.createEvent,
	} {
		stmt, err := s.write.PrepareContext(ctx, text)
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		*at = &prepared{text: text, stmt: stmt}
	}
	return nil
}

func (h statements) close() error {
	var err error
	for _, p := range []*prepared{h.createExecution, h.setExecution, h.createEvent} {
		if p != nil {
			err = errors.Join(err, p.stmt.Close())
		}
	}
	return err
}

func (s *Store) buildTexts() texts {
	mark := s.placeholder
	sets := make([]string, 0, len(livingColumns()))
	for i, c := range livingColumns() {
		sets = append(sets, c+" = "+mark(i+3))
	}
	artifact := []string{"id", "execution_id", "filename", "media_type", "content", "sha256", "created_at"}
	key := []string{"principal_id", "key", "digest", "execution_id", "created_at"}
	token := []string{"id", "principal_id", "principal", "hash", "created_at", "created_by", "expires_at", "revoked_at"}
	decision := decisionColumns()
	return texts{
		createExecution: s.insert("executions", append(bornColumns(), livingColumns()...)),
		setExecution: "update executions set " + strings.Join(sets, ", ") +
			" where id = " + mark(1) + " and version = " + mark(2),
		createEvent:    s.insert("audit_events", eventColumns()),
		createEvents:   "insert into audit_events (" + strings.Join(eventColumns(), ", ") + ") " + eventsSelect(1, ""),
		createApproval: s.insert("approvals", approvalColumns()),
		setApproval: "update approvals set version = " + mark(3) + ", status = " + mark(4) + ", closed_at = " + mark(5) +
			" where id = " + mark(1) + " and version = " + mark(2),
		createRole: s.insert("approval_roles", []string{"role", "approval_id"}),
		createDecision: s.insertUnless("approval_decisions", decision,
			"exists (select 1 from approval_decisions where id = "+s.cast(1, "uuid")+")"),
		createArtifact: s.insert("artifacts", artifact),
		bindKey:        s.insert("idempotency_keys", key),
		putHold: s.insert("holds", holdColumns()) +
			" on conflict (id) do update set lifted_by = excluded.lifted_by, lifted_by_name = excluded.lifted_by_name," +
			" lift_reason = excluded.lift_reason, lifted_at = excluded.lifted_at where holds.lifted_at is null",
		putToken: s.insert("tokens", token) +
			" on conflict (id) do update set revoked_at = coalesce(tokens.revoked_at, excluded.revoked_at)",
	}
}

func (s *Store) placeholder(n int) string {
	if s.sqlite {
		return "?" + strconv.Itoa(n)
	}
	return "$" + strconv.Itoa(n)
}

// cast names the type of an argument where PostgreSQL cannot infer it.
func (s *Store) cast(n int, as string) string {
	if s.sqlite {
		return s.placeholder(n)
	}
	return s.placeholder(n) + "::" + as
}

func (s *Store) insert(table string, columns []string) string {
	marks := make([]string, len(columns))
	for i := range columns {
		marks[i] = s.placeholder(i + 1)
	}
	return "insert into " + table + " (" + strings.Join(columns, ", ") + ") values (" + strings.Join(marks, ", ") + ")"
}

// insertUnless inserts one decision unless the condition holds.
func (s *Store) insertUnless(table string, columns []string, condition string) string {
	types := map[string]string{
		"id": "uuid", "approval_id": "uuid", "position": "integer", "approver": "uuid", "principal_id": "uuid",
		"decided_at": "timestamptz",
	}
	marks := make([]string, len(columns))
	for i, c := range columns {
		as, ok := types[c]
		if !ok {
			as = "text"
		}
		marks[i] = s.cast(i+1, as)
	}
	return "insert into " + table + " (" + strings.Join(columns, ", ") + ") select " + strings.Join(marks, ", ") +
		" where not " + condition
}

// hit runs a prepared statement inside the transaction of SQLite.
func (s *Store) hit(ctx context.Context, to gorm.ConnPool, p *prepared, rows int64, args ...any) (err error) {
	tx, ok := to.(*sql.Tx)
	if !ok {
		return errNoTx
	}
	s.statement(ctx, p.text)
	stmt := tx.StmtContext(ctx, p.stmt)
	defer func() { err = errors.Join(err, stmt.Close()) }()
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return touched(res, rows)
}

// insertEvents writes the rows of one chain: one statement on PostgreSQL, one
// prepared statement each on SQLite.
func (s *Store) insertEvents(ctx context.Context, to gorm.ConnPool, rows []anuencia.SealedEvent) error {
	if !s.sqlite {
		if err := s.exec(ctx, to, int64(len(rows)), s.hot.text.createEvents, eventArrays(rows)...); err != nil {
			return wrap("insert events", err)
		}
		return nil
	}
	for _, e := range rows {
		if err := s.hit(ctx, to, s.hot.createEvent, 1, s.eventArgs(e)...); err != nil {
			return wrap("insert event", err)
		}
	}
	return nil
}

// oneStatement writes an execution, its events and the key bound with it in one
// statement of PostgreSQL: a lost compare-and-set leaves the first part empty, so
// that nothing at all is written (core-data.md, Do 1).
func (s *Store) oneStatement(ctx context.Context, to gorm.ConnPool, o *executionOp, args []any) error {
	text := s.hot.text.createExecution
	if o.was > 0 {
		text = s.hot.text.setExecution
	}
	var b strings.Builder
	b.WriteString("with e as (" + text + " returning id)")
	if o.key != nil {
		b.WriteString(", k as (" + shift(s.hot.text.bindKey, len(args)) + ")")
		args = append(args, s.keyArgs(*o.key)...)
	}
	b.WriteString(" insert into audit_events (" + strings.Join(eventColumns(), ", ") + ") " + eventsSelect(len(args)+1, "e, "))
	args = append(args, eventArrays(o.events)...)
	if err := s.exec(ctx, to, int64(len(o.events)), b.String(), args...); err != nil {
		return wrap("write execution", err)
	}
	return nil
}

// shift renumbers the placeholders of a text.
func shift(text string, by int) string {
	parts := strings.Split(text, "$")
	for i := 1; i < len(parts); i++ {
		digits := len(parts[i]) - len(strings.TrimLeft(parts[i], "0123456789"))
		n, err := strconv.Atoi(parts[i][:digits])
		if err != nil {
			continue // no placeholder; our own texts have none such
		}
		parts[i] = strconv.Itoa(n+by) + parts[i][digits:]
	}
	return strings.Join(parts, "$")
}

// eventsSelect reads the arrays of eventArrays, from the placeholder given on.
// Ids travel as text, because pgx has no plan from []string to uuid[].
func eventsSelect(from int, join string) string {
	var out, arrays, names []string
	for i, c := range eventColumns() {
		name := "u.c" + strconv.Itoa(i)
		names = append(names, "c"+strconv.Itoa(i))
		as := "text"
		switch c {
		case "id", "stream_id":
			name += "::uuid"
		case "execution_id", "actor_id", "principal_id":
			name = "nullif(" + name + ", '')::uuid"
		case "seq":
			as = "bigint"
		case "occurred_at":
			as = "timestamptz"
		case "salt", "payload_digest", "prev_hash", "hash":
			as = "bytea"
		}
		out = append(out, name)
		arrays = append(arrays, "$"+strconv.Itoa(from+i)+"::"+as+"[]")
	}
	return "select " + strings.Join(out, ", ") + " from " + join + "unnest(" + strings.Join(arrays, ", ") + ") as u(" +
		strings.Join(names, ", ") + ")"
}

// eventArrays gives one array for each column.
func eventArrays(rows []anuencia.SealedEvent) []any {
	n := len(rows)
	texts := make([][]string, 11)
	for i := range texts {
		texts[i] = make([]string, n)
	}
	bytes := make([][][]byte, 4)
	for i := range bytes {
		bytes[i] = make([][]byte, n)
	}
	seq := make([]int64, n)
	at := make([]time.Time, n)
	for i, e := range rows {
		for j, v := range []string{
			idText(e.ID), idText(e.StreamID), idText(e.ExecutionID), string(e.Type), idText(e.ActorID), idText(e.PrincipalID),
			string(e.Channel), e.SubjectRef, string(e.ErrorCode), e.PolicyRevision, e.TraceID,
		} {
			texts[j][i] = v
		}
		for j, v := range [][]byte{e.Salt, e.PayloadDigest[:], e.PrevHash[:], e.Hash[:]} {
			bytes[j][i] = v
		}
		seq[i], at[i] = e.Seq, e.OccurredAt.UTC()
	}
	payload := make([]string, n)
	for i, e := range rows {
		payload[i] = e.PayloadText
	}
	return []any{
		texts[0], texts[1], texts[2], seq, texts[3], at, texts[4], texts[5], texts[6], texts[7], texts[8], texts[9], texts[10],
		payload, bytes[0], bytes[1], bytes[2], bytes[3],
	}
}

// mergeKey puts the only key of a unit into the statement that creates its
// execution.
func mergeKey(ops []op) []op {
	if len(ops) != 2 {
		return ops
	}
	e, ok1 := ops[0].(*executionOp)
	k, ok2 := ops[1].(*keyOp)
	if !ok1 || !ok2 || e.was > 0 || k.k.ExecutionID != e.e.ID {
		return ops
	}
	return []op{&executionOp{e: e.e, was: 0, events: e.events, key: &k.k}}
}
