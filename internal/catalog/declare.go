package catalog

import (
	"regexp"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

const (
	defaultTimeout = 30 * time.Second // of a direct intent (contracts section 1)
	maxTimeout     = time.Hour
	maxName        = 80
)

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	commandPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
)

func validName(s string) bool { return len(s) <= maxName && namePattern.MatchString(s) }

func (l *loader) addIntent(where string, f intentFile) {
	if !validName(f.Name) {
		l.problem(where, "name must be lower-case words joined by dots")
	}
	l.bilingual(where, "title", f.Title)
	l.bilingual(where, "description", f.Description)
	if !f.Risk.Valid() {
		l.problem(where, "risk %q is none of low, medium, high, critical", string(f.Risk))
	}
	if f.Command != "" && !commandPattern.MatchString(f.Command) {
		l.problem(where, "command %q is not a bot command", f.Command)
	}
	if f.Timeout == 0 {
		f.Timeout = duration(defaultTimeout)
	}
	if time.Duration(f.Timeout) > maxTimeout {
		l.problem(where, "timeout is over one hour")
	}
	if f.Limit != (limitFile{}) && (f.Limit.Count <= 0 || f.Limit.Window <= 0 || f.Limit.Burst <= 0) {
		l.problem(where, "limit needs count, window and burst, all above zero")
	}
	r := anuencia.Responsibility(f.Responsibility)
	if !l.o.Demo && !r.Complete() {
		l.problem(where, "responsibility needs owner_unit, supervisor, appeals and legal_basis")
	}
	in := anuencia.Intent{
		Name: f.Name, Title: f.Title, Description: f.Description, Subject: f.Subject, Risk: f.Risk,
		Roles: f.Roles, OwnRoles: f.OwnRoles, Agent: f.Agent, Tool: f.Tool, Command: f.Command,
		Timeout:        time.Duration(f.Timeout),
		Limit:          anuencia.Limit{Count: f.Limit.Count, Window: time.Duration(f.Limit.Window), Burst: f.Limit.Burst},
		Responsibility: r,
	}
	if s := l.schemaOf(where, f.Input); s != nil {
		in.InputSchema = []byte(s.text)
		l.c.inputs[f.Name] = s
		l.checkSubject(where, f.Subject, s)
	}
	l.c.intents[f.Name] = in
}

func (l *loader) addTool(where string, f toolFile) {
	if !validName(f.Name) {
		l.problem(where, "name must be lower-case words joined by dots")
	}
	l.bilingual(where, "description", f.Description)
	if !f.Risk.Valid() {
		l.problem(where, "risk %q is none of low, medium, high, critical", string(f.Risk))
	}
	if f.Timeout <= 0 || time.Duration(f.Timeout) > maxTimeout {
		l.problem(where, "timeout must be above zero and one hour at most")
	}
	t := anuencia.Tool{
		Name: f.Name, Kind: f.Kind, Description: f.Description, Risk: f.Risk, Timeout: time.Duration(f.Timeout),
		Effect: f.Effect, Idempotent: f.Idempotent,
	}
	s := l.schemaOf(where, f.Input)
	if s != nil {
		t.InputSchema = []byte(s.text)
		l.c.args[f.Name] = s
	}
	l.checkConfig(where, f, s)
	config, err := audit.CanonicalOf(orEmpty(f.Config))
	if err != nil {
		l.problem(where, "config has no exact JSON form")
	}
	t.Config = []byte(config)
	digest, err := toolDigest(f)
	if err != nil {
		l.problem(where, "the definition has no exact JSON form")
	}
	t.Digest = digest
	l.c.tools[f.Name] = t
}

// toolDigest is the SHA-256 of the RFC 8785 form of the whole definition: what
// an approval binds (governance section 1, rule 2). The words of its description
// are part of it, since the approver read them.
func toolDigest(f toolFile) (string, error) {
	text, err := audit.CanonicalOf(map[string]any{
		"name": f.Name, "kind": f.Kind, "description": f.Description, "risk": string(f.Risk),
		"timeout_ms": time.Duration(f.Timeout).Milliseconds(), "effect": f.Effect, "idempotent": f.Idempotent,
		"input": orEmpty(f.Input), "config": orEmpty(f.Config),
	})
	if err != nil {
		return "", err
	}
	return audit.Digest(text), nil
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func (l *loader) bilingual(where, what string, t map[string]string) {
	for _, lang := range Languages() {
		if t[lang] == "" {
			l.problem(where, "%s has no text in %q", what, lang)
		}
	}
	for lang := range t {
		if lang != "es" && lang != "en" {
			l.problem(where, "%s has a text in unknown language %q", what, lang)
		}
	}
}

func (l *loader) schemaOf(where string, m map[string]any) *schema {
	s, err := compile(m)
	if err != nil {
		l.problem(where, "input: %v", err)
		return nil
	}
	return s
}

// checkSubject: an act must be findable by the person it concerns, so the path
// must lead to a string that every input has.
func (l *loader) checkSubject(where, subject string, s *schema) {
	if subject == "" {
		return
	}
	if !s.requiresString(subject) {
		l.problem(where, "subject %q is not the path of a required string of the input", subject)
	}
}
