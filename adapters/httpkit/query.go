package httpkit

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Limits of a page (contracts section 2).
const (
	defaultLimit = 50
	maxLimit     = 200
)

const (
	longestValue = 200 // bytes of a parameter
	longestName  = 64  // bytes of an unknown parameter's name that are repeated
)

// Query reads the parameters of a list and gathers what is wrong with them.
type Query struct {
	values url.Values
	seen   []string
	bad    []anuencia.FieldError
}

// Query starts reading. Parameters are named "?name" in details.fields.
func (c *Call) Query() *Query {
	q := &Query{}
	var err error
	if q.values, err = url.ParseQuery(c.gin.Request.URL.RawQuery); err != nil {
		q.refuse("", "encoding")
	}
	return q
}

func (q *Query) refuse(name, rule string) {
	q.bad = append(q.bad, anuencia.FieldError{Path: "?" + name, Rule: rule})
}

// Text gives a parameter, "" when it is absent. Twice the same one is refused.
func (q *Query) Text(name string) string {
	q.seen = append(q.seen, name)
	values := q.values[name]
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		q.refuse(name, "once")
	case len(values[0]) > longestValue:
		q.refuse(name, "max")
	case !clean(values[0]):
		q.refuse(name, "characters")
	}
	return values[0]
}

// Enum reads a parameter that must be valid, or one of also, when it is there.
func Enum[T interface {
	~string
	Valid() bool
}](q *Query, name string, also ...T) T {
	v := T(q.Text(name))
	if v != "" && !v.Valid() && !slices.Contains(also, v) {
		q.refuse(name, "oneof")
	}
	return v
}

// ID reads a parameter that must be a canonical uuid when it is there.
func ID[I ~[16]byte](q *Query, name string) I {
	var none I
	v := q.Text(name)
	if v == "" {
		return none
	}
	id, err := anuencia.ParseID[I](v)
	if err != nil {
		q.refuse(name, "uuid")
	}
	return id
}

// Time reads an RFC 3339 instant; the zero time when it is absent.
func (q *Query) Time(name string) time.Time {
	v := q.Text(name)
	if v == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		q.refuse(name, "date-time")
	}
	return t.UTC()
}

// Page reads limit and cursor.
func (q *Query) Page() harness.Page {
	p := harness.Page{Limit: defaultLimit, Before: q.Text("cursor")}
	if p.Before != "" {
		if _, err := anuencia.ParseID[anuencia.EventID](p.Before); err != nil {
			q.refuse("cursor", "cursor")
		}
	}
	if v := q.Text("limit"); v != "" {
		n, err := strconv.Atoi(v)
		switch {
		case err != nil:
			q.refuse("limit", "type")
		case n < 1:
			q.refuse("limit", "min")
		case n > maxLimit:
			q.refuse("limit", "max")
		}
		p.Limit = n
	}
	return p
}

// Err is VALIDATION_FAILED with all that was wrong, unknown parameters too.
func (q *Query) Err() error {
	for name := range q.values {
		if slices.Contains(q.seen, name) {
			continue
		}
		if len(name) > longestName || !clean(name) {
			name = ""
		}
		q.refuse(name, "unknown")
	}
	if len(q.bad) == 0 {
		return nil
	}
	return anuencia.Invalid(anuencia.ReasonSchema, q.bad...)
}
