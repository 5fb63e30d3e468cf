package sqltool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// seedLock is the advisory lock under which replicas seed one after another.
const seedLock = 7_306_061_202

// Seed makes the demo institution in s from the *.sql files of files, in the
// order of their names, when it is not there yet, all in one transaction; a
// second call changes nothing. On PostgreSQL the tables go into schema, which
// is made if it is missing. A statement ends at a semicolon at the end of a
// line. The role needs the right to create.
func Seed(ctx context.Context, s *Source, schema string, files fs.FS) error {
	db, err := s.writer()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return reachable("seed: begin", err)
	}
	err = s.seed(ctx, tx, schema, files)
	if err != nil {
		return reachable("seed", errors.Join(err, ended(tx.Rollback())))
	}
	if err := tx.Commit(); err != nil {
		return reachable("seed: commit", err)
	}
	return nil
}

func (s *Source) seed(ctx context.Context, tx *sql.Tx, schema string, files fs.FS) error {
	there, err := s.claimSeed(ctx, tx, schema)
	if err != nil || there {
		return err
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		for i, st := range statements(string(text)) {
			if _, err := tx.ExecContext(ctx, st); err != nil {
				return fmt.Errorf("%s, statement %d: %w", name, i+1, err)
			}
		}
	}
	return nil
}

// claimSeed makes sure that nobody else seeds now, and says whether the
// institution is there: its ledger is the sign.
func (s *Source) claimSeed(ctx context.Context, tx *sql.Tx, schema string) (bool, error) {
	var there bool
	if s.d == sqliteDialect {
		err := tx.QueryRowContext(ctx, "select exists (select 1 from sqlite_master where name = 'anuencia_effects')").Scan(&there)
		if err != nil {
			return false, fmt.Errorf("look: %w", err)
		}
		return there, nil
	}
	if _, err := tx.ExecContext(ctx, "select pg_advisory_xact_lock($1)", int64(seedLock)); err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	name := pgx.Identifier{schema}.Sanitize()
	err := tx.QueryRowContext(ctx, "select to_regclass($1) is not null", name+".anuencia_effects").Scan(&there)
	if err != nil || there {
		return there, err
	}
	for _, st := range []string{"create schema if not exists " + name, "set local search_path to " + name} {
		if _, err := tx.ExecContext(ctx, st); err != nil {
			return false, fmt.Errorf("schema: %w", err)
		}
	}
	return false, nil
}

// statements splits an SQL text at each semicolon that ends a line.
func statements(text string) []string {
	var out []string
	var one strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		one.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			out = append(out, strings.TrimSpace(one.String()))
			one.Reset()
		}
	}
	if rest := strings.TrimSpace(one.String()); rest != "" {
		out = append(out, rest)
	}
	return out
}
