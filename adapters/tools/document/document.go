// Package document is document_search: full-text search in Spanish over a
// collection of Markdown files, kept in memory (governance section 9).
package document

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Kind is the name by which the catalog knows this tool.
const Kind = "document_search"

// perDocument is how many sections of a document may rank among the hits before
// its best one is kept.
const perDocument = 4

// Search is the tool: collections, each with its index. Safe for concurrent
// use; the texts are read once, when it is made.
type Search struct {
	collections map[string]*collection
}

var _ agent.Tool = (*Search)(nil)

type collection struct {
	index    bleve.Index
	sections map[string]section // by id in the index
}

// section is one part of a document: what is under one heading.
type section struct {
	doc  *file
	text string
}

// file is one document.
type file struct {
	id, title, hash string
}

// New reads and indexes the Markdown files (*.md) at the root of each
// collection. A file without id and title in its front matter, or an id twice in
// a collection, is an error.
func New(collections map[string]fs.FS) (*Search, error) {
	s := &Search{collections: map[string]*collection{}}
	for _, name := range slices.Sorted(maps.Keys(collections)) {
		c, err := build(collections[name])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("collection %s: %w", name, err), s.Close())
		}
		s.collections[name] = c
	}
	return s, nil
}

// Close frees the indexes.
func (s *Search) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.collections)) {
		errs = append(errs, s.collections[name].index.Close())
	}
	return errors.Join(errs...)
}

func build(files fs.FS) (*collection, error) {
	index, err := newIndex()
	if err != nil {
		return nil, err
	}
	c := &collection{index: index, sections: map[string]section{}}
	if err := c.fill(files); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	return c, nil
}

func (c *collection) fill(files fs.FS) error {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	slices.Sort(names)
	batch := c.index.NewBatch()
	seen := map[string]bool{}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		front, body, err := split(string(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if seen[front.ID] {
			return fmt.Errorf("%s: id %q twice", name, front.ID)
		}
		seen[front.ID] = true
		sum := sha256.Sum256(raw)
		f := &file{id: front.ID, title: front.Title, hash: hex.EncodeToString(sum[:])}
		for i, text := range sections(body) {
			id := fmt.Sprintf("%s#%d", f.id, i)
			c.sections[id] = section{doc: f, text: text}
			if err := batch.Index(id, map[string]any{fieldTitle: f.title, fieldText: text}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if err := c.index.Batch(batch); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// Before implements agent.Tool: a search changes nothing.
func (*Search) Before(context.Context, agent.Call) (string, error) { return "", nil }

type config struct {
	Collection string `json:"collection"`
	MaxResults int    `json:"max_results"`
}

// Run implements agent.Tool. The argument consulta is plain text: no character
// of it is an operator. The result is {"resultados": [{documento, titulo,
// fragmento}]}, best first, one of each document; none gives the warning
// no_results.
func (s *Search) Run(ctx context.Context, call agent.Call) (harness.StepResult, error) {
	var none harness.StepResult
	var cfg config
	if err := json.Unmarshal(call.Tool.Config, &cfg); err != nil {
		return none, fmt.Errorf("configuration of %s: %w", call.Tool.Name, err)
	}
	var args struct {
		Consulta string `json:"consulta"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &args); err != nil {
		return none, fmt.Errorf("read arguments: %w", err)
	}
	c, known := s.collections[cfg.Collection]
	if !known {
		return none, fmt.Errorf("no collection %q", cfg.Collection)
	}
	hits, err := c.find(ctx, args.Consulta, max(cfg.MaxResults, 1))
	if err != nil {
		return none, err
	}
	return answer(hits)
}

func answer(hits []hit) (harness.StepResult, error) {
	var res harness.StepResult
	found := make([]map[string]any, len(hits))
	for i, h := range hits {
		found[i] = map[string]any{"documento": h.doc.id, "titulo": h.doc.title, "fragmento": h.fragment}
		res.Sources = append(res.Sources, anuencia.Source{Type: "document", ID: h.doc.id, Ref: h.doc.title, Hash: h.doc.hash})
	}
	if len(hits) == 0 {
		res.Warnings = []anuencia.Warning{{Code: "no_results", Severity: anuencia.SeverityInfo}}
	}
	text, err := audit.CanonicalOf(map[string]any{"resultados": found})
	if err != nil {
		return res, fmt.Errorf("result: %w", err)
	}
	res.Result = text
	return res, nil
}

type hit struct {
	doc      *file
	fragment string
}

func (c *collection) find(ctx context.Context, text string, limit int) ([]hit, error) {
	inText, inTitle := bleve.NewMatchQuery(text), bleve.NewMatchQuery(text)
	inText.SetField(fieldText)
	inTitle.SetField(fieldTitle)
	inTitle.SetBoost(titleBoost)
	req := bleve.NewSearchRequestOptions(query.NewDisjunctionQuery([]query.Query{inText, inTitle}), limit*perDocument, 0, false)
	req.IncludeLocations = true
	req.SortByCustom(search.SortOrder{&search.SortScore{Desc: true}, &search.SortDocID{}})
	res, err := c.index.SearchInContext(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	var out []hit
	seen := map[*file]bool{}
	for _, h := range res.Hits {
		sec := c.sections[h.ID]
		if seen[sec.doc] {
			continue
		}
		seen[sec.doc] = true
		out = append(out, hit{doc: sec.doc, fragment: fragment(sec.text, starts(h.Locations[fieldText]))})
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

func starts(terms search.TermLocationMap) []int {
	var out []int
	for _, locations := range terms {
		for _, l := range locations {
			out = append(out, int(l.Start)) //nolint:gosec // an offset into a text in memory
		}
	}
	return out
}
