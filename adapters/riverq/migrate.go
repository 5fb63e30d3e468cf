package riverq

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// migrationLock is the advisory lock under which the queue's tables are made;
// the number means nothing.
const migrationLock = 7_283_116_402_911

// Migrate makes the queue's own tables, with the rights of the handle: on
// PostgreSQL the owner's. Options.Handler is not used. Of two who migrate at once
// one waits for the other.
func Migrate(ctx context.Context, o Options) error {
	if err := o.defaults(); err != nil {
		return err
	}
	cfg := &rivermigrate.Config{Logger: o.Log}
	if o.Pool == nil {
		m, err := rivermigrate.New(riversqlite.New(o.DB), cfg)
		if err != nil {
			return fmt.Errorf("queue migrations: %w", err)
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			// There is no lock: another process may have done the work.
			if res, again := m.Validate(ctx, nil); again == nil && res.OK {
				return nil
			}
			return fmt.Errorf("queue migrations: %w", err)
		}
		return nil
	}
	return migratePostgres(ctx, o, cfg)
}

func migratePostgres(ctx context.Context, o Options, cfg *rivermigrate.Config) (err error) {
	conn, err := o.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("queue migrations: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(migrationLock)); err != nil {
		return fmt.Errorf("queue migrations: lock: %w", err)
	}
	defer func() {
		_, unlock := conn.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)", int64(migrationLock))
		err = errors.Join(err, wrapped("queue migrations: unlock", unlock))
	}()
	m, err := rivermigrate.New(riverpgxv5.New(o.Pool), cfg)
	if err != nil {
		return fmt.Errorf("queue migrations: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("queue migrations: %w", err)
	}
	return nil
}

// GrantTo gives a run-time role of PostgreSQL the use of the queue's tables.
// The pool is the owner's.
func GrantTo(ctx context.Context, o Options, role string) error {
	if o.Pool == nil {
		return errors.New("grant: SQLite has no roles")
	}
	rows, err := o.Pool.Query(ctx, `select n.nspname, c.relname, c.relkind = 'S' from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = current_schema() and c.relname like 'river\_%' and c.relkind in ('r', 'p', 'S') order by 2`)
	if err != nil {
		return fmt.Errorf("list the queue's tables: %w", err)
	}
	to := pgx.Identifier{role}.Sanitize()
	var all []string
	var schema, name string
	var sequence bool
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &sequence}, func() error {
		rights := "select, insert, update, delete on "
		if sequence {
			rights = "usage, select on sequence "
		}
		if name == "river_migration" {
			rights = "select on "
		}
		all = append(all, "grant "+rights+pgx.Identifier{schema, name}.Sanitize()+" to "+to)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the queue's tables: %w", err)
	}
	if len(all) == 0 {
		return errors.New("grant: the queue has no tables yet; run `anuencia migrate`")
	}
	if _, err := o.Pool.Exec(ctx, strings.Join(all, "; "), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("grant the queue's tables: %w", err)
	}
	return nil
}
