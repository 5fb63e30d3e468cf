package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/anuencia-harness/anuencia/migrations"
)

// SchemaVersion is the schema that this binary was made for: the number of the
// last migration.
const SchemaVersion = 1

// migrationsTable is where goose keeps what was applied.
const migrationsTable = "anuencia_migrations"

// ErrSchema says that this binary and the schema of the database do not fit.
// Its text says what to do.
var ErrSchema = errors.New("the database schema does not fit this binary")

// Migrate brings the schema to this binary's version; it never goes back. On
// PostgreSQL o.DatabaseURL is the owner's, and of two who migrate at once one
// waits for the other.
func Migrate(ctx context.Context, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := connect(ctx, o)
	if err != nil {
		return reachable("open the database", err)
	}
	return errors.Join(s.migrate(ctx), s.Close())
}

func (s *Store) migrate(ctx context.Context) error {
	dialect, folder := goose.DialectPostgres, "postgres"
	opts := []goose.ProviderOption{goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger())}
	if s.sqlite {
		dialect, folder = goose.DialectSQLite3, "sqlite"
	} else {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return fmt.Errorf("migration lock: %w", err)
		}
		opts = append(opts, goose.WithSessionLocker(locker))
	}
	files, err := fs.Sub(migrations.FS, folder)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(dialect, s.write, files, opts...)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err = p.Up(ctx); err != nil {
		// On SQLite there is no lock: another process may have done the work.
		if s.sqlite && s.checkSchema(ctx) == nil {
			return nil
		}
		return reachable("migrate", err)
	}
	return nil
}

// checkSchema holds the binary against the schema: a binary runs on its own
// schema and on the next one, if that one still serves it (contracts section 8).
func (s *Store) checkSchema(ctx context.Context) error {
	var version, oldest int
	err := s.write.QueryRowContext(ctx, "select version, oldest_binary from schema_info").Scan(&version, &oldest)
	if err != nil {
		if s.noTable(ctx) {
			return fmt.Errorf("%w: the database has no schema yet; run `anuencia migrate` (or `serve --migrate`)", ErrSchema)
		}
		return reachable("read the schema's version", err)
	}
	switch {
	case version < SchemaVersion:
		return fmt.Errorf("%w: it is at version %d and this binary needs %d; run `anuencia migrate` (or `serve --migrate`)",
			ErrSchema, version, SchemaVersion)
	case version > SchemaVersion+1, oldest > SchemaVersion:
		return fmt.Errorf("%w: it is at version %d and serves binaries from schema version %d on, this binary is of %d; install a newer binary",
			ErrSchema, version, oldest, SchemaVersion)
	}
	return nil
}

// noTable asks the database's own catalog, so that a database that cannot be
// read is not taken for an empty one.
func (s *Store) noTable(ctx context.Context) bool {
	query := "select to_regclass('schema_info') is null"
	if s.sqlite {
		query = "select not exists (select 1 from sqlite_master where name = 'schema_info')"
	}
	var missing bool
	return s.write.QueryRowContext(ctx, query).Scan(&missing) == nil && missing
}

// GrantTo gives a run-time role of PostgreSQL what it needs and no more:
// audit_events and approval_decisions can be added to and read, executions and
// approvals not deleted. o.DatabaseURL is the owner's. The queue's own tables are
// not the store's.
func GrantTo(ctx context.Context, o Options, role string) error {
	if o.SQLitePath != "" {
		return errors.New("grant: SQLite has no roles")
	}
	if err := o.check(); err != nil {
		return err
	}
	s, err := connect(ctx, o)
	if err != nil {
		return reachable("open the database", err)
	}
	return errors.Join(s.grant(ctx, role), s.Close())
}

func (s *Store) grant(ctx context.Context, role string) error {
	var schema string
	if err := s.write.QueryRowContext(ctx, "select current_schema()").Scan(&schema); err != nil {
		return reachable("current schema", err)
	}
	to := pgx.Identifier{role}.Sanitize()
	tables := []struct{ rights, names string }{
		{"select", "schema_info"},
		{"select, insert", "audit_events, approval_decisions, approval_roles, principals, people, artifacts"},
		{"select, insert, update", "executions, approvals, tokens, holds"},
		{"select, insert, delete", "idempotency_keys"},
	}
	all := []string{"grant usage on schema " + pgx.Identifier{schema}.Sanitize() + " to " + to}
	for _, t := range tables {
		all = append(all, "revoke all on "+t.names+" from "+to, "grant "+t.rights+" on "+t.names+" to "+to)
	}
	// One string of several statements is one transaction.
	if _, err := s.pool.Exec(ctx, strings.Join(all, "; "), pgx.QueryExecModeSimpleProtocol); err != nil {
		return reachable("grant", err)
	}
	return nil
}
