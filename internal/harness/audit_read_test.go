package harness_test

import (
	"testing"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func (w *world) accesses(t *testing.T) int {
	t.Helper()
	n := 0
	for _, chain := range w.store.Chains() {
		for _, e := range chain {
			if e.Type == anuencia.EventAccessAudited {
				n++
			}
		}
	}
	return n
}

// TestReadsOfTheAuditAreAudited, whatever route they take, and one's own reads
// are not.
func TestReadsOfTheAuditAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.submit(t, w.as("student"), "read").Execution.ID
	auditor := w.as("head", anuencia.ScopeAudit)
	page := harness.Page{Limit: 10}
	for name, read := range map[string]func(harness.Request) error{
		"events": func(r harness.Request) error {
			_, _, err := w.svc.AuditEvents(t.Context(), r, harness.AuditFilter{Page: page})
			return err
		},
		"reconstruction": func(r harness.Request) error { _, err := w.svc.Reconstruct(t.Context(), r, id); return err },
		"execution":      func(r harness.Request) error { _, err := w.svc.Read(t.Context(), r, id); return err },
		"its events":     func(r harness.Request) error { _, err := w.svc.Events(t.Context(), r, id); return err },
		"list": func(r harness.Request) error {
			_, _, err := w.svc.List(t.Context(), r, harness.ExecutionFilter{Page: page})
			return err
		},
	} {
		before := w.accesses(t)
		if err := read(auditor); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := w.accesses(t) - before; n != 1 {
			t.Errorf("%s left %d events", name, n)
		}
	}
	before := w.accesses(t)
	if _, err := w.svc.Read(t.Context(), w.as("student"), id); err != nil {
		t.Fatal(err)
	}
	if n := w.accesses(t) - before; n != 0 {
		t.Errorf("one's own read left %d events", n)
	}
	acting := auditor
	acting.ActFor = "student"
	_, _, err := w.svc.AuditEvents(t.Context(), acting, harness.AuditFilter{Page: page})
	wantFault(t, err, anuencia.CodePolicyDenied, "", anuencia.PolicyActFor)
}

// TestARefusedAttemptNamesWhoTried, under the rules in force.
func TestARefusedAttemptNamesWhoTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.as("clerk")
	err := w.svc.Refuse(t.Context(), r, anuencia.Denied(anuencia.PolicyFourEyes), map[string]any{"operation": harness.OperationDecide})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := w.store.Stream(t.Context(), anuencia.StreamOf(r.ID))
	if err != nil || len(chain) != 3 || chain[1].Type != anuencia.EventApprovalRefused {
		t.Fatalf("chain %v, %v", chain, err)
	}
	for _, e := range chain {
		if e.ActorID != w.dir.People["clerk"].ID || e.PolicyRevision != "test" {
			t.Errorf("%s: actor %s, revision %q", e.Type, e.ActorID, e.PolicyRevision)
		}
	}
}
