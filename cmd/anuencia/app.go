package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/adapters/identity"
	"github.com/anuencia-harness/anuencia/adapters/opa"
	"github.com/anuencia-harness/anuencia/adapters/pgwatch"
	"github.com/anuencia-harness/anuencia/adapters/ratelimit"
	"github.com/anuencia-harness/anuencia/adapters/riverq"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/config"
	"github.com/anuencia-harness/anuencia/internal/egress"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// app is the whole program, wired by hand.
type app struct {
	cfg      config.Config
	log      *slog.Logger
	store    *sqlstore.Store
	queue    *riverq.Queue
	catalogs *catalog.Reloader
	people   *identity.File
	engine   *opa.Engine
	tools    *toolbox
	service  *harness.Service
	watcher  *pgwatch.Watcher // nil on SQLite
}

func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// openStore opens the database that the settings name. enqueue may be nil for
// commands that make no jobs.
func openStore(ctx context.Context, c config.Config, enqueue func(context.Context, *sql.Tx, harness.Job) error) (*sqlstore.Store, error) {
	o := storeOptions(c, enqueue)
	if o.SQLitePath != "" {
		if _, err := os.Stat(o.SQLitePath); err != nil {
			return nil, fmt.Errorf("there is no database in %s (anuencia serve --demo or --migrate makes one)", c.Data)
		}
	}
	s, err := sqlstore.Open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return s, nil
}

func storeOptions(c config.Config, enqueue func(context.Context, *sql.Tx, harness.Job) error) sqlstore.Options {
	o := sqlstore.Options{Now: time.Now, NewID: newID, Enqueue: enqueue, DatabaseURL: c.DatabaseURL.Reveal()}
	if o.DatabaseURL == "" {
		o.SQLitePath = filepath.Join(c.Data, "anuencia.db")
	}
	return o
}

// catalogRoot is the folder of intents, tools, agents and people in force.
func catalogRoot(c config.Config) (fs.FS, error) {
	if c.Catalog != "" {
		return os.DirFS(c.Catalog), nil
	}
	root, err := fs.Sub(embedded.FS, "demo")
	if err != nil {
		return nil, fmt.Errorf("embedded catalog: %w", err)
	}
	return root, nil
}

func loadCatalog(c config.Config) (*catalog.Catalog, error) {
	if c.Catalog != "" {
		return catalog.Load(os.DirFS(c.Catalog), catalog.Options{Messages: embedded.FS})
	}
	return catalog.Load(embedded.FS, catalog.Options{Demo: true})
}

func newLogger(level string, w io.Writer) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l}))
}

// newApp builds everything and starts nothing. close must be called at the end.
func newApp(ctx context.Context, c config.Config, logTo io.Writer) (*app, error) {
	a := &app{cfg: c, log: newLogger(c.LogLevel, logTo)}
	if err := a.build(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *app) build(ctx context.Context) error {
	// The store knows no queue and the queue no store: this function ties them.
	enqueue := func(ctx context.Context, tx *sql.Tx, job harness.Job) error { return a.queue.Insert(ctx, tx, job) }
	var err error
	if a.store, err = openStore(ctx, a.cfg, enqueue); err != nil {
		return err
	}
	o := queueOptions(a.store)
	o.Log = a.log
	o.Handler = func(ctx context.Context, job harness.Job) error { return a.service.Work(ctx, job) }
	if a.queue, err = riverq.New(o); err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	if a.catalogs, err = catalog.NewReloader(func() (*catalog.Catalog, error) { return loadCatalog(a.cfg) }, a.catalogReloaded); err != nil {
		return err
	}
	root, err := catalogRoot(a.cfg)
	if err != nil {
		return err
	}
	if a.people, err = identity.NewFile(ctx, root, "people.yaml", a.store.EnsurePerson); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if a.engine, err = opa.New(ctx, policyFS(a.cfg.Policies), opa.Options{}); err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	if a.tools, err = newToolbox(ctx, a.cfg, root); err != nil {
		return err
	}
	a.service, err = harness.New(harness.Options{
		Store: a.store, Directory: a.people, Policy: a.engine, Limiter: ratelimit.NewMemory(time.Now),
		Catalog: func() harness.Catalog { return a.catalogs.Current() }, Runner: a.tools.runner, Guard: egress.New(),
		Watcher: a.newWatcher(), Log: a.log, Now: time.Now, NewID: newID, Random: random,
	})
	return err
}

// newWatcher wakes waiters of this process on SQLite, of all on PostgreSQL.
func (a *app) newWatcher() harness.Watcher {
	if a.store.SQLite() {
		return harness.NewLocalWatcher()
	}
	a.watcher = pgwatch.New(a.store.Pool(), a.log)
	return a.watcher
}

func random(p []byte) error {
	if _, err := rand.Read(p); err != nil {
		return fmt.Errorf("random: %w", err)
	}
	return nil
}

// close ends what newApp opened; parts that were never built are left out.
func (a *app) close() error {
	var errs []error
	if a.tools != nil {
		errs = append(errs, a.tools.close())
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
	}
	return errors.Join(errs...)
}
