package contract

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// WarningHidden says that policy does not let the caller see the result.
const WarningHidden = "result_hidden"

// Answer is an execution as a request about it must render it.
type Answer struct {
	Execution  anuencia.Execution
	Ran        bool // this very request ran it synchronously: an error gets its own status
	Submitted  bool // a submission or a repeat: only these answer 202 with a contract
	Unfinished bool // the wait was over first
	HideResult bool
}

// FromAnswer renders an execution (contracts section 1). One that is approved or
// running has no contract: 202 without a body, whatever Unfinished says, so that
// no body ever has another status than the three.
func FromAnswer(a Answer, v Voice) Rendering {
	e := a.Execution
	switch e.State {
	case anuencia.StateWaiting:
		r := v.result(a)
		if a.Submitted && r.Status == http.StatusOK {
			r.Status, r.RetryAfter = http.StatusAccepted, retryWaiting
		}
		return r
	case anuencia.StateCompleted:
		return v.result(a)
	case anuencia.StateFailed, anuencia.StateIncomplete, anuencia.StateCancelled:
		return v.failure(a)
	case anuencia.StateApproved, anuencia.StateRunning:
		return Rendering{Status: http.StatusAccepted, RetryAfter: retryRunning}
	}
	return FromError(e.ID, anuencia.NewFault(anuencia.CodeInternal, ""), v)
}

func (v Voice) failure(a Answer) Rendering {
	f := a.Execution.Outcome.Fault
	if f == nil {
		f = anuencia.NewFault(anuencia.CodeInternal, "")
	}
	r := v.standardError(a.Execution.ID, f)
	if r.Status != 0 {
		return r
	}
	r.Status = http.StatusOK
	if a.Ran {
		pair := find(f.Code, f.Reason)
		r.Status, r.RetryAfter = pair.Status, retryAfter(pair, f)
	}
	return r
}

func (v Voice) result(a Answer) Rendering {
	e := a.Execution
	warnings := e.Outcome.Warnings
	text := e.Outcome.Result
	if a.HideResult {
		text = ""
		warnings = append(warnings[:len(warnings):len(warnings)], anuencia.Warning{Code: WarningHidden, Severity: anuencia.SeverityInfo})
	}
	body := resultBody{
		ExecutionID: e.ID.String(), Status: string(e.State), Result: Object(text), Sources: Sources(e.Outcome.Sources),
		Warnings: v.Warnings(warnings), AuditRef: e.AuditRef.String(),
	}
	if e.State == anuencia.StateWaiting {
		body.ApprovalID = e.ApprovalID.String()
	}
	// audit_ref is never null: without it there is no contract to give.
	if e.AuditRef.IsZero() || e.State == anuencia.StateWaiting && e.ApprovalID.IsZero() {
		return FromError(e.ID, anuencia.NewFault(anuencia.CodeInternal, ""), v)
	}
	raw, err := Encode(body)
	if err != nil {
		return FromError(e.ID, err, v)
	}
	return Rendering{Status: http.StatusOK, Body: raw}
}

// Object gives JSON text as it is when it is an object, and {} otherwise.
func Object(text string) json.RawMessage {
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return json.RawMessage("{}")
}

// Sources gives sources on the wire; never nil.
func Sources(list []anuencia.Source) []SourceBody {
	out := make([]SourceBody, 0, len(list))
	for _, s := range list {
		out = append(out, SourceBody{Type: s.Type, ID: s.ID, Ref: s.Ref, Hash: s.Hash})
	}
	return out
}
