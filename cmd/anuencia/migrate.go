package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/adapters/riverq"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/internal/config"
)

func migrateCommand() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use: "migrate", Short: "bring the schema up to date, as the owner of the database", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(c.Data, 0o700); err != nil {
				return fmt.Errorf("data folder: %w", err)
			}
			if err := migrateAll(cmd.Context(), c); err != nil {
				return err
			}
			if role != "" {
				if c.DatabaseURL == "" {
					return errors.New("--grant-to is for PostgreSQL: SQLite has no roles")
				}
				if err := grantAll(cmd.Context(), c, role); err != nil {
					return fmt.Errorf("grant: %w", err)
				}
			}
			return printf(cmd, "the schema is up to date\n")
		},
	}
	settingFlags(cmd, "data")
	cmd.Flags().StringVar(&role, "grant-to", "", "the run-time role, which gets what it needs and no more")
	return cmd
}

// owner is the settings with the owner's address of the database.
func owner(c config.Config) config.Config {
	if c.MigrateDatabaseURL != "" {
		c.DatabaseURL = c.MigrateDatabaseURL
	}
	return c
}

// migrateAll brings our tables and River's up to date.
func migrateAll(ctx context.Context, c config.Config) error {
	o := storeOptions(owner(c), nil)
	if err := sqlstore.Migrate(ctx, o); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	s, err := sqlstore.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	err = riverq.Migrate(ctx, queueOptions(s))
	if err != nil {
		err = fmt.Errorf("migrate the queue: %w", err)
	}
	return errors.Join(err, s.Close())
}

// queueOptions are the queue's parts over an open store.
func queueOptions(s *sqlstore.Store) riverq.Options {
	return riverq.Options{DB: s.DB(), Pool: s.Pool(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

// grantAll gives the run-time role what it needs on our tables and the queue's.
func grantAll(ctx context.Context, c config.Config, role string) error {
	o := storeOptions(owner(c), nil)
	if err := sqlstore.GrantTo(ctx, o, role); err != nil {
		return err
	}
	s, err := sqlstore.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(riverq.GrantTo(ctx, queueOptions(s), role), s.Close())
}
