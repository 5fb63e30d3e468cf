package sqlstore

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// uid reads an id from a column: uuid on PostgreSQL, canonical text on SQLite,
// null for none.
type uid uuid.UUID

// Scan implements sql.Scanner.
func (u *uid) Scan(src any) error {
	if src == nil {
		*u = uid{}
		return nil
	}
	if err := (*uuid.UUID)(u).Scan(src); err != nil {
		return fmt.Errorf("scan id: %w", err)
	}
	return nil
}

// Value implements driver.Valuer, so that GORM takes it for a column.
func (u *uid) Value() (driver.Value, error) { return idArg(*u), nil }

// GormDataType keeps GORM from guessing.
func (*uid) GormDataType() string { return "uuid" }

// idArg is an id as an argument: null for none.
func idArg[T ~[16]byte](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return uuid.UUID(v).String()
}

// idText is idArg for arrays, where "" stands for null.
func idText[T ~[16]byte](v T) string {
	var zero T
	if v == zero {
		return ""
	}
	return uuid.UUID(v).String()
}

// instant reads a time from a column: timestamptz on PostgreSQL, integer
// microseconds on SQLite, null for the zero time.
type instant struct{ at time.Time }

// Scan implements sql.Scanner.
func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		i.at = time.Time{}
	case time.Time:
		i.at = v.UTC()
	case int64:
		i.at = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("scan time: unexpected %T", src)
	}
	return nil
}

// Value implements driver.Valuer, so that GORM takes it for a column.
func (i *instant) Value() (driver.Value, error) {
	if i.at.IsZero() {
		return nil, nil //nolint:nilnil // null is the value
	}
	return i.at, nil
}

// GormDataType keeps GORM from guessing.
func (*instant) GormDataType() string { return "time" }

// timeArg is a time as an argument of this database: null for the zero time.
func (s *Store) timeArg(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case s.sqlite:
		return t.UnixMicro()
	}
	return t.UTC().Truncate(time.Microsecond)
}

// digest reads 32 bytes.
type digest [32]byte

// Scan implements sql.Scanner.
func (d *digest) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(d) {
		return fmt.Errorf("scan digest: unexpected %T of %d bytes", src, len(b))
	}
	copy(d[:], b)
	return nil
}

// Value implements driver.Valuer, so that GORM takes it for a column.
func (d *digest) Value() (driver.Value, error) { return d[:], nil }

// GormDataType keeps GORM from guessing.
func (*digest) GormDataType() string { return "bytes" }

// encode gives the JSON text of a nested value. Only what our own code built
// comes here, so an error is a defect.
func encode(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode column: %w", err)
	}
	return string(b), nil
}

// decode reads what encode wrote.
func decode[T any](text string) (T, error) {
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("decode column: %w", err)
	}
	return v, nil
}
