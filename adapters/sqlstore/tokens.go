package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

type tokenRow struct {
	ID          uid     `gorm:"column:id"`
	PrincipalID uid     `gorm:"column:principal_id"`
	Principal   string  `gorm:"column:principal"`
	Hash        digest  `gorm:"column:hash"`
	CreatedAt   instant `gorm:"column:created_at"`
	CreatedBy   string  `gorm:"column:created_by"`
	ExpiresAt   instant `gorm:"column:expires_at"`
	RevokedAt   instant `gorm:"column:revoked_at"`
}

func tokenColumns() []string {
	return []string{"id", "principal_id", "principal", "hash", "created_at", "created_by", "expires_at", "revoked_at"}
}

func (r tokenRow) token() (anuencia.Token, error) {
	p, err := decode[principalJSON](r.Principal)
	if err != nil {
		return anuencia.Token{}, err
	}
	return anuencia.Token{
		ID: anuencia.TokenID(r.ID),
		Principal: anuencia.Principal{
			ID: anuencia.PrincipalID(r.PrincipalID), Name: p.Name, TokenID: anuencia.TokenID(r.ID),
			Person: anuencia.Handle(p.Person), Scopes: p.Scopes, Channels: p.Channels, ActFor: p.ActFor, ExpiresAt: r.ExpiresAt.at,
		},
		Hash: r.Hash, CreatedAt: r.CreatedAt.at, CreatedBy: r.CreatedBy, RevokedAt: r.RevokedAt.at,
	}, nil
}

func (s *Store) tokenBy(ctx context.Context, condition string, arg any) (anuencia.Token, error) {
	row, err := one[tokenRow](s.reader(ctx).Table("tokens").Select(tokenColumns()).Where(condition, arg))
	if err != nil {
		return anuencia.Token{}, reachable("read token", err)
	}
	return row.token()
}

// TokenByHash implements harness.TokenStore.
func (s *Store) TokenByHash(ctx context.Context, hash [32]byte) (anuencia.Token, bool, error) {
	t, err := s.tokenBy(ctx, "hash = ?", hash[:])
	if isNotFound(err) {
		return anuencia.Token{}, false, nil
	}
	return t, err == nil, err
}

// Token implements harness.TokenStore.
func (s *Store) Token(ctx context.Context, id anuencia.TokenID) (anuencia.Token, error) {
	return s.tokenBy(ctx, "id = ?", idArg(id))
}

// Tokens implements harness.TokenStore.
func (s *Store) Tokens(ctx context.Context, p harness.Page) ([]anuencia.Token, error) {
	rows, err := many[tokenRow](page(s.reader(ctx).Table("tokens").Select(tokenColumns()), p))
	if err != nil {
		return nil, reachable("list tokens", err)
	}
	return convert(rows, tokenRow.token)
}

// EnsurePrincipal implements harness.TokenStore.
func (s *Store) EnsurePrincipal(ctx context.Context, name string) (anuencia.PrincipalID, error) {
	id, err := s.ensure(ctx, "principals", "name", name, s.o.NewID())
	return anuencia.PrincipalID(id), reachable("ensure principal", err)
}

// EnsurePerson implements harness.TokenStore. The id is random and says nothing
// of when the person was first seen (contracts section 9).
func (s *Store) EnsurePerson(ctx context.Context, institutionID string) (anuencia.PersonID, error) {
	fresh, err := uuid.NewRandom()
	if err != nil {
		return anuencia.PersonID{}, fmt.Errorf("new person id: %w", err)
	}
	id, err := s.ensure(ctx, "people", "institution_id", institutionID, fresh)
	return anuencia.PersonID(id), reachable("ensure person", err)
}

// ensure reads first, because almost always the row is there; of two who insert
// at once one wins and both read its id.
func (s *Store) ensure(ctx context.Context, table, column, value string, fresh uuid.UUID) (uid, error) {
	if value == "" {
		return uid{}, errors.New("an empty name")
	}
	type row struct {
		ID uid `gorm:"column:id"`
	}
	find := func() (row, error) {
		return one[row](s.gwrite.WithContext(ctx).Table(table).Select("id").Where(column+" = ?", value))
	}
	if found, err := one[row](s.reader(ctx).Table(table).Select("id").Where(column+" = ?", value)); !isNotFound(err) {
		return found.ID, err
	}
	err := s.gwrite.WithContext(ctx).Exec(
		"insert into "+table+" (id, "+column+", created_at) values (?, ?, ?) on conflict ("+column+") do nothing",
		fresh.String(), value, s.timeArg(anuencia.Instant(s.o.Now()))).Error
	if err != nil {
		return uid{}, fmt.Errorf("insert: %w", err)
	}
	found, err := find()
	return found.ID, err
}
