package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/rest"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const (
	executions = "/api/v1/executions"
	one        = executions + "/019a0000-0000-7000-8000-000000000001"
	body       = `{"intent":"nota.modificar","input":{"nota":18}}`
)

func TestMissingParts(t *testing.T) {
	t.Parallel()
	if err := rest.Mount(nil, rest.Options{}); err == nil {
		t.Error("mounted without parts")
	}
}

func TestSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.send(t, "submit", http.MethodPost, executions, body)
	want := `{"execution_id":"019a0000-0000-7000-8000-000000000001","status":"completed","result":{"antes":12,"después":18},` +
		`"sources":[{"type":"sql_action","id":"nota","ref":"nota"}],"warnings":[{"code":"partial_result","message":"El resultado está incompleto porque superó el máximo permitido.","severity":"info"}],` +
		`"audit_ref":"019a0000-0000-7000-8000-000000000002"}`
	if r.want(t, http.StatusOK).raw != want {
		t.Errorf("got  %s\nwant %s", r.raw, want)
	}
	w.answer.Execution = waiting()
	r = w.send(t, "submit", http.MethodPost, executions, body).want(t, http.StatusAccepted, `"approval_id":"019a0000-0000-7000-8000-000000000003"`, `"sources":[]`)
	if r.Header().Get("Location") != one || r.Header().Get("Retry-After") == "" {
		t.Errorf("headers %v", r.Header())
	}
	w.send(t, "submit", http.MethodGet, one, "").want(t, http.StatusOK, `"waiting_approval"`)
	w.answer.Unfinished = true
	w.answer.Execution.State = anuencia.StateRunning
	for method, path := range map[string]string{http.MethodPost: executions, http.MethodGet: one} {
		r = w.send(t, "submit", method, path, map[string]string{http.MethodPost: body}[method]).want(t, http.StatusAccepted)
		if r.raw != "" || r.Header().Get("Location") != one || r.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %q %v", method, r.raw, r.Header())
		}
	}
}

// TestWhoRanItHearsTheStatus: only the request that ran an execution gets its
// error's own status (contracts section 1).
func TestWhoRanItHearsTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		fault  *anuencia.Fault
		status int
	}{
		{anuencia.Denied("x.y"), 403},
		{anuencia.NewFault(anuencia.CodeToolNotAllowed, ""), 403},
		{anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool), 504},
		{anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonCancelled), 200},
		{anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonRejected), 200},
		{anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/input/nota", Rule: "maximum"}), 422},
		{anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonOutcomeUnknown), 500},
	} {
		w.answer = harness.Answer{Execution: failed(c.fault), Ran: true, Submitted: true}
		w.send(t, "submit", http.MethodPost, executions, body).want(t, c.status, `"status":"failed"`, string(c.fault.Code))
		w.answer.Ran = false
		w.send(t, "submit", http.MethodPost, executions, body).want(t, http.StatusOK, string(c.fault.Code))
		w.send(t, "submit", http.MethodGet, one, "").want(t, http.StatusOK, string(c.fault.Code))
		w.send(t, "submit", http.MethodPost, one+"/cancel", "").want(t, http.StatusOK, string(c.fault.Code))
		w.send(t, "decide", http.MethodPost, "/aprobar", `{"approval_id":"ABCDEFG1"}`).want(t, http.StatusOK, string(c.fault.Code))
	}
}

func TestWhatIsHandedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(t, "submit", http.MethodPost, executions,
		`{"intent":"i","input":{"b":1.50,"a":"x"},"actor":{"external_id":"2023-114"},"channel":"ui","metadata":{"m":1}}`, "Idempotency-Key", "k 1", "Prefer", "wait=3").want(t, 200)
	if w.sub.Intent != "i" || string(w.sub.Input) != `{"b":1.50,"a":"x"}` || string(w.sub.Metadata) != `{"m":1}` || len(w.sub.Keys) != 1 ||
		w.sub.Keys[0] != "k 1" || w.sub.Route == "" || w.request.ActFor != "2023-114" || w.request.Channel != anuencia.ChannelUI || w.request.Wait != 3*time.Second {
		t.Errorf("%+v %+v", w.sub, w.request)
	}
	w.send(t, "submit", http.MethodPost, executions, `{"intent":"i","input":{},"metadata":null,"actor":null}`).want(t, 200)
	if w.sub.Metadata != nil || w.sub.Keys != nil || w.request.ActFor != "" {
		t.Errorf("%+v", w.sub)
	}
	same := `{"intent":"i","input":{},"actor":{"external_id":"a"}}`
	w.send(t, "submit", http.MethodPost, executions, same, "Anuencia-Actor", "a").want(t, 200)
	w.send(t, "submit", http.MethodPost, executions, same, "Anuencia-Actor", "b").want(t, 422, `"reason":"actor_mismatch"`)
	w.send(t, "audit", http.MethodGet, executions+"?limit=7&cursor=019a0000-0000-7000-8000-000000000009&state=failed&intent=i&subject=s&channel=n8n&risk=high&code=TIMEOUT&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&actor=019a0000-0000-7000-8000-000000000005", "").want(t, 200)
	if f := w.listed; f.Limit != 7 || f.Before == "" || f.State != anuencia.StateFailed || f.Intent != "i" || f.Subject != "s" || f.Channel != anuencia.ChannelN8N ||
		f.Risk != anuencia.RiskHigh || f.Code != anuencia.CodeTimeout || f.From.IsZero() || f.To.IsZero() || f.Actor.IsZero() {
		t.Errorf("%+v", f)
	}
	w.send(t, "audit", http.MethodGet, "/api/v1/audit/events?subject=2023-114&event_type=execution.received&principal=019a0000-0000-7000-8000-000000000005", "").want(t, 200)
	if f := w.audited; f.Subject != "2023-114" || f.Type != anuencia.EventReceived || f.Principal.IsZero() || f.Limit != 50 {
		t.Errorf("%+v", f)
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref := "/api/v1/approvals/019a0000-0000-7000-8000-000000000003"
	hash := strings.Repeat("AB", 32)
	w.send(t, "decide", http.MethodPost, ref+"/approve", `{"reason":" visto bueno ","subject_hash":"`+hash+`"}`).want(t, 200)
	want := harness.DecideCommand{Ref: "019a0000-0000-7000-8000-000000000003", Verdict: anuencia.Approve, Reason: "visto bueno", SubjectHash: strings.ToLower(hash)}
	if w.decided != want {
		t.Errorf("%+v", w.decided)
	}
	w.send(t, "decide", http.MethodPost, "/api/v1/approvals/abcdefg1/reject", `{"reason":"no"}`).want(t, 200)
	if w.decided != (harness.DecideCommand{Ref: "abcdefg1", Verdict: anuencia.Reject, Reason: "no"}) {
		t.Errorf("%+v", w.decided)
	}
	w.send(t, "decide", http.MethodPost, "/rechazar", `{"approval_id":"ABCDEFG1","reason":"   "}`).want(t, 200)
	if w.decided != (harness.DecideCommand{Ref: "ABCDEFG1", Verdict: anuencia.Reject}) {
		t.Errorf("%+v", w.decided)
	}
	for name, c := range map[string]struct {
		path, body string
		status     int
	}{
		"no body":        {"/aprobar", "", 415},
		"no approval":    {"/aprobar", `{"reason":"x"}`, 422},
		"who decides":    {"/aprobar", `{"approval_id":"ABCDEFG1","approver":"me"}`, 422},
		"actor":          {"/rechazar", `{"approval_id":"ABCDEFG1","actor":{"external_id":"a"}}`, 422},
		"long reason":    {ref + "/approve", `{"reason":"` + strings.Repeat("a", 2001) + `"}`, 422},
		"no hash":        {ref + "/approve", `{"subject_hash":"x"}`, 422},
		"verdict inside": {ref + "/approve", `{"verdict":"reject"}`, 422},
	} {
		w.send(t, "decide", http.MethodPost, c.path, c.body).want(t, c.status, `"VALIDATION_FAILED"`)
		if about := w.abouts[len(w.abouts)-1]; about["operation"] != harness.OperationDecide {
			t.Errorf("%s: recorded %v", name, about)
		}
	}
	w.err = anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonDecided)
	w.send(t, "decide", http.MethodPost, "/aprobar", `{"approval_id":"ABCDEFG1"}`).want(t, 409, `"reason":"decided"`)
	if about := w.abouts[len(w.abouts)-1]; about["approval"] != "ABCDEFG1" {
		t.Errorf("recorded %v", about)
	}
	w.err = anuencia.Invalid(anuencia.ReasonReasonRequired, anuencia.FieldError{Path: "/reason", Rule: "required"})
	w.send(t, "decide", http.MethodPost, "/rechazar", `{"approval_id":"ABCDEFG1"}`).want(t, 422, `"reason":"reason_required"`, `"path":"/reason"`)
}

func TestTheApproverSeesWhatWouldRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.send(t, "decide", http.MethodGet, "/api/v1/approvals/ABCDEFG1", "", "Accept-Language", "en")
	r.want(t, 200, `"title":"Change a grade"`, `"before":{"nota":12}`, `"arguments":{"curso":"Error de suma 🎓","nota":18}`,
		`"subject_hash_short":"`+w.approval.Approval.SubjectHash[:8]+`"`, `"hidden_characters":[]`, `"warnings":[]`, `"missing":1`,
		`"display_name":"Rosa Q."`, `"rule":"risk.base"`, `"on_behalf_of":null`)
	if strings.Contains(r.raw, `"text":"rule.`) || strings.Contains(r.raw, `"risk_text":"risk.`) {
		t.Errorf("words are missing: %s", r.raw)
	}
	w.approval.Approval.Subject = `{"arguments":{"motivo":"pago\u202e001\u200b","مرحبا":"ñ"},"before":null}`
	r = w.send(t, "decide", http.MethodGet, "/api/v1/approvals/ABCDEFG1", "").want(t, 200, `"path":"/arguments/motivo"`, `"kinds":["bidi","zero_width"]`,
		`"motivo":"pago[U+202E]001[U+200B]"`, `"code":"hidden_characters"`, `"مرحبا":"ñ"`, `"title":"Modificar una nota"`)
	if strings.ContainsAny(r.raw, "\u202e\u200b") {
		t.Errorf("deceiving bytes in %q", r.raw)
	}
	var v struct {
		Arguments map[string]string `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(r.raw), &v); err != nil || v.Arguments["motivo"] != "pago\u202e001\u200b" {
		t.Errorf("the arguments are not those hashed: %v %q", err, v.Arguments)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(t, "submit", http.MethodGet, executions, "").want(t, 200, `"next_cursor":"019a`, `"execution_id":"019a`, `"error_code":"TIMEOUT"`)
	own := w.send(t, "submit", http.MethodGet, one+"/events", "").want(t, 200, `"event_type":"execution.received"`, `"subject_ref":"2023-114"`)
	for _, hidden := range []string{"payload\"", "salt", "actor_id", "principal_id", "policy_revision", "trace_id"} {
		if strings.Contains(own.raw, hidden) {
			t.Errorf("the actor sees %s: %s", hidden, own.raw)
		}
	}
	w.send(t, "audit", http.MethodGet, one+"/events", "").want(t, 200, `"payload":{"input":{"nota":18}}`, `"salt":"0102"`, `"trace_id"`)
	w.send(t, "audit", http.MethodGet, "/api/v1/audit/events/019a0000-0000-7000-8000-000000000002", "").want(t, 200, `"prev_hash":"0000`)
	w.send(t, "audit", http.MethodGet, "/api/v1/audit/executions/019a0000-0000-7000-8000-000000000001", "").want(t, 200,
		`"execution":{"execution_id"`, `"owner_unit":"a"`, `"approvals":[{"approval_id"`, `"tool":"nota.cambiar"`, `"reason":"de acuerdo"`)
	w.send(t, "audit", http.MethodGet, "/api/v1/audit/executions/019a0000-0000-7000-8000-0000000000ff", "").want(t, 200, `"execution":null`, `"approvals":[]`)
	w.send(t, "submit", http.MethodGet, "/api/v1/catalog/intents", "").want(t, 200, `"input_schema":{"type":"object"}`, `"command":"nota"`, `"responsibility":null`)
	w.send(t, "submit", http.MethodGet, "/api/v1/catalog/messages", "", "Accept-Language", "en").want(t, 200, `"language":"en"`)
	w.send(t, "decide", http.MethodGet, "/api/v1/approvals?status=pending", "").want(t, 200, `"next_cursor":null`)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(t, "submit", http.MethodGet, one+"/artifacts", "").want(t, 200, `"filename":"constancia ñ.md"`, `"next_cursor":null`)
	r := w.send(t, "submit", http.MethodGet, one+"/artifacts/constancia%20%C3%B1.md", "").want(t, 200, "# Constancia")
	h := r.Header()
	if h.Get("Content-Type") != "text/markdown; charset=utf-8" || h.Get("Content-Disposition") != "attachment; filename*=utf-8''constancia%20%C3%B1.md" ||
		!strings.HasPrefix(h.Get("ETag"), `"01`) || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("headers %v", h)
	}
	for _, name := range []string{"nope", "%ff", "a%0ab", "%zz"} {
		if name == "%zz" {
			continue // net/http itself answers 400 to it
		}
		w.send(t, "submit", http.MethodGet, one+"/artifacts/"+name, "").want(t, 404)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tokens = "/api/v1/admin/tokens"
	w.send(t, "admin", http.MethodPost, tokens, `{"name":"robot","scopes":["submit"],"channels":["api","ui"],"person":{"channel":"api","external_id":"requester"},"act_for":["estudiante"],"expires_in_s":60}`).
		want(t, 201, `"token":"anu_once"`, `"token_id":"019a0000-0000-7000-8000-000000000008"`)
	if n := w.token; n.Name != "robot" || n.ExpiresIn != time.Minute || n.Person.ExternalID != "requester" || len(n.Channels) != 2 || n.ActFor[0] != "estudiante" {
		t.Errorf("%+v", n)
	}
	list := w.send(t, "admin", http.MethodGet, tokens, "").want(t, 200, `"name":"robot"`, `"revoked_at":null`)
	if strings.Contains(list.raw, "anu_") || strings.Contains(list.raw, "ab00") {
		t.Errorf("a secret or a hash in %s", list.raw)
	}
	w.send(t, "admin", http.MethodDelete, tokens+"/019a0000-0000-7000-8000-000000000008", "").want(t, 204)
	w.send(t, "admin", http.MethodDelete, tokens+"/x", "").want(t, 404)
	for _, bad := range []string{`{}`, `{"name":"a","scopes":["root"],"channels":["api"]}`, `{"name":"a","scopes":["submit"],"channels":["cli"]}`, `{"name":"a","scopes":[],"channels":["api"]}`, `{"name":"a","scopes":["submit"],"channels":["api"],"expires_in_s":-1}`, `{"name":"a","scopes":["submit"],"channels":["api"],"person":{}}`} {
		w.send(t, "admin", http.MethodPost, tokens, bad).want(t, 422)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const holds = "/api/v1/admin/holds"
	w.send(t, "admin", http.MethodPost, holds, `{"intent":"beca.asignar","reason":"raro"}`).want(t, 201, `"intent":"beca.asignar"`, `"lifted_at":null`)
	w.send(t, "admin", http.MethodPost, holds, `{"all":true,"reason":"raro"}`).want(t, 201, `"intent":null`)
	w.send(t, "admin", http.MethodGet, holds, "").want(t, 200, `"items":[{"hold_id":`)
	w.send(t, "admin", http.MethodPost, holds+"/019a0000-0000-7000-8000-000000000008/lift", `{"reason":"revisado"}`).want(t, 200, `"lift_reason":"revisado"`)
	w.send(t, "admin", http.MethodPost, holds+"/x/lift", `{"reason":"revisado"}`).want(t, 404)
	for _, bad := range []string{`{}`, `{"reason":"r"}`, `{"all":true,"intent":"x","reason":"r"}`, `{"all":true}`, `{"all":1,"reason":"r"}`} {
		w.send(t, "admin", http.MethodPost, holds, bad).want(t, 422)
	}
}

func TestOperations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.send(t, "", http.MethodGet, "/healthz", "").want(t, 200, `{"status":"ok"}`)
	w.send(t, "", http.MethodGet, "/readyz", "").want(t, 200, `{"status":"ready"}`)
	w.send(t, "", http.MethodHead, "/healthz", "").want(t, 200)
	w.notReady = true
	if r := w.send(t, "", http.MethodGet, "/readyz", "").want(t, 503); r.raw != `{"status":"not_ready"}` || r.Header().Get("Retry-After") == "" {
		t.Errorf("a stranger learns %s", r.raw)
	}
	w.send(t, "submit", http.MethodGet, "/readyz", "").want(t, 503, `{"status":"not_ready"}`)
	w.send(t, "operate", http.MethodGet, "/readyz", "").want(t, 503, `"parts":{"database":"failing"}`)
	w.send(t, "", http.MethodGet, "/metrics", "").want(t, 401)
	w.send(t, "admin", http.MethodGet, "/metrics", "").want(t, 403, `"policy_id":"scope"`)
	w.send(t, "operate", http.MethodGet, "/metrics", "").want(t, 200, "up 1")
}
