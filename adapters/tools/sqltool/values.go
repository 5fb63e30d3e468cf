package sqltool

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/anuencia-harness/anuencia/internal/audit"
)

// maxExact is the largest integer that JSON numbers carry exactly; larger ones
// become strings.
const maxExact = 1<<53 - 1

// arguments reads a call's arguments, keeping integers integers.
func arguments(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return out, nil
}

// bindable turns a JSON value into what a driver takes; lists and objects are
// bound as their JSON text.
func bindable(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("number: %w", err)
		}
		return f, nil
	case nil, bool, string, int, int64, float64:
		return v, nil
	default:
		text, err := audit.CanonicalOf(v)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return text, nil
	}
}

// querier is a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// read runs a query and gives its rows as JSON values by column name, at most
// limit of them (0: all), and whether there were more.
func read(ctx context.Context, q querier, d dialect, query string, args map[string]any, limit int) ([]map[string]any, bool, error) {
	st, err := prepare(query, d)
	if err != nil {
		return nil, false, fmt.Errorf("query: %w", err)
	}
	bound, err := st.bind(args)
	if err != nil {
		return nil, false, err
	}
	text := st.text
	if limit > 0 {
		// One more than asked, so that a cut shows, and the database stops there.
		text = "select * from (\n" + text + "\n) as anuencia_rows limit " + strconv.Itoa(limit+1)
	}
	rows, err := q.QueryContext(ctx, text, bound...)
	if err != nil {
		return nil, false, fmt.Errorf("query: %w", err)
	}
	out, err := scan(rows)
	if err != nil {
		return nil, false, fmt.Errorf("read rows: %w", err)
	}
	if limit > 0 && len(out) > limit {
		return out[:limit], true, nil
	}
	return out, false, nil
}

// scan reads all rows and closes them.
func scan(rows *sql.Rows) (out []map[string]any, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, fmt.Errorf("columns: %w", err)
	}
	out = []map[string]any{}
	values := make([]any, len(types))
	into := make([]any, len(types))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
		row := make(map[string]any, len(types))
		for i, t := range types {
			if _, twice := row[t.Name()]; twice {
				return nil, fmt.Errorf("column %q twice", t.Name())
			}
			row[t.Name()] = jsonValue(values[i], t.DatabaseTypeName())
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return out, nil
}

// jsonValue gives a column's value an exact JSON form.
func jsonValue(v any, typeName string) any {
	switch v := v.(type) {
	case int64:
		if v > maxExact || v < -maxExact {
			return strconv.FormatInt(v, 10)
		}
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) || math.Trunc(v) == v && math.Abs(v) > maxExact {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case time.Time:
		if typeName == "DATE" {
			return v.Format(time.DateOnly)
		}
		return v.UTC().Format(time.RFC3339Nano)
	case []byte:
		if typeName == "BYTEA" || typeName == "BLOB" || typeName == "" {
			return base64.StdEncoding.EncodeToString(v)
		}
		return cleanText(string(bytes.Clone(v)))
	case string:
		return cleanText(v)
	default: // nil, bool
		return v
	}
}

// cleanText replaces what JSON or the store cannot keep: invalid UTF-8 and NUL.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// canonicalRows is the RFC 8785 text of a list of rows.
func canonicalRows(rows []map[string]any) (string, error) {
	text, err := audit.CanonicalOf(rows)
	if err != nil {
		return "", fmt.Errorf("canonical rows: %w", err)
	}
	return text, nil
}
