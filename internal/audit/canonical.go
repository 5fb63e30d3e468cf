// Package audit is the evidence: the canonical form, the hash chain of each
// stream and its verification, as functions over values. It knows no database
// and no transport.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Limits of any JSON that is accepted (contracts section 6).
const (
	MaxDepth = 64
	MaxKeys  = 10_000
	// maxExact is 2^53-1: beyond it RFC 8785 maps distinct integers to one.
	maxExact = 1<<53 - 1
)

// Canonical brings JSON to its RFC 8785 form. Refused as
// VALIDATION_FAILED/malformed: what is no JSON, duplicate keys, invalid UTF-8,
// more than MaxDepth levels or MaxKeys keys, trailing data. Refused as
// VALIDATION_FAILED/schema with the path: numbers that have no exact canonical
// form (core-data.md, Do 8), and the character NUL, which PostgreSQL's text
// cannot keep.
func Canonical(raw []byte) (string, error) { return canonical(raw, MaxDepth, MaxKeys) }

func canonical(raw []byte, depth, keys int) (string, error) {
	if err := check(raw, depth, keys); err != nil {
		return "", err
	}
	v := jsontext.Value(bytes.Clone(raw)) // Canonicalize works in place
	if err := v.Canonicalize(); err != nil {
		return "", malformed(err)
	}
	return string(v), nil
}

// CanonicalOf is Canonical of the JSON encoding of v, for values that our own
// code built. MaxDepth and MaxKeys do not apply: they are for what callers send,
// and a table of many rows, or an event around the largest input, is larger.
func CanonicalOf(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return canonical(raw, math.MaxInt, math.MaxInt)
}

// Digest is the hex SHA-256 of text.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func check(raw []byte, maxDepth, keysLeft int) error {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := d.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		if d.StackDepth() > maxDepth {
			return malformed(errors.New("too deep"))
		}
		if err := checkToken(d, tok, &keysLeft); err != nil {
			return err
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed(errors.New("data after the value"))
	}
	return nil
}

func checkToken(d *jsontext.Decoder, tok jsontext.Token, keysLeft *int) error {
	switch tok.Kind() { //nolint:exhaustive // only strings and numbers can be refused here
	case '"':
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 {
			if *keysLeft--; *keysLeft < 0 {
				return malformed(errors.New("too many keys"))
			}
		}
		if strings.ContainsRune(tok.String(), 0) {
			return unexact(d, "nul")
		}
	case '0':
		if !exact(tok.String()) {
			return unexact(d, "exact_number")
		}
	}
	return nil
}

// exact says whether the number survives RFC 8785 unchanged in value: integers
// up to 2^53-1, others finite as float64.
func exact(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	return math.Trunc(f) != f || math.Abs(f) <= maxExact
}

func malformed(err error) error {
	return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMalformed).WithCause(err)
}

func unexact(d *jsontext.Decoder, rule string) error {
	return anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{
		// The pointer names what was sent, NUL too, which no row could keep.
		Path: strings.ReplaceAll(string(d.StackPointer()), "\x00", ""), Rule: rule,
	})
}
