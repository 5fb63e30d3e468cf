package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// trouble is what a failed statement means for the unit of work.
type trouble int

const (
	troubleOther    trouble = iota // not the database's, or a defect: no retry
	troubleConflict                // another writer was first, nothing was written: again with fresh reads
	troubleLost                    // the connection went, perhaps after the commit: look, then again
	troubleDown                    // the database is there but cannot serve
)

// errStale says that a compare-and-set found another version.
var errStale = errors.New("the row has another version")

// errBatch says that another unit of the same SQLite transaction took it down.
var errBatch = errors.New("the shared transaction was lost")

// errStopped says that the store was closed.
var errStopped = errors.New("the store is closed")

// The primary result codes of SQLite that mean something here.
const (
	sqliteBusy       = 5
	sqliteLocked     = 6
	sqliteInterrupt  = 9
	sqliteConstraint = 19
	// Extended codes.
	sqlitePrimaryKey = sqliteConstraint | 6<<8
	sqliteUnique     = sqliteConstraint | 8<<8
	sqliteTrigger    = sqliteConstraint | 7<<8
)

// classify knows the codes of both drivers; nobody else does.
func classify(err error) trouble {
	var pg *pgconn.PgError
	var lite interface {
		error
		Code() int
	}
	switch {
	case err == nil:
		return troubleOther
	case errors.Is(err, errStale):
		return troubleConflict
	case errors.Is(err, errBatch):
		return troubleLost
	case errors.Is(err, errStopped):
		return troubleDown
	case errors.As(err, &pg):
		return classifyPostgres(pg.Code)
	case errors.As(err, &lite):
		return classifySQLite(lite.Code(), lite.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return troubleOther
	case lostConnection(err):
		return troubleLost
	}
	return troubleOther
}

func classifyPostgres(code string) trouble {
	switch code {
	case "40001", "40P01", "23505", "55P03": // serialization, deadlock, unique, lock not available
		return troubleConflict
	case "57014": // cancelled by us or by statement_timeout
		return troubleOther
	}
	switch class := code[:min(2, len(code))]; class {
	case "08", "57": // connection exception; 57P01 to 57P05: shutdown, cannot connect now
		return troubleLost
	case "22", "23": // bad data, a constraint: a defect of ours or a guard that held
		return troubleOther
	}
	return troubleDown // no rights, no table, no space, read-only, internal
}

func classifySQLite(code int, text string) trouble {
	switch code {
	case sqlitePrimaryKey, sqliteUnique:
		return troubleConflict
	case sqliteTrigger:
		if strings.Contains(text, "already has this row") {
			return troubleConflict
		}
		return troubleOther
	}
	switch code & 0xff {
	case sqliteBusy, sqliteLocked:
		return troubleLost // tried again, and unavailable when it stays so
	case sqliteConstraint, sqliteInterrupt:
		return troubleOther
	}
	return troubleDown // disk full, read-only, i/o, no table
}

func lostConnection(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "database is closed") ||
		strings.Contains(err.Error(), "closed pool")
}

// reachable turns a database error into the answer for callers: a Fault stays
// what it is, what may be back soon is INTERNAL_ERROR/unavailable, the rest is
// wrapped.
func reachable(doing string, err error) error {
	if err == nil {
		return nil
	}
	if f := new(anuencia.Fault); errors.As(err, &f) {
		return err
	}
	switch classify(err) {
	case troubleLost, troubleDown:
		return anuencia.Unavailable(doing, err)
	case troubleConflict, troubleOther:
	}
	return wrap(doing, err)
}
