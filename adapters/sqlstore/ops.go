package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// op is one buffered write. rank orders the writes of a unit: what others refer
// to is created first, and an approval is set before its execution, which is the
// order in which every unit takes its locks (core-data.md, Do 4).
type op interface {
	rank() int
	apply(ctx context.Context, s *Store, to gorm.ConnPool) error
	// mark gives an event that this write brings, if it brings one.
	mark() (mark, bool)
}

type executionOp struct {
	e      anuencia.Execution
	was    int64 // 0: insert
	events []anuencia.SealedEvent
	key    *harness.IdempotencyKey // bound in the same statement, PostgreSQL only
}

func (o *executionOp) rank() int {
	if o.was == 0 {
		return 0
	}
	return 2
}

func (o *executionOp) mark() (mark, bool) { return markOf(o.events) }

func markOf(rows []anuencia.SealedEvent) (mark, bool) {
	if len(rows) == 0 {
		return mark{}, false
	}
	return mark{id: rows[0].ID, hash: rows[0].Hash}, true
}

func (o *executionOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	living, err := s.livingArgs(o.e)
	if err != nil {
		return err
	}
	args := append(s.bornArgs(o.e), living...)
	if o.was > 0 {
		args = append([]any{idArg(o.e.ID), o.was}, living...)
	}
	if !s.sqlite {
		return s.oneStatement(ctx, to, o, args)
	}
	st := s.hot.createExecution
	if o.was > 0 {
		st = s.hot.setExecution
	}
	if err := s.hit(ctx, to, st, 1, args...); err != nil {
		return wrap("write execution", err)
	}
	return s.insertEvents(ctx, to, o.events)
}

type approvalOp struct {
	a    anuencia.Approval
	was  int64 // 0: insert
	said int   // decisions that are stored already
}

func (o *approvalOp) rank() int {
	if o.was == 0 {
		return 3
	}
	return 1
}

func (*approvalOp) mark() (mark, bool) { return mark{}, false }

func (o *approvalOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	if o.was > 0 {
		err := s.exec(ctx, to, 1, s.hot.text.setApproval,
			idArg(o.a.ID), o.was, o.a.Version, string(o.a.Status), s.timeArg(o.a.ClosedAt))
		if err != nil {
			return wrap("set approval", err)
		}
		return o.decisions(ctx, s, to)
	}
	args, err := s.approvalArgs(o.a)
	if err != nil {
		return err
	}
	if err := s.exec(ctx, to, 1, s.hot.text.createApproval, args...); err != nil {
		return wrap("create approval", err)
	}
	seen := map[string]bool{}
	for _, st := range o.a.Requirement.Stages {
		for _, role := range st.Roles {
			if seen[role] {
				continue
			}
			seen[role] = true
			if err := s.exec(ctx, to, 1, s.hot.text.createRole, role, idArg(o.a.ID)); err != nil {
				return wrap("create approval role", err)
			}
		}
	}
	return o.decisions(ctx, s, to)
}

// decisions inserts those that the database does not have. Without a lock in
// this unit it does not know which: those found by id are passed over.
func (o *approvalOp) decisions(ctx context.Context, s *Store, to gorm.ConnPool) error {
	for i := o.said; i < len(o.a.Decisions); i++ {
		args, err := s.decisionArgs(o.a.ID, i, o.a.Decisions[i])
		if err != nil {
			return err
		}
		if err := s.exec(ctx, to, anyRows, s.hot.text.createDecision, args...); err != nil {
			return wrap("create decision", err)
		}
	}
	return nil
}

type artifactOp struct{ a anuencia.Artifact }

func (*artifactOp) rank() int          { return 4 }
func (*artifactOp) mark() (mark, bool) { return mark{}, false }

func (o *artifactOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	a := o.a
	content := a.Content
	if content == nil {
		content = []byte{}
	}
	err := s.exec(ctx, to, 1, s.hot.text.createArtifact,
		idArg(a.ID), idArg(a.ExecutionID), a.Filename, a.MediaType, content, a.SHA256[:], s.timeArg(a.CreatedAt))
	if err != nil {
		return wrap("create artifact", err)
	}
	return nil
}

type keyOp struct{ k harness.IdempotencyKey }

func (*keyOp) rank() int          { return 5 }
func (*keyOp) mark() (mark, bool) { return mark{}, false }

func (o *keyOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	if err := s.exec(ctx, to, 1, s.hot.text.bindKey, s.keyArgs(o.k)...); err != nil {
		return wrap("bind key", err)
	}
	return nil
}

func (s *Store) keyArgs(k harness.IdempotencyKey) []any {
	return []any{uuid.UUID(k.Principal).String(), k.Key, k.Digest[:], idArg(k.ExecutionID), s.timeArg(k.CreatedAt)}
}

type tokenOp struct{ t anuencia.Token }

func (*tokenOp) rank() int          { return 6 }
func (*tokenOp) mark() (mark, bool) { return mark{}, false }

// apply inserts a token, or sets the revocation of one that is there. A
// revocation never goes back.
func (o *tokenOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	t := o.t
	text, err := encode(principalJSON{
		Name: t.Principal.Name, Person: handleJSON(t.Principal.Person), Scopes: t.Principal.Scopes,
		Channels: t.Principal.Channels, ActFor: t.Principal.ActFor,
	})
	if err != nil {
		return err
	}
	err = s.exec(ctx, to, anyRows, s.hot.text.putToken,
		idArg(t.ID), idArg(t.Principal.ID), text, t.Hash[:], s.timeArg(t.CreatedAt), t.CreatedBy,
		s.timeArg(t.Principal.ExpiresAt), s.timeArg(t.RevokedAt))
	if err != nil {
		return wrap("put token", err)
	}
	return nil
}

type recordOp struct{ events []anuencia.SealedEvent }

func (*recordOp) rank() int            { return 7 }
func (o *recordOp) mark() (mark, bool) { return markOf(o.events) }

func (o *recordOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	return s.insertEvents(ctx, to, o.events)
}

// anyRows accepts whatever number of rows a statement touched.
const anyRows = -1

// exec runs one statement and compares the rows it touched: another number is a
// lost compare-and-set.
func (s *Store) exec(ctx context.Context, to gorm.ConnPool, rows int64, text string, args ...any) error {
	if s.sqlite { // on PostgreSQL the tracer tells
		s.statement(ctx, text)
	}
	res, err := to.ExecContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return touched(res, rows)
}

func touched(res interface{ RowsAffected() (int64, error) }, rows int64) error {
	n, err := res.RowsAffected()
	switch {
	case err != nil:
		return fmt.Errorf("rows affected: %w", err)
	case rows != anyRows && n != rows:
		return errStale
	}
	return nil
}

var errNoTx = errors.New("no transaction")
