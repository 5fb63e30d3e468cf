// Package pgtest gives tests an empty PostgreSQL database each. It uses the
// server that ANUENCIA_TEST_DATABASE_URL names, else it starts a throwaway one
// from the programs on the machine, once for a test process.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The environment variables that this package reads.
const (
	envURL     = "ANUENCIA_TEST_DATABASE_URL"
	envSkip    = "ANUENCIA_TEST_SKIP_POSTGRES"
	envDurable = "ANUENCIA_TEST_POSTGRES_FSYNC"
)

const missing = "PostgreSQL is needed for this test: install its server programs " +
	"(Debian: apt-get install postgresql), or set " + envURL + " to a server where databases can be created, " +
	"or set " + envSkip + "=1 to skip"

// server is the one of this process.
//
//nolint:gochecknoglobals // one throwaway server for all tests of a process, stopped by Main
var server struct {
	once    sync.Once
	admin   string
	err     error
	cluster *cluster
}

// Main runs the tests and then stops the server, if one was started. Packages
// that call URL have: func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }.
func Main(m *testing.M) int {
	code := m.Run()
	if c := server.cluster; c != nil {
		if err := c.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the test server:", err)
			return max(code, 1)
		}
	}
	return code
}

// URL gives the address of a fresh, empty database, dropped when the test ends.
// It fails the test when there is no PostgreSQL, and skips it only when
// ANUENCIA_TEST_SKIP_POSTGRES is 1.
func URL(tb testing.TB) string {
	tb.Helper()
	if os.Getenv(envSkip) == "1" {
		tb.Skip("skipped by " + envSkip)
	}
	server.once.Do(start)
	if server.err != nil {
		tb.Fatal(server.err)
	}
	name := "anuencia_test_" + strconv.Itoa(os.Getpid()) + "_" + uuid.NewString()[:8]
	if err := Exec(tb.Context(), server.admin, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		tb.Fatal("create a database: ", err)
	}
	tb.Cleanup(func() {
		drop := "drop database if exists " + pgx.Identifier{name}.Sanitize() + " with (force)"
		if err := Exec(context.WithoutCancel(tb.Context()), server.admin, drop); err != nil {
			tb.Error("drop the database: ", err)
		}
	})
	u, err := url.Parse(server.admin)
	if err != nil {
		tb.Fatal("database URL: ", err)
	}
	u.Path = "/" + name
	return u.String()
}

// Exec runs one statement on a connection of its own.
func Exec(ctx context.Context, databaseURL, sql string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func start() {
	if server.admin = os.Getenv(envURL); server.admin != "" {
		return
	}
	bin, err := programs()
	if err != nil {
		server.err = err
		return
	}
	if server.cluster, server.err = launch(bin); server.err == nil {
		server.admin = server.cluster.url
	}
}
