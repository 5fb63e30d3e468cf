package harness_test

import (
	"errors"
	"slices"
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
		}, anuencia.CodePolicyDenied, "", anuencia.PolicyActFor},
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
	r := w.as("student")
	_, err := w.svc.Submit(t.Context(), r, harness.Submission{Intent: "read", Input: []byte(`{}`), Route: "test"})
	if err == nil {
		// The wait of one millisecond was over first: the run is still on record.
		if e := w.execution(t, r.ID); e.State != anuencia.StateRunning {
			t.Fatalf("state %s", e.State)
		}
		return
	}
	wantFault(t, err, anuencia.CodeInternal, anuencia.ReasonUnavailable, "")
}
