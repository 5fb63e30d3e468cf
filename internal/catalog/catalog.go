// Package catalog loads the catalog folder (intents, agents, tools, messages)
// and refuses what is inconsistent, with all problems named at once. A Catalog
// is one revision: immutable and safe for concurrent use.
package catalog

import (
	"fmt"
	"slices"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Catalog is one revision of the catalog folder.
type Catalog struct {
	revision string
	intents  map[string]anuencia.Intent
	names    []string // of intents, sorted
	agents   map[string]anuencia.Agent
	tools    map[string]anuencia.Tool
	inputs   map[string]*schema // by intent
	args     map[string]*schema // by tool
	words    map[string]words   // by language
}

// DefaultLanguage is the language of a text that the asked language lacks
// (contracts section 1).
const DefaultLanguage = "es"

// Languages lists the languages that every catalog has, the default first.
func Languages() []string { return []string{"es", "en"} }

// Revision is the hex SHA-256 over all files that were read.
func (c *Catalog) Revision() string { return c.revision }

// Intent gives the intent of that name.
func (c *Catalog) Intent(name string) (anuencia.Intent, bool) {
	in, ok := c.intents[name]
	return in, ok
}

// Intents gives all intents, by name.
func (c *Catalog) Intents() []anuencia.Intent {
	out := make([]anuencia.Intent, 0, len(c.names))
	for _, n := range c.names {
		out = append(out, c.intents[n])
	}
	return out
}

// Agent gives the agent of that name.
func (c *Catalog) Agent(name string) (anuencia.Agent, bool) {
	a, ok := c.agents[name]
	return a, ok
}

// Tool gives the tool of that name.
func (c *Catalog) Tool(name string) (anuencia.Tool, bool) {
	t, ok := c.tools[name]
	return t, ok
}

// ValidateInput checks input (canonical JSON) against the intent's schema and
// gives its canonical form with defaults applied, and the person it concerns
// ("" when the intent names no subject). Faults: VALIDATION_FAILED/schema, with
// paths into the body (/input/...) and never a value; INTERNAL_ERROR for an
// intent that is not of this catalog.
func (c *Catalog) ValidateInput(in anuencia.Intent, input []byte) (canonical, subject string, err error) {
	s, ok := c.inputs[in.Name]
	if !ok {
		return "", "", anuencia.Internal("validate input", fmt.Errorf("no intent %q in this catalog", in.Name))
	}
	canonical, value, err := s.apply(input, "/input")
	if err != nil {
		return "", "", err
	}
	if in.Subject == "" {
		return canonical, "", nil
	}
	text, ok := lookup(value, in.Subject).(string)
	if !ok {
		return "", "", anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/input" + in.Subject, Rule: "required"})
	}
	return canonical, text, nil
}

// ValidateArguments does the same for a tool's own schema; paths are relative to
// the arguments.
func (c *Catalog) ValidateArguments(tool anuencia.Tool, args []byte) (string, error) {
	s, ok := c.args[tool.Name]
	if !ok {
		return "", anuencia.Internal("validate arguments", fmt.Errorf("no tool %q in this catalog", tool.Name))
	}
	canonical, _, err := s.apply(args, "")
	return canonical, err
}

// Message gives the words of an error. An unknown reason gives the code's own
// message, an unknown language the default one; it is never empty for one of
// the eight codes.
func (c *Catalog) Message(lang string, code anuencia.Code, reason anuencia.Reason) string {
	m := c.wordsOf(lang).errors[code]
	if text, ok := m.Reasons[reason]; ok {
		return text
	}
	return m.Message
}

// WarningMessage gives the words of a warning; for an unknown code the code
// itself, so that a warning is never silent.
func (c *Catalog) WarningMessage(lang, code string) string {
	if text, ok := c.wordsOf(lang).warnings[code]; ok {
		return text
	}
	return code
}

// Text gives the words by key ("state.completed", "rule.intent.own",
// "approval.title"); for an unknown key the key itself.
func (c *Catalog) Text(lang, key string) string {
	if text, ok := c.wordsOf(lang).texts[key]; ok {
		return text
	}
	return key
}

// Texts gives the keys of Text, sorted.
func (c *Catalog) Texts() []string {
	return sortedKeys(c.wordsOf(DefaultLanguage).texts)
}

func (c *Catalog) wordsOf(lang string) words {
	if w, ok := c.words[lang]; ok {
		return w
	}
	return c.words[DefaultLanguage]
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
