package harness_test

import (
	"testing"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// TestTheBrakeStopsIntakeAndResume, also of what was approved before, until
// another person takes it off.
func TestTheBrakeStopsIntakeAndResume(t *testing.T) {
	t.Parallel()
	for name, intent := range map[string]string{"one intent": "grant", "all": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.submit(t, w.as("clerk"), "grant")
			w.mustDecide(t, "finance", a, anuencia.Approve)
			w.mustDecide(t, "head", a, anuencia.Approve)
			admin := w.as("head", anuencia.ScopeAdmin)
			h, err := w.svc.PlaceHold(t.Context(), admin, intent, "algo va mal")
			if err != nil {
				t.Fatal(err)
			}
			w.work(t.Context())
			if e := w.execution(t, a.Execution.ID); e.State != anuencia.StateApproved || w.runner.Effects(e.ID) != 0 {
				t.Fatalf("state %s under the brake", e.State)
			}
			stopped := w.submit(t, w.as("clerk"), "grant")
			wantFault(t, stopped.Execution.Outcome.Fault, anuencia.CodePolicyDenied, "", anuencia.PolicyHold)
			// Another world, since a run here would change what was approved.
			w2 := newWorld(t)
			if _, err := w2.svc.PlaceHold(t.Context(), w2.as("head", anuencia.ScopeAdmin), intent, "algo va mal"); err != nil {
				t.Fatal(err)
			}
			read := w2.submit(t, w2.as("student"), "read")
			if (read.Execution.State == anuencia.StateCompleted) != (intent != "") {
				t.Fatalf("read ended %s", read.Execution.State)
			}

			_, err = w.svc.LiftHold(t.Context(), admin, h.ID, "ya está")
			wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyFourEyes)
			_, err = w.svc.LiftHold(t.Context(), w.as("finance"), h.ID, "ya está")
			wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyScope)
			other := w.as("finance", anuencia.ScopeAdmin)
			_, err = w.svc.LiftHold(t.Context(), other, h.ID, " ")
			wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonReasonRequired, "")
			if _, err = w.svc.LiftHold(t.Context(), other, h.ID, "ya está"); err != nil {
				t.Fatal(err)
			}
			_, err = w.svc.LiftHold(t.Context(), other, h.ID, "otra vez")
			wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonDecided, "")
			if err := w.svc.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if e := w.execution(t, a.Execution.ID); e.State != anuencia.StateCompleted || w.runner.Effects(e.ID) != 1 {
				t.Fatalf("state %s after the brake", e.State)
			}
		})
	}
}

func TestWhoMayBrake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.svc.PlaceHold(t.Context(), w.as("head"), "", "r")
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyScope)
	admin := w.as("head", anuencia.ScopeAdmin)
	_, err = w.svc.PlaceHold(t.Context(), admin, "nada", "r")
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonUnknownIntent, "")
	_, err = w.svc.PlaceHold(t.Context(), admin, "", "")
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonReasonRequired, "")
	machine := admin
	machine.Principal.Person = anuencia.Handle{}
	_, err = w.svc.PlaceHold(t.Context(), machine, "", "r")
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyOwnCredential)
	if list, err := w.svc.Holds(t.Context(), admin); err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
}
