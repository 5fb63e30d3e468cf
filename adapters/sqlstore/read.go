package sqlstore

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// maxPage is the longest list that a page may ask for (harness.Page).
const maxPage = 201

// one reads a single row; none is VALIDATION_FAILED/not_found.
func one[T any](q *gorm.DB) (T, error) {
	var row T
	res := q.Limit(1).Scan(&row)
	switch {
	case res.Error != nil:
		return row, fmt.Errorf("query: %w", res.Error)
	case res.RowsAffected == 0:
		return row, anuencia.NotFound()
	}
	return row, nil
}

// many reads all rows of a query.
func many[T any](q *gorm.DB) ([]T, error) {
	var rows []T
	if err := q.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return rows, nil
}

// convert maps rows to values and stops at the first that does not decode.
func convert[R, V any](rows []R, f func(R) (V, error)) ([]V, error) {
	out := make([]V, 0, len(rows))
	for _, r := range rows {
		v, err := f(r)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func isNotFound(err error) bool { return errors.Is(err, anuencia.NotFound()) }

// page narrows a query to a keyset page, newest first.
func page(q *gorm.DB, p harness.Page) *gorm.DB {
	if p.Before != "" {
		q = q.Where("id < ?", p.Before)
	}
	limit := p.Limit
	if limit < 1 || limit > maxPage {
		limit = maxPage
	}
	return q.Order("id desc").Limit(limit)
}

// where narrows by equality unless the value is the zero one.
func where[T comparable](q *gorm.DB, column string, v T, arg func(T) any) *gorm.DB {
	var zero T
	if v == zero {
		return q
	}
	return q.Where(column+" = ?", arg(v))
}

func text[T ~string](v T) any { return string(v) }
