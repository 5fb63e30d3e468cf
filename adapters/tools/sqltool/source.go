// Package sqltool is the tools that read and change an institution's own
// database: sql_view and sql_action (governance section 9). Statements come
// from the catalog; arguments are bound, never written into the text.
package sqltool

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/libtnb/sqlite"
)

// The pool of one source: tools are few at a time, and the institution's
// database is not ours to crowd.
const (
	poolSize    = 4
	idleFor     = 5 * time.Minute
	busyTimeout = "busy_timeout(10000)"
)

// Source is one database of the institution. It connects at its first use. Safe
// for concurrent use.
type Source struct {
	name string
	url  string
	d    dialect

	mu    sync.Mutex
	write *sql.DB
	read  *sql.DB // SQLite: a handle that cannot write; PostgreSQL: the same as write
}

// Open names a source: a postgres:// URL, or the path of a SQLite file (plain,
// or behind sqlite:). Nothing is connected yet; a URL that cannot be read is
// an error.
func Open(name, address string) (*Source, error) {
	s := &Source{name: name, url: address, d: sqliteDialect}
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		if _, err := pgx.ParseConfig(address); err != nil {
			return nil, fmt.Errorf("source %s: the URL cannot be read", name) // the cause would show the password
		}
		s.d = postgres
		return s, nil
	}
	path := strings.TrimPrefix(strings.TrimPrefix(address, "sqlite:"), "//")
	if path == "" || strings.Contains(path, "://") {
		return nil, fmt.Errorf("source %s: neither a postgres URL nor a path", name)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", name, err)
	}
	s.url = abs
	return s, nil
}

// WithSchema gives a postgres URL whose connections see schema first and only.
func WithSchema(address, schema string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the database URL cannot be read") // the cause would show the password
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Close ends the connections. The source can be used again after it.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	s.read, s.write = nil, nil
	return errors.Join(errs...)
}

func (s *Source) writer() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write != nil {
		return s.write, nil
	}
	if s.d == postgres {
		cfg, err := pgx.ParseConfig(s.url)
		if err != nil {
			return nil, fmt.Errorf("source %s: the URL cannot be read", s.name)
		}
		cfg.RuntimeParams["timezone"] = "UTC"
		if cfg.RuntimeParams["application_name"] == "" {
			cfg.RuntimeParams["application_name"] = "anuencia"
		}
		s.write = limited(stdlib.OpenDB(*cfg), poolSize)
		return s.write, nil
	}
	// An immediate transaction takes the file's one write lock at its start, so
	// that what is read in it cannot change before its end.
	db, err := openSQLite(s.url, 1, url.Values{
		"_pragma": {busyTimeout, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"}, "_txlock": {"immediate"},
	})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", s.name, err)
	}
	s.write = db
	return s.write, nil
}

func (s *Source) reader() (*sql.DB, error) {
	if s.d == postgres {
		return s.writer()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read != nil {
		return s.read, nil
	}
	db, err := openSQLite(s.url, poolSize, url.Values{"_pragma": {busyTimeout, "query_only(1)"}})
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", s.name, err)
	}
	s.read = db
	return s.read, nil
}

func openSQLite(path string, conns int, q url.Values) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	db, err := sql.Open(sqlite.DriverName, dsn.String())
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	return limited(db, conns), nil
}

func limited(db *sql.DB, conns int) *sql.DB {
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(idleFor)
	return db
}

// readOnly runs fn in one read-only transaction that sees one state.
func (s *Source) readOnly(ctx context.Context, fn func(q querier) error) error {
	db, err := s.reader()
	if err != nil {
		return err
	}
	var opts *sql.TxOptions // SQLite: the handle itself cannot write
	if s.d == postgres {
		opts = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return reachable("begin", err)
	}
	return reachable("read", errors.Join(fn(tx), ended(tx.Rollback())))
}

// ended leaves out that a transaction was over already: its context's end rolls
// it back too.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// Sources are the databases by the name that the catalog uses.
type Sources struct {
	byName map[string]*Source
}

// NewSources makes the set.
func NewSources(list ...*Source) *Sources {
	s := &Sources{byName: make(map[string]*Source, len(list))}
	for _, one := range list {
		s.byName[one.name] = one
	}
	return s
}

// Close ends the connections of all.
func (s *Sources) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		errs = append(errs, s.byName[name].Close())
	}
	return errors.Join(errs...)
}

func (s *Sources) get(name string) (*Source, error) {
	one, known := s.byName[name]
	if !known {
		return nil, fmt.Errorf("no source %q is configured", name)
	}
	return one, nil
}

// Snapshot runs several named queries with the same arguments (RFC 8785 text of
// an object) in one read-only transaction, and gives the rows of each. A query
// with more than maxRows rows is an error.
func (s *Sources) Snapshot(ctx context.Context, source string, queries map[string]string, args string, maxRows int) (map[string][]map[string]any, error) {
	src, err := s.get(source)
	if err != nil {
		return nil, err
	}
	given, err := arguments(args)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]map[string]any, len(queries))
	err = src.readOnly(ctx, func(q querier) error {
		for _, name := range slices.Sorted(maps.Keys(queries)) {
			rows, more, err := read(ctx, q, src.d, queries[name], given, maxRows)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if more {
				return fmt.Errorf("%s: more than %d rows", name, maxRows)
			}
			out[name] = rows
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
