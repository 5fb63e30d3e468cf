package harness_test

import (
	"sync"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func (w *world) decide(t *testing.T, who string, a harness.Answer, v anuencia.Verdict) (harness.Answer, error) {
	t.Helper()
	return w.svc.Decide(t.Context(), w.as(who), harness.DecideCommand{Ref: w.execution(t, a.Execution.ID).ApprovalID.String(), Verdict: v, Reason: "porque sí"})
}

func (w *world) mustDecide(t *testing.T, who string, a harness.Answer, v anuencia.Verdict) harness.Answer {
	t.Helper()
	ans, err := w.decide(t, who, a, v)
	if err != nil {
		t.Fatalf("%s %s: %v", who, v, err)
	}
	return ans
}

func TestTwoPeopleInAnyOrderFinanceAmongThem(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"finance first": {"finance", "head"}, "finance last": {"head", "finance"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.submit(t, w.as("clerk"), "grant")
			if a.Execution.State != anuencia.StateWaiting {
				t.Fatalf("state %s", a.Execution.State)
			}
			if got := w.mustDecide(t, order[0], a, anuencia.Approve); got.Execution.State != anuencia.StateWaiting {
				t.Fatalf("after one: %s", got.Execution.State)
			}
			w.mustDecide(t, order[1], a, anuencia.Approve)
			w.work(t.Context())
			if e := w.execution(t, a.Execution.ID); e.State != anuencia.StateCompleted || w.runner.Effects(e.ID) != 1 {
				t.Fatalf("state %s", e.State)
			}
			again := w.mustDecide(t, order[0], a, anuencia.Approve)
			if again.Execution.State != anuencia.StateCompleted {
				t.Fatalf("repeat: %s", again.Execution.State)
			}
			_, err := w.decide(t, order[0], a, anuencia.Reject)
			wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonDecided, "")
		})
	}
}

func TestWhoMayNotDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("both"), "grant")
	ref := harness.DecideCommand{Ref: a.Execution.ApprovalID.String(), Verdict: anuencia.Approve, Reason: "r"}

	_, err := w.svc.Decide(t.Context(), w.as("both"), ref)
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyFourEyes)
	_, err = w.svc.Decide(t.Context(), w.as("both", anuencia.ScopeSubmit), ref)
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyFourEyes)
	_, err = w.svc.Decide(t.Context(), w.as("student"), ref)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonNotFound, "")
	_, err = w.svc.Decide(t.Context(), w.as("head", anuencia.ScopeSubmit), ref)
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyScope)

	machine := w.as("head")
	machine.Principal.Person = anuencia.Handle{}
	_, err = w.svc.Decide(t.Context(), machine, ref)
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyOwnCredential)
	acting := w.as("head")
	acting.ActFor = "finance"
	_, err = w.svc.Decide(t.Context(), acting, ref)
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyOwnCredential)

	wrong := ref
	wrong.SubjectHash = "00"
	_, err = w.svc.Decide(t.Context(), w.as("head"), wrong)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonSubjectMismatch, "")
	silent := harness.DecideCommand{Ref: ref.Ref, Verdict: anuencia.Reject}
	_, err = w.svc.Decide(t.Context(), w.as("head"), silent)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonReasonRequired, "")

	if e := w.execution(t, a.Execution.ID); e.State != anuencia.StateWaiting {
		t.Fatalf("state %s", e.State)
	}
}

func TestRejectionEndsItAlsoByOneWhoApproved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.mustDecide(t, "head", a, anuencia.Approve)
	got := w.mustDecide(t, "head", a, anuencia.Reject)
	wantFault(t, got.Execution.Outcome.Fault, anuencia.CodeApprovalRejected, anuencia.ReasonRejected, "")
	_, err := w.decide(t, "finance", a, anuencia.Approve)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonDecided, "")
}

func TestALateDecisionExpiresIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.clock.Advance(time.Hour)
	_, err := w.decide(t, "finance", a, anuencia.Approve)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonExpired, "")
	e := w.execution(t, a.Execution.ID)
	wantFault(t, e.Outcome.Fault, anuencia.CodeTimeout, anuencia.ReasonApprovalExpired, "")
}

func TestAnApprovedRunThatIsResumedTooLateDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.mustDecide(t, "head", a, anuencia.Approve)
	w.clock.Advance(time.Hour)
	w.work(t.Context())
	e := w.execution(t, a.Execution.ID)
	wantFault(t, e.Outcome.Fault, anuencia.CodeTimeout, anuencia.ReasonApprovalExpired, "")
	if w.runner.Effects(e.ID) != 0 {
		t.Fatal("ran after its approval was over")
	}
}

// TestExpiryIsCheckedWhereTheRunStarts: the questions before it may take long.
func TestExpiryIsCheckedWhereTheRunStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.mustDecide(t, "head", a, anuencia.Approve)
	w.runner.OnPlan = func() { w.clock.Advance(2 * time.Hour) }
	w.work(t.Context())
	e := w.execution(t, a.Execution.ID)
	wantFault(t, e.Outcome.Fault, anuencia.CodeTimeout, anuencia.ReasonApprovalExpired, "")
	if w.runner.Effects(e.ID) != 0 {
		t.Fatal("ran after its approval was over")
	}
}

// TestAnApproverWhoIsGoneDoesNotCount: suspended, or without the role, between
// the decision and the run.
func TestAnApproverWhoIsGoneDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*anuencia.Person){
		"suspended":        func(p *anuencia.Person) { p.Suspended = true },
		"without the role": func(p *anuencia.Person) { p.Roles = []string{"head"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.submit(t, w.as("clerk"), "grant")
			w.mustDecide(t, "finance", a, anuencia.Approve)
			p := w.dir.People["finance"]
			change(&p)
			w.dir.Set("finance", p)
			w.mustDecide(t, "head", a, anuencia.Approve)
			w.work(t.Context())
			e := w.execution(t, a.Execution.ID)
			if e.State != anuencia.StateWaiting || e.ApprovalID == a.Execution.ApprovalID || w.runner.Effects(e.ID) != 0 {
				t.Fatalf("state %s, effects %d", e.State, w.runner.Effects(e.ID))
			}
		})
	}
}

func TestAChangeBehindTheApproverAsksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	first := a.Execution.ApprovalID
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.runner.Touch()
	w.mustDecide(t, "head", a, anuencia.Approve)
	w.work(t.Context())
	e := w.execution(t, a.Execution.ID)
	if e.State != anuencia.StateWaiting || e.ApprovalID == first || w.runner.Effects(e.ID) != 0 {
		t.Fatalf("state %s", e.State)
	}
	old, err := w.store.Approval(t.Context(), first)
	if err != nil || old.Status != anuencia.ApprovalSuperseded {
		t.Fatalf("old approval %s, %v", old.Status, err)
	}
	_, err = w.svc.Decide(t.Context(), w.as("head"), harness.DecideCommand{Ref: old.ShortCode, Verdict: anuencia.Approve})
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonSuperseded, "")
}

func TestALaterDenialOutvotesAnApproval(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.mustDecide(t, "head", a, anuencia.Approve)
	w.deny = true
	w.work(t.Context())
	e := w.execution(t, a.Execution.ID)
	wantFault(t, e.Outcome.Fault, anuencia.CodePolicyDenied, "", "told.to")
}

func TestASuspendedRequesterDoesNotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.mustDecide(t, "head", a, anuencia.Approve)
	p := w.dir.People["clerk"]
	p.Suspended = true
	w.dir.Set("clerk", p)
	w.work(t.Context())
	wantFault(t, w.execution(t, a.Execution.ID).Outcome.Fault, anuencia.CodeIdentityNotFound, anuencia.ReasonActor, "")
}

func TestWithdrawing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	_, err := w.svc.Cancel(t.Context(), w.as("student"), a.Execution.ID)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonNotFound, "")
	got, err := w.svc.Cancel(t.Context(), w.as("clerk"), a.Execution.ID)
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, got.Execution.Outcome.Fault, anuencia.CodeApprovalRejected, anuencia.ReasonWithdrawn, "")
	_, err = w.decide(t, "finance", a, anuencia.Approve)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonWithdrawn, "")
	again, err := w.svc.Cancel(t.Context(), w.as("clerk"), a.Execution.ID)
	if err != nil || again.Execution.Head != got.Execution.Head {
		t.Fatalf("cancelled twice: %v", err)
	}
}

func TestFiftyDecidersAtOnceGiveOneOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			v := anuencia.Approve
			if i%5 == 0 {
				v = anuencia.Reject
			}
			_, err := w.decide(t, []string{"head", "finance"}[i%2], a, v)
			if err != nil {
				if f := anuencia.AsFault(err); f.Reason != anuencia.ReasonDecided {
					t.Errorf("decider %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	w.work(t.Context())
	e := w.execution(t, a.Execution.ID)
	if !e.State.Terminal() || w.runner.Effects(e.ID) > 1 || (e.State == anuencia.StateCompleted) != (w.runner.Effects(e.ID) == 1) {
		t.Fatalf("state %s, effects %d", e.State, w.runner.Effects(e.ID))
	}
}
