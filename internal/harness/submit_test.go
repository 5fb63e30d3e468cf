package harness_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func TestLowRiskRunsAtOnceAndEveryStepIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("student"), "read")
	if a.Execution.State != anuencia.StateCompleted || !a.Ran || !a.Submitted || a.Execution.Outcome.Result != `{"done":true}` {
		t.Fatalf("answer: %+v", a)
	}
	want := []anuencia.EventType{
		anuencia.EventReceived, anuencia.EventIdentityResolved, anuencia.EventRateChecked, anuencia.EventValidated,
		anuencia.EventPolicyEvaluated, anuencia.EventAgentStarted, anuencia.EventToolRequested, anuencia.EventToolCompleted, anuencia.EventCompleted,
	}
	if got := w.types(t, a.Execution.ID); !slices.Equal(got, want) {
		t.Fatalf("events %v", got)
	}
	if e := w.execution(t, a.Execution.ID); e.SubjectRef != "s1" || e.Version != 2 {
		t.Fatalf("kept %+v", e)
	}
}

func TestDenialsAreExecutionsThatFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(*world)
		intent  string
		code    anuencia.Code
		reason  anuencia.Reason
		policy  string
	}{
		"denied by policy": {func(w *world) { w.deny = true }, "read", anuencia.CodePolicyDenied, "", "told.to"},
		"engine away":      {func(w *world) { w.engine = errors.New("late") }, "read", anuencia.CodePolicyDenied, "", anuencia.PolicyEngine},
		"unknown intent":   {func(*world) {}, "nada", anuencia.CodeValidation, anuencia.ReasonUnknownIntent, ""},
		"nobody could decide": {func(w *world) {
			for _, name := range []string{"finance", "both"} {
				p := w.dir.People[name]
				p.Suspended = true
				w.dir.Set(name, p)
			}
		}, "grant", anuencia.CodePolicyDenied, "", anuencia.PolicyNoApprover},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.arrange(w)
			a := w.submit(t, w.as("clerk"), c.intent)
			wantFault(t, a.Execution.Outcome.Fault, c.code, c.reason, c.policy)
			types := w.types(t, a.Execution.ID)
			if a.Execution.State != anuencia.StateFailed || types[len(types)-1] != anuencia.EventFailed || w.runner.Effects(a.Execution.ID) != 0 {
				t.Fatalf("state %s, events %v", a.Execution.State, types)
			}
		})
	}
}

func TestRefusalsBeforeAnExecutionBindNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*world, *harness.Request, *harness.Submission)
		code   anuencia.Code
		reason anuencia.Reason
		policy string
	}{
		"no scope": {func(_ *world, r *harness.Request, _ *harness.Submission) {
			r.Principal.Scopes = []anuencia.Scope{anuencia.ScopeAudit}
		}, anuencia.CodePolicyDenied, "", anuencia.PolicyScope},
		"foreign channel": {
			func(_ *world, r *harness.Request, _ *harness.Submission) { r.Channel = anuencia.ChannelN8N },
			anuencia.CodePolicyDenied, "", anuencia.PolicyScope,
		},
		"no actor": {
			func(_ *world, r *harness.Request, _ *harness.Submission) { r.Principal.Person = anuencia.Handle{} },
			anuencia.CodeIdentityNotFound, anuencia.ReasonActor, "",
		},
		"acts for nobody": {
			func(_ *world, r *harness.Request, _ *harness.Submission) { r.ActFor = "student" },
			anuencia.CodePolicyDenied, "", anuencia.PolicyActFor,
		},
		"acts for another role": {func(_ *world, r *harness.Request, _ *harness.Submission) {
			r.ActFor, r.Principal.ActFor = "head", []string{"student"}
		}, anuencia.CodeIdentityNotFound, anuencia.ReasonActor, ""},
		"directory away": {
			func(w *world, _ *harness.Request, _ *harness.Submission) { w.dir.SetDown(errors.New("no route")) },
			anuencia.CodeInternal, anuencia.ReasonUnavailable, "",
		},
		"store away": {
			func(w *world, _ *harness.Request, _ *harness.Submission) { w.store.FailBefore(1) },
			anuencia.CodeInternal, anuencia.ReasonUnavailable, "",
		},
		"inexact number": {
			func(_ *world, _ *harness.Request, s *harness.Submission) { s.Input = []byte(`{"n":9007199254740993}`) },
			anuencia.CodeValidation, anuencia.ReasonSchema, "",
		},
		"no input": {
			func(_ *world, _ *harness.Request, s *harness.Submission) { s.Input = nil },
			anuencia.CodeValidation, anuencia.ReasonSchema, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, s := w.as("clerk"), harness.Submission{Intent: "read", Input: []byte(`{}`), Keys: []string{"k"}, Route: "test"}
			c.change(w, &r, &s)
			_, err := w.svc.Submit(t.Context(), r, s)
			wantFault(t, err, c.code, c.reason, c.policy)
			if n := len(w.store.AllExecutions()); n != 0 {
				t.Fatalf("%d executions", n)
			}
			if _, bound, err := w.store.Key(t.Context(), r.Principal.ID, "k"); bound || err != nil {
				t.Fatalf("key bound: %v %v", bound, err)
			}
		})
	}
}

func TestOneKeyTwentyTimesAtOnceIsOneExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := make([]anuencia.ExecutionID, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = w.submit(t, w.as("student"), "read", "key-1").Execution.ID })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] || w.runner.Effects(id) != 1 {
			t.Fatalf("ids %v", ids)
		}
	}
	other := harness.Submission{Intent: "read", Input: []byte(`{"subject":"s2"}`), Keys: []string{"key-1"}, Route: "test"}
	_, err := w.svc.Submit(t.Context(), w.as("student"), other)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonKeyReused, "")
}

func TestKeysThatPointAtTwoExecutionsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.submit(t, w.as("student"), "read", "a"), w.submit(t, w.as("student"), "read", "b")
	if one.Execution.ID == two.Execution.ID {
		t.Fatal("different keys, one execution")
	}
	s := harness.Submission{Intent: "read", Input: []byte(`{"subject":"s1"}`), Keys: []string{"a", "b"}, Route: "test"}
	_, err := w.svc.Submit(t.Context(), w.as("student"), s)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonKeyReused, "")
}

func TestATakenShortCodeIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sameCodes = 2
	one, two := w.submit(t, w.as("student"), "read"), w.submit(t, w.as("student"), "read")
	if one.Execution.ShortCode == two.Execution.ShortCode || two.Execution.State != anuencia.StateCompleted {
		t.Fatalf("codes %q and %q", one.Execution.ShortCode, two.Execution.ShortCode)
	}
}

func TestARunThatOutlivesTheWaitIsToldAsUnfinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runner.Lose("before")
	w.runner.SetLookDown(true)
	a := w.submit(t, w.as("student"), "read")
	if e := w.execution(t, a.Execution.ID); !a.Unfinished || e.State != anuencia.StateRunning {
		t.Fatalf("state %s, answer %+v", e.State, a)
	}
}

// TestAnOutcomeThatCannotBeCommittedIsNoFailure: the effect happened, so nobody
// is told that it failed; the sweep settles it, and the mask still holds.
func TestAnOutcomeThatCannotBeCommittedIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mask = []string{"/done"}
	w.runner.OnRun = func() { w.store.FailBefore(1) }
	a := w.submit(t, w.as("student"), "read", "key")
	w.runner.OnRun = nil
	if !a.Unfinished || w.runner.Effects(a.Execution.ID) != 1 {
		t.Fatalf("answer %+v", a)
	}
	if err := w.svc.SweepOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := w.execution(t, a.Execution.ID)
	if e.State != anuencia.StateCompleted || w.runner.Effects(e.ID) != 1 || e.Outcome.Result != `{"masked":"/done"}` {
		t.Fatalf("state %s, result %s", e.State, e.Outcome.Result)
	}
}

// TestComeAgainIsOnlySaidOfWhatWasNotTakenIn: a tool whose source is away ends a
// committed execution as an ordinary failure.
func TestComeAgainIsOnlySaidOfWhatWasNotTakenIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runner.Effect = false
	w.runner.Err = anuencia.Unavailable("source", errors.New("no route"))
	a := w.submit(t, w.as("student"), "read", "key")
	wantFault(t, a.Execution.Outcome.Fault, anuencia.CodeInternal, "", "")
}

func TestSecretsDoNotReachTheAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := harness.Submission{Intent: "grant", Input: []byte(`{"subject":"s1","note":"hunter2"}`), Metadata: []byte(`{"pw":"hunter2"}`), Route: "test"}
	r := w.as("clerk")
	if _, err := w.svc.Submit(t.Context(), r, s); err != nil {
		t.Fatal(err)
	}
	chain, err := w.store.Stream(t.Context(), anuencia.StreamOf(r.ID))
	if err != nil || len(chain) == 0 {
		t.Fatal(err)
	}
	for _, e := range chain {
		if strings.Contains(e.PayloadText, "hunter2") {
			t.Errorf("%s keeps a secret for ever: %s", e.Type, e.PayloadText)
		}
	}
}
