package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/libtnb/sqlite"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

func (s *Store) connectPostgres(ctx context.Context) error {
	cfg, err := pgxpool.ParseConfig(s.o.DatabaseURL)
	if err != nil {
		return fmt.Errorf("database URL: %w", err)
	}
	cfg.MaxConns = int32(s.o.poolSize()) //nolint:gosec // a handful
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "anuencia"
	}
	if s.o.OnStatement != nil {
		cfg.ConnConfig.Tracer = tracer{s.o.OnStatement}
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	s.write = stdlib.OpenDBFromPool(s.pool)
	s.read = s.write
	if s.gwrite, err = gorm.Open(postgres.New(postgres.Config{Conn: s.write}), gormConfig()); err != nil {
		return fmt.Errorf("gorm: %w", err)
	}
	s.gread = s.gwrite
	return nil
}

func (s *Store) connectSQLite(ctx context.Context) error {
	var err error
	if s.write, s.gwrite, err = openSQLite(ctx, s.o.SQLitePath, 1); err != nil {
		return fmt.Errorf("writer: %w", err)
	}
	if s.read, s.gread, err = openSQLite(ctx, s.o.SQLitePath, s.o.poolSize(), "query_only(1)"); err != nil {
		return fmt.Errorf("readers: %w", err)
	}
	return nil
}

// openSQLite opens a handle. The busy timeout comes first, so that the change to
// WAL can wait for another process that does the same.
func openSQLite(ctx context.Context, path string, conns int, pragmas ...string) (*sql.DB, *gorm.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("path: %w", err)
	}
	all := slices.Concat([]string{
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)", "recursive_triggers(1)",
	}, pragmas)
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: url.Values{"_pragma": all, "_txlock": {"immediate"}}.Encode()}
	db, err := sql.Open(sqlite.DriverName, dsn.String())
	if err != nil {
		return nil, nil, fmt.Errorf("open: %w", err)
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if err := pingSQLite(ctx, db); err != nil {
		return db, nil, fmt.Errorf("ping: %w", err)
	}
	g, err := gorm.Open(sqlite.New(sqlite.Config{Conn: db}), gormConfig())
	if err != nil {
		return db, nil, fmt.Errorf("gorm: %w", err)
	}
	return db, g, nil
}

// pingSQLite tries again while another process turns the file to WAL: for that
// change SQLite does not wait for its busy timeout.
func pingSQLite(ctx context.Context, db *sql.DB) error {
	for tries := 1; ; tries++ {
		err := db.PingContext(ctx)
		if err == nil || classify(err) != troubleLost || tries > lostTries*2 {
			return err
		}
		if err := pause(ctx, troubleLost, tries); err != nil {
			return err
		}
	}
}

// gormConfig leaves PrepareStmt off: with pgx it is slower, and it changes the
// transaction's type under the queue (core-data.md, Don't).
func gormConfig() *gorm.Config {
	return &gorm.Config{SkipDefaultTransaction: true, DisableAutomaticPing: true, Logger: logger.Discard}
}

// tracer tells Options.OnStatement of what pgx sends.
type tracer struct {
	tell func(ctx context.Context, sql string)
}

// TraceQueryStart implements pgx.QueryTracer.
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	t.tell(ctx, d.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
