package harness_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// world is a Service over a store in memory, with people, two intents and a
// policy that denies when told to.
type world struct {
	svc    *harness.Service
	store  faultyStore
	clock  *anuenciatest.Clock
	dir    *anuenciatest.Directory
	runner *anuenciatest.LedgerRunner
	deny   bool
	engine error
	mask   []string
	req    anuencia.Requirement
	// sameCodes makes so many of the next random values equal.
	sameCodes int
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func person(id string, roles ...string) anuencia.Person {
	return anuencia.Person{ID: anuencia.PersonID(uuid.New()), InstitutionID: id, DisplayName: id, Roles: roles, Institutional: true}
}

// faultyStore is a store that fails when told to, and whose queue the test
// holds.
type faultyStore interface {
	harness.Store
	FailBefore(n int)
	FailAfter(n int)
	TakeJobs() []harness.Job
	Chains() map[anuencia.StreamID][]anuencia.SealedEvent
	AllExecutions() []anuencia.Execution
}

func newWorld(t fataler) *world {
	t.Helper()
	return newWorldOn(t, anuenciatest.NewMemStore())
}

func newWorldOn(t fataler, store faultyStore) *world {
	t.Helper()
	w := &world{
		store: store, clock: anuenciatest.NewClock(), runner: anuenciatest.NewLedgerRunner(),
		dir: &anuenciatest.Directory{People: map[string]anuencia.Person{
			"clerk": person("clerk", "staff"), "student": person("student", "student"),
			"head": person("head", "head"), "finance": person("finance", "finance"), "both": person("both", "head", "finance", "staff"),
		}},
		req: anuencia.Requirement{
			Stages:   []anuencia.Stage{{Roles: []string{"finance"}, Quorum: 1}, {Roles: []string{"head", "finance"}, Quorum: 1}},
			FourEyes: true, ExpiresIn: time.Hour,
		},
	}
	cat := &anuenciatest.Catalog{List: []anuencia.Intent{
		{Name: "read", Agent: "a", Tool: "look", Risk: anuencia.RiskLow, Roles: []string{"*"}},
		{Name: "grant", Agent: "a", Tool: "act", Risk: anuencia.RiskHigh, Roles: []string{"staff"}},
	}}
	svc, err := harness.New(harness.Options{
		Store: w.store, Directory: w.dir, Policy: anuenciatest.PolicyFunc(w.policy), Limiter: anuenciatest.NoLimits{},
		Catalog: func() harness.Catalog { return cat }, Runner: w.runner, Guard: anuenciatest.PlainGuard{},
		Watcher: harness.NewLocalWatcher(), Log: slog.New(slog.DiscardHandler), Now: w.clock.Now,
		NewID:  func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
		Random: w.random,
	})
	if err != nil {
		t.Fatalf("new service: %v", err)
	}
	w.svc = svc
	return w
}

func (w *world) random(p []byte) error {
	if w.sameCodes > 0 {
		w.sameCodes--
		clear(p)
		return nil
	}
	_, err := rand.Read(p)
	return err
}

func (w *world) policy(_ context.Context, in harness.PolicyInput) (anuencia.Decision, error) {
	if w.engine != nil {
		return anuencia.Decision{}, w.engine
	}
	if w.deny {
		return anuencia.Decision{PolicyID: "told.to"}, nil
	}
	return anuencia.Decision{Allow: true, Risk: in.Intent.Risk, Approval: w.req, Mask: w.mask, Revision: "test"}, nil
}

func (w *world) as(name string, scopes ...anuencia.Scope) harness.Request {
	if len(scopes) == 0 {
		scopes = []anuencia.Scope{anuencia.ScopeSubmit, anuencia.ScopeDecide}
	}
	return harness.Request{
		ID: anuencia.ExecutionID(uuid.Must(uuid.NewV7())), Wait: time.Millisecond, Received: w.clock.Now(),
		Principal: anuencia.Principal{
			ID: anuencia.PrincipalID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(name))), Name: name, Scopes: scopes,
			Channels: []anuencia.Channel{anuencia.ChannelAPI},
			Person:   anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: name},
		},
	}
}

// work does the queued jobs until none is left; those that fail wait for the
// next call, as a queue does.
func (w *world) work(ctx context.Context) {
	for range 10 {
		jobs := w.store.TakeJobs()
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			if !j.RunAt.IsZero() && j.RunAt.After(w.clock.Now()) {
				continue // the sweep finds it when it is late
			}
			_ = w.svc.Work(ctx, j) // one that fails is found by the sweep; the invariants are checked after
		}
	}
}

func (w *world) submit(t *testing.T, r harness.Request, intent string, keys ...string) harness.Answer {
	t.Helper()
	r.Wait = 10 * time.Second
	a, err := w.svc.Submit(t.Context(), r, harness.Submission{Intent: intent, Input: []byte(`{"subject":"s1"}`), Keys: keys, Route: "test"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return a
}

func (w *world) types(t *testing.T, id anuencia.ExecutionID) []anuencia.EventType {
	t.Helper()
	chain, err := w.store.Stream(t.Context(), anuencia.StreamOf(id))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]anuencia.EventType, len(chain))
	for i, e := range chain {
		out[i] = e.Type
	}
	return out
}

func (w *world) execution(t *testing.T, id anuencia.ExecutionID) anuencia.Execution {
	t.Helper()
	e, err := w.store.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func wantFault(t *testing.T, err error, code anuencia.Code, reason anuencia.Reason, policy string) {
	t.Helper()
	f := new(anuencia.Fault)
	if !errors.As(err, &f) || f.Code != code || f.Reason != reason || f.Details.PolicyID != policy {
		t.Fatalf("got %v, want %s/%s (%s)", err, code, reason, policy)
	}
}
