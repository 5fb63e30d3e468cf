package sqltool_test

import (
	"database/sql"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/libtnb/sqlite"

	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
	"github.com/anuencia-harness/anuencia/internal/catalog"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is a seeded institution, and a handle of its own on the same database,
// as another program of the institution has one.
type world struct {
	address  string
	postgres bool
	source   *sqltool.Source
	sources  *sqltool.Sources
	view     *sqltool.View
	action   *sqltool.Action
	other    *sql.DB
	catalog  *catalog.Catalog
}

func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "a folder ñ?")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "institution #1.db")
		dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(10000)&_txlock=immediate"}
		db, err := sql.Open(sqlite.DriverName, dsn.String())
		if err != nil {
			t.Fatal(err)
		}
		test(t, newWorld(t, path, false, db))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		address, err := sqltool.WithSchema(pgtest.URL(t), "institution")
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := pgx.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		test(t, newWorld(t, address, true, stdlib.OpenDB(*cfg)))
	})
}

func newWorld(t *testing.T, address string, postgres bool, other *sql.DB) *world {
	t.Helper()
	w := &world{address: address, postgres: postgres, other: other}
	var err error
	if w.source, err = sqltool.Open("institution", address); err != nil {
		t.Fatal(err)
	}
	w.sources = sqltool.NewSources(w.source)
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{w.sources, other} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	w.seed(t)
	w.view = sqltool.NewView(w.sources)
	w.action = sqltool.NewAction(w.sources, func() time.Time { return time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC) })
	if w.catalog, err = catalog.Load(embedded.FS, catalog.Options{Demo: true}); err != nil {
		t.Fatal(err)
	}
	return w
}

func institution(t *testing.T) fs.FS {
	t.Helper()
	files, err := fs.Sub(embedded.FS, "demo/institution")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (w *world) seed(t *testing.T) {
	t.Helper()
	if err := sqltool.Seed(t.Context(), w.source, "institution", institution(t)); err != nil {
		t.Fatal(err)
	}
}

// exec changes the institution's database behind the harness's back.
func (w *world) exec(t *testing.T, statement string) {
	t.Helper()
	if _, err := w.other.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (w *world) count(t *testing.T, query string) int {
	t.Helper()
	var n int
	if err := w.other.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func newExecution() anuencia.ExecutionID {
	return anuencia.ExecutionID(uuid.Must(uuid.NewV7()))
}

// call is a call of a tool of the demo's catalog, planned now.
func (w *world) call(t *testing.T, tool, args string) agent.Call {
	t.Helper()
	def, known := w.catalog.Tool(tool)
	if !known {
		t.Fatalf("no tool %s", tool)
	}
	canonical, err := w.catalog.ValidateArguments(def, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	c := agent.Call{ExecutionID: newExecution(), Step: 1, Tool: def, Arguments: canonical}
	if def.Kind == sqltool.KindAction {
		if c.Before, err = w.action.Before(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// viewCall is a call of a view that is made here.
func viewCall(t *testing.T, query string, maxRows int, args map[string]any) agent.Call {
	t.Helper()
	cfg, err := json.Marshal(map[string]any{"source": "institution", "source_id": "v", "query": query, "max_rows": maxRows})
	if err != nil {
		t.Fatal(err)
	}
	if args == nil {
		args = map[string]any{}
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Call{
		ExecutionID: newExecution(), Step: 1, Arguments: string(raw),
		Tool: anuencia.Tool{Name: "prueba", Kind: sqltool.KindView, Config: cfg, Timeout: time.Minute},
	}
}
