package sqltool

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// The primary result codes of SQLite for "somebody else has the lock".
const (
	sqliteBusy   = 5
	sqliteLocked = 6
)

// How often one transaction is tried: when others were faster, and when the
// connection was lost.
const (
	conflictTries = 40
	lostTries     = 5
)

// repeat tries fn again, after a random and growing while, as long as again
// says so and ctx lasts.
func repeat(ctx context.Context, fn func() error) error {
	for try := 1; ; try++ {
		err := fn()
		if err == nil || !again(err) || ctx.Err() != nil || try == conflictTries || try >= lostTries && lost(err) {
			return err
		}
		most := min(time.Millisecond<<min(try, 6), 50*time.Millisecond)
		wait, cancel := context.WithTimeout(ctx, time.Duration(rand.Int64N(int64(most)))) //nolint:gosec // jitter is no secret
		<-wait.Done()
		cancel()
	}
}

// again says whether a whole transaction may be tried again: another writer was
// first, or the connection was lost, perhaps after the commit. The ledger makes
// that safe.
func again(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code {
		case "40001", "40P01", "55P03": // serialization, deadlock, lock not available
			return true
		}
	}
	return lost(err)
}

func lost(err error) bool {
	var pg *pgconn.PgError
	var lite interface {
		error
		Code() int
	}
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &pg):
		class := pg.Code[:min(2, len(pg.Code))]
		return class == "08" || class == "53" || class == "57" && pg.Code != "57014"
	case errors.As(err, &lite):
		return lite.Code()&0xff == sqliteBusy || lite.Code()&0xff == sqliteLocked
	}
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err)
}

// reachable turns a database error into the answer: a Fault stays what it is,
// a database that cannot be reached is INTERNAL_ERROR/unavailable.
func reachable(doing string, err error) error {
	if err == nil {
		return nil
	}
	if f := new(anuencia.Fault); errors.As(err, &f) || errors.Is(err, harness.ErrSuperseded) {
		return err
	}
	if again(err) {
		return anuencia.Unavailable(doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
