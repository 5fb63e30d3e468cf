package rest

import (
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// list is the shape of every list.
type list[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

func listOf[A, T any](items []A, next string, row func(A) T) list[T] {
	out := list[T]{Items: make([]T, len(items)), NextCursor: optional(next)}
	for i, it := range items {
		out.Items[i] = row(it)
	}
	return out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func optionalID[K any](v anuencia.ID[K]) *string {
	if v.IsZero() {
		return nil
	}
	return optional(v.String())
}

// orNull gives JSON text as it is, null for none.
func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// nonNil: arrays are never null.
func nonNil(list []string) []string { return append([]string{}, list...) }

func texts[S ~string](in []S) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

func hexOf(b [32]byte) string { return hex.EncodeToString(b[:]) }

// textIn gives the words in a language, else in Spanish, else the fallback.
func textIn(t anuencia.Text, lang, fallback string) string {
	if v := t[lang]; v != "" {
		return v
	}
	if v := t["es"]; v != "" {
		return v
	}
	return fallback
}
