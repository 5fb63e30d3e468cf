package config

import "log/slog"

// redacted is what a secret shows of itself.
const redacted = "[redacted]"

// Secret is a setting that never shows itself: not when printed, logged or
// encoded. Reveal is the only way to its value.
type Secret string

// Reveal gives the value.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
