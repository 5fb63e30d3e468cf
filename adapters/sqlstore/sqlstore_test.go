package sqlstore_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore/storetest"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func sqliteOptions(t *testing.T, o sqlstore.Options) sqlstore.Options {
	t.Helper()
	o.SQLitePath = filepath.Join(t.TempDir(), "a folder ñ", "an #uencia?.db")
	if err := os.MkdirAll(filepath.Dir(o.SQLitePath), 0o700); err != nil {
		t.Fatal(err)
	}
	return o
}

func postgresOptions(t *testing.T, o sqlstore.Options) sqlstore.Options {
	t.Helper()
	o.DatabaseURL = pgtest.URL(t)
	return o
}

func migrated(t *testing.T, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	if err := sqlstore.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o sqlstore.Options) *sqlstore.Store {
		t.Helper()
		return migrated(t, sqliteOptions(t, o))
	})
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o sqlstore.Options) *sqlstore.Store {
		t.Helper()
		return migrated(t, postgresOptions(t, o))
	})
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(*testing.T, sqlstore.Options) sqlstore.Options{
		"sqlite": sqliteOptions, "postgres": postgresOptions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := where(t, storetest.Options())
			if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), "anuencia migrate") {
				t.Fatalf("an empty database: %v", err)
			}
			s := migrated(t, o)
			if err := sqlstore.Migrate(t.Context(), o); err != nil {
				t.Errorf("migrate again: %v", err)
			}
			for _, c := range []struct {
				version, oldest string
				fits            bool
				says            string
			}{
				{"1", "1", true, ""},
				{"2", "1", true, ""},
				{"2", "2", false, "newer binary"},
				{"3", "1", false, "newer binary"},
				{"0", "0", false, "anuencia migrate"},
			} {
				_, err := s.DB().ExecContext(t.Context(), "update schema_info set version = "+c.version+", oldest_binary = "+c.oldest)
				if err != nil {
					t.Fatal(err)
				}
				other, err := sqlstore.Open(t.Context(), o)
				if c.fits {
					if err != nil {
						t.Errorf("%+v: %v", c, err)
					} else if err := other.Close(); err != nil {
						t.Error(err)
					}
					continue
				}
				if !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%+v: %v", c, err)
				}
			}
		})
	}
}

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(*testing.T, sqlstore.Options) sqlstore.Options{
		"sqlite": sqliteOptions, "postgres": postgresOptions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := where(t, storetest.Options())
			ends := make(chan error, 3)
			for range 3 {
				go func() { ends <- sqlstore.Migrate(t.Context(), o) }()
			}
			for range 3 {
				if err := <-ends; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	o := postgresOptions(t, storetest.Options())
	migrated(t, o)
	u, err := url.Parse(o.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	role := "run time " + filepath.Base(u.Path)
	quoted := `"` + role + `"`
	if err := pgtest.Exec(t.Context(), o.DatabaseURL, "create role "+quoted+" login"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, q := range []string{"drop owned by " + quoted, "drop role " + quoted} {
			if err := pgtest.Exec(context.WithoutCancel(t.Context()), o.DatabaseURL, q); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 { // a second time changes nothing
		if err := sqlstore.GrantTo(t.Context(), o, role); err != nil {
			t.Fatal(err)
		}
	}
	u.User = url.User(role)
	ro := o
	ro.DatabaseURL = u.String()
	s, err := sqlstore.Open(t.Context(), ro)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	e := storetest.Execution()
	a := storetest.Approval(e)
	e.State = anuencia.StateWaiting
	ev := storetest.Event(e, anuencia.EventReceived)
	err = s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, _, err := tx.PutApproval(ctx, a, e, ev)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.LockApproval(ctx, a.ID)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, q := range []string{
		"update audit_events set channel = ''", "delete from audit_events", "truncate audit_events", "delete from executions",
		"update approval_decisions set reason = ''", "alter table audit_events disable trigger all", "update schema_info set version = 9",
	} {
		if _, err := s.DB().ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	unavailable := anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonUnavailable)
	o := storetest.Options()
	o.DatabaseURL = "postgres://nobody@127.0.0.1:1/none?sslmode=disable&connect_timeout=2"
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, unavailable) {
		t.Errorf("PostgreSQL: %v", err)
	}
	o.DatabaseURL = ""
	o.SQLitePath = filepath.Join(t.TempDir(), "no", "such", "folder.db")
	if _, err := sqlstore.Open(t.Context(), o); !errors.Is(err, unavailable) {
		t.Errorf("SQLite: %v", err)
	}
	if _, err := sqlstore.Open(t.Context(), storetest.Options()); err == nil {
		t.Error("no database named")
	}
}
