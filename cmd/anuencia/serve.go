package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/config"
)

const (
	stopWithin = 30 * time.Second // for requests and runs to end
	flushEvery = time.Minute      // counts of suppressed refusals
	// lookEvery: a folder that was swapped as a whole tells no watcher.
	lookEvery     = 15 * time.Second
	readHeader    = 10 * time.Second
	readRequest   = 60 * time.Second
	writeResponse = 2 * time.Minute // the longest wait is 60 s
	idle          = 2 * time.Minute
	maxHeader     = 64 << 10
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "serve the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			if err := c.CheckServe(); err != nil {
				return err
			}
			return serve(cmd, c)
		},
	}
	settingFlags(cmd, "listen", "data", "policies", "catalog", "demo", "migrate")
	return cmd
}

func serve(cmd *cobra.Command, c config.Config) error {
	ctx := cmd.Context()
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	unlock, err := lockData(c)
	if err != nil {
		return err
	}
	defer unlock()
	if c.Demo || c.Migrate {
		if err := migrateAll(ctx, c); err != nil {
			return err
		}
	}
	a, err := newApp(ctx, c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return errors.Join(a.serve(ctx, cmd), a.close())
}

// lockData makes sure that one process only serves a SQLite database: what it
// finds running at its start is then known to be dead.
func lockData(c config.Config) (unlock func(), err error) {
	if c.DatabaseURL != "" {
		return func() {}, nil
	}
	l := flock.New(filepath.Join(c.Data, "anuencia.lock"))
	ok, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if !ok {
		return nil, fmt.Errorf("another process serves %s; several processes need PostgreSQL (ANUENCIA_DATABASE_URL)", c.Data)
	}
	return func() {
		_ = l.Close() // the end of the process frees it anyway
	}, nil
}

func (a *app) serve(ctx context.Context, cmd *cobra.Command) error {
	if err := a.prepare(ctx); err != nil {
		return err
	}
	handler, err := a.handler() //nolint:contextcheck // each request has a context of its own
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeader, ReadTimeout: readRequest, WriteTimeout: writeResponse,
		IdleTimeout: idle, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	if err := a.queue.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the jobs: %w", errors.Join(err, l.Close()))
	}
	served := make(chan error, 1)
	go func() { served <- a.listen(srv, l) }()
	if err := a.greet(cmd, l.Addr()); err != nil {
		return err
	}
	a.background(ctx)
	select {
	case err = <-served:
		err = fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	return errors.Join(err, a.stop(ctx, srv))
}

func (a *app) listen(srv *http.Server, l net.Listener) error {
	if a.cfg.TLSCert == "" {
		return srv.Serve(l)
	}
	srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return srv.ServeTLS(l, a.cfg.TLSCert, a.cfg.TLSKey)
}

// prepare brings what is on record and what is in force together: the demo's
// data, the revisions, and runs that a crash left.
func (a *app) prepare(ctx context.Context) error {
	if a.cfg.Demo {
		if err := a.prepareDemo(ctx); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}
	if err := a.service.RecordActivation(ctx, anuencia.EventCatalogActivated, partCatalog, a.catalogs.Current().Revision()); err != nil {
		return fmt.Errorf("record the catalog's revision: %w", err)
	}
	if err := a.service.RecordActivation(ctx, anuencia.EventCatalogActivated, partDirectory, a.people.Revision()); err != nil {
		return fmt.Errorf("record the directory's revision: %w", err)
	}
	if err := a.service.RecordActivation(ctx, anuencia.EventPolicyActivated, partPolicies, a.engine.Revision()); err != nil {
		return fmt.Errorf("record the policies' revision: %w", err)
	}
	sweep := a.service.Sweep
	if a.store.SQLite() {
		sweep = a.service.SweepOrphans
	}
	if err := sweep(ctx); err != nil {
		// What cannot be settled now is tried again by the periodic sweep.
		a.log.WarnContext(ctx, "sweep at start", slog.Any("error", err))
	}
	return nil
}

// background reloads on SIGHUP and on change of the folders, and records the
// counts of suppressed refusals, until ctx ends.
func (a *app) background(ctx context.Context) {
	if a.watcher != nil {
		go a.watcher.Run(ctx)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hup)
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				a.reload(ctx)
			case <-look.C:
				if a.cfg.Catalog != "" || a.cfg.Policies != "" {
					a.reload(ctx)
				}
			case <-tick.C:
				if err := a.service.FlushSuppressed(ctx); err != nil {
					a.log.ErrorContext(ctx, "record suppressed refusals", slog.Any("error", err))
				}
			}
		}
	}()
	a.watchFolders(ctx)
}

// reload takes new content of catalog, directory and policies into force; what
// is bad is refused, and the last good one stays.
func (a *app) reload(ctx context.Context) {
	if err := a.catalogs.Reload(); err != nil {
		a.log.ErrorContext(ctx, "the new catalog was refused", slog.Any("error", err))
	}
	a.reloadPeople(ctx)
	changed, err := a.engine.Reload(ctx, policyFS(a.cfg.Policies))
	if err != nil {
		a.log.ErrorContext(ctx, "the new policies were refused", slog.Any("error", err))
		return
	}
	if changed {
		a.recordActivation(ctx, anuencia.EventPolicyActivated, partPolicies, a.engine.Revision())
	}
}

func (a *app) reloadPeople(ctx context.Context) {
	root, err := catalogRoot(a.cfg)
	changed := false
	if err == nil {
		changed, err = a.people.Reload(ctx, root)
	}
	if err != nil {
		a.log.ErrorContext(ctx, "the new directory was refused", slog.Any("error", err))
		return
	}
	if changed {
		a.recordActivation(ctx, anuencia.EventCatalogActivated, partDirectory, a.people.Revision())
	}
}

func (a *app) catalogReloaded(c *catalog.Catalog, err error) {
	if err == nil {
		a.recordActivation(context.Background(), anuencia.EventCatalogActivated, partCatalog, c.Revision())
	}
}

// The parts that have revisions.
const (
	partCatalog   = "catalog"
	partDirectory = "directory"
	partPolicies  = "policies"
)

func (a *app) recordActivation(ctx context.Context, t anuencia.EventType, part, revision string) {
	a.log.InfoContext(ctx, "a new revision is in force", slog.String("part", part), slog.String("revision", revision))
	if err := a.service.RecordActivation(ctx, t, part, revision); err != nil {
		a.log.ErrorContext(ctx, "record the revision", slog.Any("error", err))
	}
}

// stop lets requests and runs end, then jobs.
func (a *app) stop(ctx context.Context, srv *http.Server) error {
	// Each has its own time: what one uses up the next still needs.
	within := func(step func(context.Context) error) error {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		return step(limited)
	}
	return errors.Join(within(srv.Shutdown), within(a.queue.Stop), within(a.service.Close))
}

// greet says where the server is and, in the demo, what to do next.
func (a *app) greet(cmd *cobra.Command, addr net.Addr) error {
	scheme := "http"
	if a.cfg.TLSCert != "" {
		scheme = "https"
	}
	if err := printf(cmd, "Anuencia listens on %s://%s\n", scheme, addr); err != nil {
		return err
	}
	if !a.cfg.Demo {
		return nil
	}
	return printf(cmd, "Demo data in %s; a token for each demo person in %s\nDocumentation: %s://%s/docs\n",
		a.cfg.Data, filepath.Join(a.cfg.Data, tokensFile), scheme, addr)
}
