package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

var update = flag.Bool("update", false, "write the golden files anew") //nolint:gochecknoglobals // a flag of the test

func words(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func id[I ~[16]byte](n byte) I {
	return I(uuid.UUID{0x01, 0x9a, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, n})
}

// golden compares an answer, with its status and Retry-After, to its file.
func golden(t *testing.T, name string, r contract.Rendering) {
	t.Helper()
	got := fmt.Appendf(nil, "%d retry_after=%s\n%s\n", r.Status, r.RetryAfter, r.Body)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

func each(t *testing.T, test func(t *testing.T, lang string, v contract.Voice)) {
	t.Helper()
	w := words(t)
	for _, lang := range catalog.Languages() {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			test(t, lang, contract.Voice{Messages: w, Lang: lang})
		})
	}
}

func full() anuencia.Details {
	return anuencia.Details{
		RiskLevel: anuencia.RiskHigh, PolicyID: "rule.x", NextAction: "ask_office",
		Fields:       []anuencia.FieldError{{Path: "/input/monto", Rule: "maximum"}, {Path: "", Rule: "type"}},
		RetryAfterMS: 1500, Limit: 600, Window: "1m", MaxBytes: 1 << 20, Supported: []string{"application/json"},
	}
}

func TestEveryCodeAndReason(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, lang string, v contract.Voice) {
		t.Helper()
		for _, p := range contract.Pairs() {
			name := string(p.Code)
			if p.Reason != "" {
				name += "." + string(p.Reason)
			}
			f := anuencia.NewFault(p.Code, p.Reason).WithCause(errors.New("pq: relation executions /var/lib"))
			r := contract.FromError(id[anuencia.ExecutionID](1), fmt.Errorf("reading: %w", f), v)
			golden(t, lang+"/"+name, r)
			if r.Status != p.Status || r.Code != p.Code {
				t.Errorf("%s: %d %s", name, r.Status, r.Code)
			}
		}
	})
}

func TestEveryShape(t *testing.T) {
	t.Parallel()
	done := anuencia.Execution{
		ID: id[anuencia.ExecutionID](1), State: anuencia.StateCompleted, AuditRef: id[anuencia.EventID](2), ApprovalID: id[anuencia.ApprovalID](3),
		Outcome: anuencia.Outcome{
			Result:   `{"html":"<b>ñ & ü</b>","rtl":"مرحبا 🎓"}`,
			Sources:  []anuencia.Source{{Type: "sql_view", ID: "v_matricula", Ref: "v_matricula", Hash: "ab"}, {Type: "document", ID: "becas", Ref: "Becas"}},
			Warnings: []anuencia.Warning{{Code: "partial_result", Severity: anuencia.SeverityInfo}, {Code: "no_results"}},
		},
	}
	state := func(s anuencia.State, f *anuencia.Fault) anuencia.Execution {
		e := done
		e.State, e.Outcome = s, anuencia.Outcome{Fault: f}
		return e
	}
	timeout := anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool)
	cancelled := state(anuencia.StateCancelled, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonCancelled))
	noRef, bad := done, done
	noRef.AuditRef = anuencia.EventID{}
	bad.Outcome = anuencia.Outcome{Result: `[1`}
	shapes := map[string]contract.Answer{
		"completed":             {Execution: done, Ran: true, Submitted: true},
		"completed_hidden":      {Execution: done, HideResult: true},
		"completed_bad_result":  {Execution: bad},
		"completed_without_ref": {Execution: noRef},
		"waiting_submitted":     {Execution: state(anuencia.StateWaiting, nil), Ran: true, Submitted: true},
		"waiting_repeat":        {Execution: state(anuencia.StateWaiting, nil), Submitted: true},
		"waiting_read":          {Execution: state(anuencia.StateWaiting, nil)},
		"running":               {Execution: state(anuencia.StateRunning, nil), Unfinished: true},
		"approved":              {Execution: state(anuencia.StateApproved, nil), Submitted: true},
		"timeout_ran":           {Execution: state(anuencia.StateFailed, timeout), Ran: true, Submitted: true},
		"timeout_repeat":        {Execution: state(anuencia.StateFailed, timeout), Submitted: true},
		"timeout_read":          {Execution: state(anuencia.StateFailed, timeout)},
		"cancelled_ran":         {Execution: cancelled, Ran: true, Submitted: true},
		"cancelled_read":        {Execution: cancelled},
		"incomplete":            {Execution: state(anuencia.StateIncomplete, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonBudget))},
		"rejected":              {Execution: state(anuencia.StateFailed, anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonRejected))},
		"withdrawn":             {Execution: state(anuencia.StateCancelled, anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonWithdrawn))},
		"failed_no_fault":       {Execution: state(anuencia.StateFailed, nil), Ran: true},
		"no_state":              {Execution: state("", nil)},
		"denied_ran":            {Execution: state(anuencia.StateFailed, anuencia.NewFault(anuencia.CodePolicyDenied, "").WithDetails(full())), Ran: true},
	}
	each(t, func(t *testing.T, lang string, v contract.Voice) {
		t.Helper()
		for name, a := range shapes {
			r := contract.FromAnswer(a, v)
			golden(t, lang+"/shape_"+name, r)
			checkStatus(t, name, r)
		}
	})
}

// checkStatus: no body ever has another status than the three.
func checkStatus(t *testing.T, name string, r contract.Rendering) {
	t.Helper()
	if r.Body == nil {
		if r.Status != http.StatusAccepted || r.RetryAfter < time.Second {
			t.Errorf("%s: %d without a body", name, r.Status)
		}
		return
	}
	var b struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(r.Body, &b); err != nil || !slices.Contains([]string{"completed", "failed", "waiting_approval"}, b.Status) {
		t.Errorf("%s: %v %s", name, err, r.Body)
	}
}

func TestDetailsAreAClosedSetAndWithheld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, lang string, v contract.Voice) {
		t.Helper()
		f := anuencia.NewFault(anuencia.CodeRateLimited, "").WithDetails(full())
		r := contract.FromError(id[anuencia.ExecutionID](1), f, v)
		golden(t, lang+"/details_full", r)
		if r.RetryAfter != 1500*time.Millisecond {
			t.Errorf("retry after %s", r.RetryAfter)
		}
		v.Brief = true
		for _, fault := range []*anuencia.Fault{f, anuencia.Denied("x"), anuencia.Invalid(anuencia.ReasonSchema, full().Fields...)} {
			if r := contract.FromError(id[anuencia.ExecutionID](1), fault, v); !bytes.HasSuffix(r.Body, []byte(`"details":{}}}`)) {
				t.Errorf("told to a stranger: %s", r.Body)
			}
		}
		v.Brief = false
		r = contract.FromError(id[anuencia.ExecutionID](1), anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonUnavailable).WithDetails(full()), v)
		if !bytes.HasSuffix(r.Body, []byte(`"details":{}}}`)) || r.RetryAfter == 0 {
			t.Errorf("INTERNAL_ERROR says more than it may: %s", r.Body)
		}
	})
}

func TestWhatIsNoFaultIsInternal(t *testing.T) {
	t.Parallel()
	v := contract.Voice{Messages: words(t), Lang: "es"}
	for _, err := range []error{
		nil, errors.New("dial tcp 10.0.0.7:5432: audit_events"), anuencia.NewFault("NO_SUCH_CODE", "x").WithDetails(full()),
		anuencia.Internal("query", errors.New("SELECT * FROM tokens")),
	} {
		r := contract.FromError(id[anuencia.ExecutionID](1), err, v)
		golden(t, "es/INTERNAL_ERROR", r)
		if r.Status != http.StatusInternalServerError {
			t.Errorf("status %d", r.Status)
		}
	}
	r := contract.FromError(id[anuencia.ExecutionID](1), anuencia.NewFault(anuencia.CodePolicyDenied, "no_such_reason"), v)
	if strings.Contains(string(r.Body), "no_such_reason") || r.Status != http.StatusForbidden {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestCodesAndCatalogAgree both ways: every pair has words of its own, and the
// catalog has no words for a pair that cannot be emitted.
func TestCodesAndCatalogAgree(t *testing.T) {
	t.Parallel()
	w := words(t)
	known := map[anuencia.Code][]anuencia.Reason{}
	for _, p := range contract.Pairs() {
		if !p.Code.Valid() || slices.Contains(known[p.Code], p.Reason) {
			t.Errorf("%s %s", p.Code, p.Reason)
		}
		known[p.Code] = append(known[p.Code], p.Reason)
		for _, lang := range catalog.Languages() {
			if w.Message(lang, p.Code, p.Reason) == "" {
				t.Errorf("%s: no words for %s %s", lang, p.Code, p.Reason)
			}
		}
	}
	for _, code := range anuencia.Codes() {
		listed := append([]anuencia.Reason{""}, catalog.Reasons()[code]...)
		slices.Sort(listed)
		slices.Sort(known[code])
		if !slices.Equal(listed, known[code]) {
			t.Errorf("%s: the catalog has %v, the contract %v", code, listed, known[code])
		}
	}
	if got := w.Message("es", anuencia.CodePolicyDenied, ""); got != "La política institucional bloqueó la acción solicitada." {
		t.Errorf("POLICY_DENIED says %q", got)
	}
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	l := contract.NewLanguages("es", "es", "en")
	for accept, want := range map[string]string{
		"": "es", "en": "en", "en-US,es;q=0.5": "en", "es-PE, en;q=0.9": "es", "fr, en;q=0.2": "en", "fr": "es", "*": "es",
		"qu, de": "es", "en;q=0": "es", "\x00\xff": "es", strings.Repeat("en,", 500): "es", "en;q=banana": "es",
	} {
		if got := l.Choose(accept); got != want {
			t.Errorf("%q gives %s", accept, got)
		}
	}
	if got := contract.NewLanguages("en", "es", "en").Choose("fr"); got != "en" {
		t.Errorf("first language %s", got)
	}
}

func TestEncodeHidesNothingAndDeceivesNobody(t *testing.T) {
	t.Parallel()
	raw, err := contract.Encode(map[string]string{"a": "<&>\u202e\u0085ñ🎓\u2028"})
	if err != nil || string(raw) != `{"a":"<&>\u202e\u0085ñ🎓\u2028"}` {
		t.Errorf("%s %v", raw, err)
	}
	if _, err := contract.Encode(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}
