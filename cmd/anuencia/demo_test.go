package main_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const (
	asignar = `{"estudiante_id":"2023-114","monto":%s,"motivo":"Excelencia académica"}`
	nota    = `{"estudiante_id":"2023-114","curso":"MAT-101","nota":18,"justificacion":"Error de suma en el acta"}` //nolint:misspell // Spanish
)

// TestEachIntentOfTheDemo does what product.md says of each intent.
func TestEachIntentOfTheDemo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		t := s.t

		r := s.want(s.submit("requester", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 200, "status", "completed")
		if !strings.Contains(r.raw, "MAT-101") || r.str("sources", 0, "hash") == "" {
			t.Fatalf("no enrolment or no source: %s", r.raw)
		}
		s.want(s.call("auditor", http.MethodGet, "/api/v1/audit/events/"+r.str("audit_ref"), ""), 200, "event_type", "execution.received")
		s.want(s.submit("requester", "consulta.matricula", `{"estudiante_id":"2020-001"}`), 403,
			"error.code", "POLICY_DENIED", "error.message", "La política institucional bloqueó la acción solicitada.")
		s.want(s.submit("clerk", "consulta.matricula", `{"estudiante_id":"2020-001"}`), 200)

		r = s.want(s.submit("requester", "documento.buscar", `{"consulta":"requisitos para una beca"}`), 200)
		if r.str("sources", 0, "ref") == "" || !strings.Contains(strings.ToLower(r.raw), "beca") {
			t.Fatalf("no source cited: %s", r.raw)
		}

		r = s.want(s.submit("requester", "constancia.emitir", `{"estudiante_id":"2023-114","tipo":"notas"}`), 200)
		files := s.want(s.call("requester", http.MethodGet, "/api/v1/executions/"+r.str("execution_id")+"/artifacts", ""), 200)
		kinds := map[string]bool{}
		for i := range 2 {
			name := files.str("items", i, "filename")
			f := s.want(s.call("requester", http.MethodGet, "/api/v1/executions/"+r.str("execution_id")+"/artifacts/"+name, ""), 200)
			kinds[filepath.Ext(name)] = len(f.raw) > 100
			s.want(s.call("approver", http.MethodGet, "/api/v1/executions/"+r.str("execution_id")+"/artifacts/"+name, ""), 404)
		}
		if !kinds[".md"] || !kinds[".pdf"] {
			t.Fatalf("artifacts: %v", kinds)
		}
		s.want(s.submit("clerk", "datos.exportar", `{"conjunto":"matriculas"}`), 403,
			"error.code", "POLICY_DENIED", "error.details.policy_id", "datos.exportar.restringido")
		s.want(s.submit("requester", "beca.asignar", fmt.Sprintf(asignar, "100")), 403, "error.code", "POLICY_DENIED")
		s.verify()
	})
}

func (s *server) verify() {
	s.t.Helper()
	out, err := s.run("audit", "verify", "--data", s.dir)
	if err != nil {
		s.t.Fatalf("audit verify: %v\n%s", err, out)
	}
}

// TestHighRiskWaitsForAPerson covers approval, the repeated and the contrary
// decision, rejection, and before and after of a grade.
func TestHighRiskWaitsForAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		t := s.t
		r := s.want(s.submit("clerk", "nota.modificar", nota), 202, "status", "waiting_approval")
		id := r.str("approval_id")
		view := s.want(s.call("approver", http.MethodGet, "/api/v1/approvals/"+id, ""), 200)
		if view.at("before") == nil || view.str("subject_hash") == "" {
			t.Fatalf("approver does not see the change: %s", view.raw)
		}
		s.want(s.decide("clerk", "aprobar", id, "yo mismo"), 403, "error.details.policy_id", "approval.four_eyes")
		s.want(s.decide("requester", "aprobar", id, "x"), 403, "error.code", "POLICY_DENIED")
		s.want(s.decide("admin", "aprobar", id, "x"), 403, "error.code", "POLICY_DENIED")
		s.want(s.decide("ui", "aprobar", id, "x"), 403, "error.details.policy_id", "decision.own_credential")
		done := s.want(s.decide("approver", "aprobar", id, "Acta revisada"), 200, "status", "completed")
		if !strings.Contains(done.raw, "18") {
			t.Fatalf("no before and after: %s", done.raw)
		}
		s.want(s.decide("approver", "aprobar", id, "Acta revisada"), 200, "status", "completed")
		s.want(s.decide("approver", "rechazar", id, "me arrepiento"), 409, "error.details.reason", "decided")
		s.want(s.decide("approver2", "aprobar", id, "también"), 409, "error.details.reason", "decided")

		r = s.want(s.submit("clerk", "beca.asignar", fmt.Sprintf(asignar, "1500")), 202)
		s.want(s.decide("approver2", "rechazar", r.str("approval_id"), ""), 422)
		s.want(s.decide("approver2", "rechazar", r.str("approval_id"), "Sin presupuesto"), 200, "error.code", "APPROVAL_REJECTED")
		s.want(s.call("clerk", http.MethodGet, "/api/v1/executions/"+r.str("execution_id"), ""), 200,
			"status", "failed", "error.code", "APPROVAL_REJECTED", "error.details.reason", "rejected")

		rec := s.want(s.call("auditor", http.MethodGet, "/api/v1/audit/executions/"+r.str("execution_id"), ""), 200)
		for _, want := range []string{"execution.received", "approval.requested", "approval.decided", "execution.failed"} {
			if !strings.Contains(rec.raw, want) {
				t.Fatalf("%s is not on record: %s", want, rec.raw)
			}
		}
		s.want(s.call("auditor", http.MethodPost, "/aprobar", `{"approval_id":"`+id+`","reason":"x"}`), 403)
		s.want(s.call("approver", http.MethodGet, "/api/v1/audit/events", ""), 403)
		s.verify()
	})
}

// TestOverTenThousandNeedsTwoPeople in either order, finance among them.
func TestOverTenThousandNeedsTwoPeople(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		for _, order := range [][2]string{{"approver", "approver2"}, {"approver2", "approver"}} {
			r := s.want(s.submit("clerk", "beca.asignar", fmt.Sprintf(asignar, "10000.5")), 202)
			id := r.str("approval_id")
			s.want(s.decide(order[0], "aprobar", id, "de acuerdo"), 200, "status", "waiting_approval")
			s.want(s.decide(order[0], "aprobar", id, "de acuerdo"), 200, "status", "waiting_approval")
			s.want(s.decide(order[1], "aprobar", id, "de acuerdo"), 200, "status", "completed")
		}
		s.verify()
	})
}

// TestAPendingApprovalSurvivesKill: pending at kill -9 is pending after the
// restart, and its approval then runs once.
func TestAPendingApprovalSurvivesKill(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		t := s.t
		r := s.want(s.submit("clerk", "beca.asignar", fmt.Sprintf(asignar, "700")), 202)
		if err := s.stop(syscall.SIGKILL); err == nil {
			t.Fatal("a killed process ended well")
		}
		s.start()
		path := "/api/v1/executions/" + r.str("execution_id")
		s.want(s.call("clerk", http.MethodGet, path, ""), 200, "status", "waiting_approval", "approval_id", r.str("approval_id"))
		s.want(s.decide("approver", "aprobar", r.str("approval_id"), "ok"), 200, "status", "completed")
		rec := s.want(s.call("auditor", http.MethodGet, "/api/v1/audit/executions/"+r.str("execution_id"), ""), 200)
		if n := strings.Count(rec.raw, `"tool.completed"`); n != 1 {
			t.Fatalf("ran %d times", n)
		}
		s.verify()
	})
}

// TestOneKeyTwentyTimes at once is one execution; with another body it is 422.
func TestOneKeyTwentyTimes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		t := s.t
		ids := make([]string, 20)
		var wg sync.WaitGroup
		for i := range ids {
			wg.Go(func() {
				r, err := s.try("clerk", http.MethodPost, "/api/v1/executions", `{"intent":"beca.asignar","input":`+fmt.Sprintf(asignar, "900")+`}`, header{"Idempotency-Key", "k-1"})
				if err != nil || r.status != 202 {
					t.Errorf("%d: %d %v %s", i, r.status, err, r.raw)
					return
				}
				ids[i] = r.str("execution_id")
			})
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] || id == "" {
				t.Fatalf("ids %v", ids)
			}
		}
		s.want(s.submit("clerk", "beca.asignar", fmt.Sprintf(asignar, "901"), header{"Idempotency-Key", "k-1"}), 422,
			"error.details.reason", "idempotency_key_reused")
		s.verify()
	})
}

// TestTokensByAPIAndCLI: made, listed, revoked at once; none that decides by API.
func TestTokensByAPIAndCLI(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		t := s.t
		body := `{"name":"robot","scopes":["submit"],"channels":["api"],"person":{"channel":"api","external_id":"requester"}}`
		made := s.want(s.call("admin", http.MethodPost, "/api/v1/admin/tokens", body), 201)
		s.tokens["robot"] = made.str("token")
		s.want(s.submit("robot", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 200)
		id := made.str("token_id")
		if out, err := s.run("token", "revoke", "--data", s.dir, id); err != nil {
			t.Fatalf("revoke: %v %s", err, out)
		}
		s.want(s.submit("robot", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 401, "error.code", "IDENTITY_NOT_FOUND")
		s.want(s.call("admin", http.MethodPost, "/api/v1/admin/tokens", strings.Replace(body, `"submit"`, `"decide"`, 1)), 403)
		s.want(s.call("approver", http.MethodPost, "/api/v1/admin/tokens", body), 403)
		s.want(s.submit("", "consulta.matricula", `{}`), 401)
		s.want(s.submit("uhp", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 401)
	})
}

// TestActingForAnActor: the institutional UI asks for a student, and never decides.
func TestActingForAnActor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		as := header{"Anuencia-Actor", "requester"}
		r := s.want(s.submit("ui", "consulta.matricula", `{"estudiante_id":"2023-114"}`, as), 200)
		path := "/api/v1/executions/" + r.str("execution_id")
		s.want(s.call("ui", http.MethodGet, path, "", as), 200)
		s.want(s.call("requester", http.MethodGet, path, ""), 200)
		s.want(s.call("ui", http.MethodGet, path, "", header{"Anuencia-Actor", "clerk"}), 404)
		s.want(s.submit("ui", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 403, "error.code", "IDENTITY_NOT_FOUND")
		s.want(s.submit("ui", "consulta.matricula", `{"estudiante_id":"2023-114"}`, header{"Anuencia-Actor", "approver"}), 403)
	})
}
