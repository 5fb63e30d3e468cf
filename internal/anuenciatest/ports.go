package anuenciatest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Clock is set by hand. Safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	t  time.Time
}

// NewClock starts at a fixed instant.
func NewClock() *Clock { return &Clock{t: time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)} }

// Now gives the instant and moves on by a microsecond, so that no two are equal.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(time.Microsecond)
	return c.t
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.mu.Lock(); c.t = c.t.Add(d); c.mu.Unlock() }

// Directory is a map of people by external id, the same on every channel.
type Directory struct {
	mu     sync.Mutex
	People map[string]anuencia.Person
	Down   error
}

// Resolve implements harness.Directory.
func (d *Directory) Resolve(_ context.Context, h anuencia.Handle) (anuencia.Actor, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Down != nil {
		return anuencia.Actor{}, anuencia.Unavailable("directory", d.Down)
	}
	p, ok := d.People[h.ExternalID]
	if !ok || p.Suspended {
		return anuencia.Actor{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor)
	}
	return anuencia.Actor{Person: p, Handle: h}, nil
}

// ResolveFresh implements harness.Directory.
func (d *Directory) ResolveFresh(ctx context.Context, h anuencia.Handle) (anuencia.Actor, error) {
	return d.Resolve(ctx, h)
}

// Holders implements harness.Directory.
func (d *Directory) Holders(_ context.Context, role string) ([]anuencia.Person, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Down != nil {
		return nil, anuencia.Unavailable("directory", d.Down)
	}
	var out []anuencia.Person
	for _, p := range d.People {
		if !p.Suspended && slices.Contains(p.Roles, role) {
			out = append(out, p)
		}
	}
	return out, nil
}

// Set replaces a person.
func (d *Directory) Set(externalID string, p anuencia.Person) {
	d.mu.Lock()
	d.People[externalID] = p
	d.mu.Unlock()
}

// SetDown makes every answer an error, until nil.
func (d *Directory) SetDown(err error) { d.mu.Lock(); d.Down = err; d.mu.Unlock() }

// PolicyFunc is a harness.Policy made of a function.
type PolicyFunc func(ctx context.Context, in harness.PolicyInput) (anuencia.Decision, error)

// Decide implements harness.Policy.
func (f PolicyFunc) Decide(ctx context.Context, in harness.PolicyInput) (anuencia.Decision, error) {
	return f(ctx, in)
}

// Revision implements harness.Policy.
func (f PolicyFunc) Revision() string { return "test" }

// NoLimits is a harness.Limiter that lets all pass.
type NoLimits struct{}

// Allow implements harness.Limiter.
func (NoLimits) Allow(context.Context, ...harness.RateKey) (harness.RateResult, error) {
	return harness.RateResult{Allowed: true}, nil
}

// Catalog is a harness.Catalog over a list of intents; any JSON object is a
// valid input, and its member "subject" is the person concerned.
type Catalog struct {
	List  []anuencia.Intent
	Tools map[string]anuencia.Tool
}

// Revision implements harness.Catalog.
func (c *Catalog) Revision() string { return "test" }

// Intent implements harness.Catalog.
func (c *Catalog) Intent(name string) (anuencia.Intent, bool) {
	for _, in := range c.List {
		if in.Name == name {
			return in, true
		}
	}
	return anuencia.Intent{}, false
}

// Intents implements harness.Catalog.
func (c *Catalog) Intents() []anuencia.Intent { return c.List }

// Agent implements harness.Catalog.
func (c *Catalog) Agent(name string) (anuencia.Agent, bool) {
	return anuencia.Agent{Name: name, Runner: "direct"}, true
}

// Tool implements harness.Catalog.
func (c *Catalog) Tool(name string) (anuencia.Tool, bool) { t, ok := c.Tools[name]; return t, ok }

// ValidateInput implements harness.Catalog.
func (c *Catalog) ValidateInput(_ anuencia.Intent, input []byte) (string, string, error) {
	var v map[string]any
	if err := json.Unmarshal(input, &v); err != nil {
		return "", "", anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/input", Rule: "type"})
	}
	text, err := audit.Canonical(input)
	subject, _ := v["subject"].(string)
	return text, subject, err
}

// ValidateArguments implements harness.Catalog.
func (c *Catalog) ValidateArguments(_ anuencia.Tool, args []byte) (string, error) {
	return audit.Canonical(args)
}

// PlainGuard is a harness.Guard with one secret, "hunter2", and masks that
// replace the whole result by their first pointer.
type PlainGuard struct{}

// Inspect implements harness.Guard.
func (PlainGuard) Inspect(result string, mask []string) (string, []harness.Redaction, error) {
	if len(mask) > 0 {
		text, err := audit.CanonicalOf(map[string]string{"masked": mask[0]})
		return text, []harness.Redaction{{Rule: "mask", Path: mask[0]}}, err
	}
	cut := strings.ReplaceAll(result, "hunter2", "[cut]")
	if cut == result {
		return result, nil, nil
	}
	return cut, []harness.Redaction{{Rule: "secret"}}, nil
}
