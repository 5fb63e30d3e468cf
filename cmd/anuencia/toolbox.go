package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/tools/artifact"
	"github.com/anuencia-harness/anuencia/adapters/tools/document"
	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/config"
)

// institution is the demo's data source and, on PostgreSQL, its schema.
const institution = "institution"

// toolbox is every tool of the program, and the databases they reach.
type toolbox struct {
	runner  *agent.Direct
	sources *sqltool.Sources
	search  *document.Search
	demo    *sqltool.Source // nil outside the demo
	root    fs.FS
}

func newToolbox(_ context.Context, c config.Config, root fs.FS) (*toolbox, error) {
	t := &toolbox{root: root}
	var list []*sqltool.Source
	for name, address := range c.Sources {
		s, err := sqltool.Open(name, address.Reveal())
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if c.Demo && c.Sources[institution] == "" {
		s, err := demoSource(c)
		if err != nil {
			return nil, err
		}
		t.demo = s
		list = append(list, s)
	}
	t.sources = sqltool.NewSources(list...)
	collections := map[string]fs.FS{}
	if docs, err := fs.Sub(root, "regulations"); err == nil {
		if _, err := fs.Stat(docs, "."); err == nil {
			collections["regulations"] = docs
		}
	}
	var err error
	if t.search, err = document.New(collections); err != nil {
		return nil, fmt.Errorf("documents: %w", errors.Join(err, t.sources.Close()))
	}
	place, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("timezone: %w", errors.Join(err, t.close()))
	}
	t.runner = agent.NewDirect(map[string]agent.Tool{
		"sql_view": sqltool.NewView(t.sources), "sql_action": sqltool.NewAction(t.sources, time.Now),
		"document_search": t.search, "artifact": artifact.New(t.sources, time.Now, place),
	})
	return t, nil
}

func demoSource(c config.Config) (*sqltool.Source, error) {
	address := filepath.Join(c.Data, "institution.db")
	if c.DatabaseURL != "" {
		var err error
		if address, err = sqltool.WithSchema(c.DatabaseURL.Reveal(), institution); err != nil {
			return nil, fmt.Errorf("institution: %w", err)
		}
	}
	return sqltool.Open(institution, address)
}

// seed makes the demo institution when it is not there.
func (t *toolbox) seed(ctx context.Context) error {
	if t.demo == nil {
		return nil
	}
	files, err := fs.Sub(t.root, institution)
	if err != nil {
		return fmt.Errorf("institution: %w", err)
	}
	return sqltool.Seed(ctx, t.demo, institution, files)
}

func (t *toolbox) close() error { return errors.Join(t.search.Close(), t.sources.Close()) }
