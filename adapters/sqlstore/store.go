// Package sqlstore keeps executions, approvals, credentials and the audit on
// PostgreSQL or on SQLite. It implements harness.Store and holds no rule of its
// own: what it guards is that a state never changes without its events, that
// one of two writers loses, and that nothing is half written.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// defaultPool is the number of connections that gave the most work per second
// on two cores (core-data.md, Do 9).
const defaultPool = 8

// Options say which database and what the store needs of its surroundings.
type Options struct {
	// DatabaseURL is a postgres:// URL. Exactly one of it and SQLitePath is set.
	DatabaseURL string
	// SQLitePath is a file; its folder must exist.
	SQLitePath string
	// Enqueue adds a durable job inside the transaction given. Nil refuses every
	// job. It must use nothing but that transaction.
	Enqueue func(ctx context.Context, tx *sql.Tx, job harness.Job) error
	// Now is the clock, for the rows of principals and people. Required.
	Now func() time.Time
	// NewID makes UUIDv7 values. Required.
	NewID func() uuid.UUID
	// PoolSize bounds the connections to PostgreSQL and the readers of SQLite; 8
	// when zero.
	PoolSize int
	// OnStatement is told each SQL text before it is sent, on PostgreSQL BEGIN and
	// COMMIT included. It may be called from many goroutines. Nil is allowed.
	OnStatement func(ctx context.Context, sql string)
	// OnCommit is asked after each successful commit of a unit of work; an error
	// stands for a connection that was lost before the answer came. For tests
	// only; nil is allowed.
	OnCommit func(ctx context.Context) error
}

func (o Options) check() error {
	switch {
	case (o.DatabaseURL == "") == (o.SQLitePath == ""):
		return errors.New("sqlstore: exactly one of a database URL and a SQLite path is needed")
	case o.Now == nil || o.NewID == nil:
		return errors.New("sqlstore: the clock and the maker of ids are required")
	}
	return nil
}

func (o Options) poolSize() int {
	if o.PoolSize > 0 {
		return o.PoolSize
	}
	return defaultPool
}

// Store is harness.Store over one database. Safe for concurrent use.
type Store struct {
	o      Options
	sqlite bool
	pool   *pgxpool.Pool // nil on SQLite
	write  *sql.DB
	read   *sql.DB // the same as write on PostgreSQL
	gwrite *gorm.DB
	gread  *gorm.DB
	hot    statements
	batch  *committer // nil on PostgreSQL
	system system
	once   sync.Once
}

// system is the chain of this process: events that belong to no execution
// (governance section 3). slot is held from the sealing of its events to the end
// of their transaction, so that the chain has no gap. On SQLite the committer is
// the only one who touches it.
type system struct {
	slot   chan struct{}
	stream anuencia.StreamID
	head   anuencia.Head
	unsure bool // a commit was lost: read the head again before the next use
}

// Open connects, checks that this binary fits the schema (contracts section 8)
// and starts the writer of SQLite. It does not migrate. Errors: ErrSchema;
// INTERNAL_ERROR/unavailable when the database cannot be reached. Close must be
// called at the end.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s, err := connect(ctx, o)
	if err != nil {
		return nil, reachable("open the database", err)
	}
	if err := s.checkSchema(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(reachable("prepare statements", err), s.Close())
	}
	if s.sqlite {
		s.batch = startCommitter(context.WithoutCancel(ctx), s)
	}
	return s, nil
}

// connect opens the handles and no more; it serves the migrations too.
func connect(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, sqlite: o.SQLitePath != ""}
	s.system = system{slot: make(chan struct{}, 1), stream: anuencia.StreamID(o.NewID())}
	var err error
	if s.sqlite {
		err = s.connectSQLite(ctx)
	} else {
		err = s.connectPostgres(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the writer and closes all connections. Units of work that are
// waiting are refused as INTERNAL_ERROR/unavailable. A second call does nothing.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	if s.batch != nil {
		s.batch.stop()
	}
	err := s.hot.close()
	if s.read != nil && s.read != s.write {
		err = errors.Join(err, s.read.Close())
	}
	if s.write != nil {
		err = errors.Join(err, s.write.Close())
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return err
}

// DB is the handle that writes. On SQLite it has one connection, which the
// store's writer gives back after each commit: whoever shares it (the queue)
// waits in line with the writer and never sees SQLITE_BUSY from it, but must
// hold it briefly and never use it inside a transaction of its own.
func (s *Store) DB() *sql.DB { return s.write }

// Pool is the pool under DB on PostgreSQL, nil on SQLite.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// SQLite says which of the two databases this is.
func (s *Store) SQLite() bool { return s.sqlite }

// SystemStream is the chain of this process.
func (s *Store) SystemStream() anuencia.StreamID { return s.system.stream }

// Ping says whether the database answers and takes writes.
func (s *Store) Ping(ctx context.Context) error {
	if s.sqlite {
		return s.Atomically(ctx, func(context.Context, harness.Tx) error { return nil })
	}
	var readOnly bool
	row := s.write.QueryRowContext(ctx, "select pg_is_in_recovery() or current_setting('transaction_read_only')::bool")
	if err := row.Scan(&readOnly); err != nil {
		return reachable("ping the database", err)
	}
	if readOnly {
		return anuencia.Unavailable("ping the database", errors.New("it is read-only"))
	}
	return nil
}

// statement tells the observer, if there is one.
func (s *Store) statement(ctx context.Context, text string) {
	if s.o.OnStatement != nil {
		s.o.OnStatement(ctx, text)
	}
}

// reader gives a GORM session on the readers for one query.
func (s *Store) reader(ctx context.Context) *gorm.DB { return s.gread.WithContext(ctx) }

var _ harness.Store = (*Store)(nil)

func wrap(doing string, err error) error { return fmt.Errorf("%s: %w", doing, err) }
