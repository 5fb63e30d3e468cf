package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// The files as written. Unknown keys are refused: a misspelt bound must not be
// a missing one.
type (
	intentFile struct {
		Name           string             `yaml:"name"`
		Title          map[string]string  `yaml:"title"`
		Description    map[string]string  `yaml:"description"`
		Subject        string             `yaml:"subject"`
		Risk           anuencia.Risk      `yaml:"risk"`
		Roles          []string           `yaml:"roles"`
		OwnRoles       []string           `yaml:"own_roles"`
		Agent          string             `yaml:"agent"`
		Tool           string             `yaml:"tool"`
		Command        string             `yaml:"command"`
		Timeout        duration           `yaml:"timeout"`
		Limit          limitFile          `yaml:"limit"`
		Input          map[string]any     `yaml:"input"`
		Responsibility responsibilityFile `yaml:"responsibility"`
	}
	limitFile struct {
		Count  int      `yaml:"count"`
		Window duration `yaml:"window"`
		Burst  int      `yaml:"burst"`
	}
	responsibilityFile struct {
		OwnerUnit  string `yaml:"owner_unit"`
		Supervisor string `yaml:"supervisor"`
		Appeals    string `yaml:"appeals"`
		LegalBasis string `yaml:"legal_basis"`
	}
	agentsFile struct {
		Agents []agentFile `yaml:"agents"`
	}
	agentFile struct {
		Name   string   `yaml:"name"`
		Runner string   `yaml:"runner"`
		Tools  []string `yaml:"tools"`
		Roles  []string `yaml:"roles"`
	}
	toolsFile struct {
		Tools []toolFile `yaml:"tools"`
	}
	toolFile struct {
		Name        string            `yaml:"name"`
		Kind        string            `yaml:"kind"`
		Description map[string]string `yaml:"description"`
		Risk        anuencia.Risk     `yaml:"risk"`
		Timeout     duration          `yaml:"timeout"`
		Effect      bool              `yaml:"effect"`
		Idempotent  bool              `yaml:"idempotent"`
		Input       map[string]any    `yaml:"input"`
		Config      map[string]any    `yaml:"config"`
	}
	messagesFile struct {
		Language string               `yaml:"language"`
		Errors   map[string]errorFile `yaml:"errors"`
		Warnings map[string]string    `yaml:"warnings"`
		Texts    map[string]any       `yaml:"texts"` // words, or sections of words
	}
	errorFile struct {
		Message string            `yaml:"message"`
		Reasons map[string]string `yaml:"reasons"`
	}
)

// duration is written as Go writes it: "30s", "72h".
type duration time.Duration

// UnmarshalYAML reads a duration.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	var s string
	if err := n.Decode(&s); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("line %d: %q is not a duration such as 30s", n.Line, s)
	}
	*d = duration(v)
	return nil
}

// decodeStrict reads exactly one YAML document without unknown keys.
func decodeStrict(raw []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		}
		return fmt.Errorf("read yaml: %w", err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document in the file")
	}
	return nil
}
