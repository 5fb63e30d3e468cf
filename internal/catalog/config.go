package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The settings of each kind of tool. internal/catalog checks their form, the
// tool's adapter uses them.
type (
	viewConfig struct {
		Source   string `json:"source"`
		SourceID string `json:"source_id"`
		Query    string `json:"query"`
		MaxRows  int    `json:"max_rows"`
	}
	actionConfig struct {
		Source    string `json:"source"`
		SourceID  string `json:"source_id"`
		Before    string `json:"before"`
		Statement string `json:"statement"`
		After     string `json:"after"`
		Rows      int    `json:"rows"`
	}
	searchConfig struct {
		Collection string `json:"collection"`
		MaxResults int    `json:"max_results"`
	}
	artifactConfig struct {
		Template string       `json:"template"`
		Data     artifactData `json:"data"`
	}
	artifactData struct {
		Source   string            `json:"source"`
		SourceID string            `json:"source_id"`
		Queries  map[string]string `json:"queries"`
	}
)

const (
	maxRows    = 10_000
	maxResults = 50
)

func (l *loader) checkConfig(where string, f toolFile, s *schema) {
	var sql []string
	var err error
	switch f.Kind {
	case "sql_view":
		var c viewConfig
		if err = strict(f.Config, &c); err == nil {
			sql = []string{c.Query}
			l.need(where, c.Source != "" && c.SourceID != "" && c.Query != "", "config needs source, source_id and query")
			l.need(where, c.MaxRows > 0 && c.MaxRows <= maxRows, "max_rows must be 1 to 10000")
		}
		l.need(where, !f.Effect, "a sql_view has no effect")
	case "sql_action":
		var c actionConfig
		if err = strict(f.Config, &c); err == nil {
			sql = []string{c.Before, c.Statement, c.After}
			l.need(where, c.Source != "" && c.SourceID != "" && c.Before != "" && c.Statement != "" && c.After != "",
				"config needs source, source_id, before, statement and after")
			l.need(where, c.Rows >= 1, "rows must be how many rows the statement changes")
		}
		l.need(where, f.Effect, "a sql_action has an effect")
	case "document_search":
		var c searchConfig
		if err = strict(f.Config, &c); err == nil {
			l.need(where, c.Collection != "", "config needs collection")
			l.need(where, c.MaxResults > 0 && c.MaxResults <= maxResults, "max_results must be 1 to 50")
		}
		l.need(where, !f.Effect, "a document_search has no effect")
	case "artifact":
		var c artifactConfig
		if err = strict(f.Config, &c); err == nil {
			l.need(where, c.Template != "" && c.Data.Source != "" && c.Data.SourceID != "" && len(c.Data.Queries) > 0,
				"config needs template and data with source, source_id and queries")
			for _, name := range sortedKeys(c.Data.Queries) {
				sql = append(sql, c.Data.Queries[name])
			}
		}
	default:
		l.problem(where, "unknown kind %q", f.Kind)
	}
	if err != nil {
		l.problem(where, "config: %v", err)
	}
	if s != nil {
		l.checkParameters(where, sql, s)
	}
}

func (l *loader) need(where string, ok bool, problem string) {
	if !ok {
		l.problem(where, "%s", problem)
	}
}

// checkParameters: every :name must be a required argument, so that no
// statement ever runs with a parameter left open.
func (l *loader) checkParameters(where string, sql []string, s *schema) {
	var open []string
	for _, q := range sql {
		for _, p := range parameters(q) {
			if !s.requires(p) && !slices.Contains(open, p) {
				open = append(open, p)
				l.problem(where, "parameter :%s is not a required argument of the input", p)
			}
		}
	}
}

// strict decodes m into a struct without unknown keys.
func strict(m map[string]any, into any) error {
	raw, err := json.Marshal(orEmpty(m))
	if err != nil {
		return errors.New("has no JSON form")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// parameters lists the :names of an SQL text outside quotes, comments and
// :: casts. The adapter that binds them has its own, complete lexer; this one
// only finds mistakes at load.
func parameters(sql string) []string {
	var out []string
	for i := 0; i < len(sql); i++ {
		switch {
		case sql[i] == '\'' || sql[i] == '"':
			i = skipTo(sql, i+1, sql[i:i+1])
		case strings.HasPrefix(sql[i:], "--"):
			i = skipTo(sql, i, "\n")
		case strings.HasPrefix(sql[i:], "/*"):
			i = skipTo(sql, i+2, "*/")
		case strings.HasPrefix(sql[i:], "::"):
			i++
		case sql[i] == ':':
			j := i + 1
			for j < len(sql) && isWord(sql[j]) {
				j++
			}
			if j > i+1 {
				out = append(out, sql[i+1:j])
				i = j - 1
			}
		}
	}
	return out
}

// skipTo gives the index of the last byte of the next end, or of sql.
func skipTo(sql string, from int, end string) int {
	if n := strings.Index(sql[from:], end); n >= 0 {
		return from + n + len(end) - 1
	}
	return len(sql)
}

func isWord(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}
