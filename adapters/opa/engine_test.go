package opa_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"

	embedded "github.com/anuencia-harness/anuencia/catalog"

	"github.com/anuencia-harness/anuencia/adapters/opa"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/harness"
	"github.com/anuencia-harness/anuencia/policies"
)

// rego wraps a decision rule into a folder.
func rego(body string) fstest.MapFS {
	return fstest.MapFS{"p.rego": {Data: []byte("package anuencia\n\n" + body + "\n")}}
}

func engine(t *testing.T, body string) *opa.Engine {
	t.Helper()
	e, err := opa.New(t.Context(), rego(body), opa.Options{})
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	return e
}

func demoEngine(tb testing.TB) (*opa.Engine, *catalog.Catalog) {
	tb.Helper()
	e, err := opa.New(tb.Context(), policies.FS, opa.Options{Timeout: 5 * time.Second})
	if err != nil {
		tb.Fatalf("prepare: %v", err)
	}
	c, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		tb.Fatalf("load catalog: %v", err)
	}
	return e, c
}

func personID(n byte) anuencia.PersonID { return anuencia.PersonID(uuid.UUID{15: n}) }

func question(tb testing.TB, c *catalog.Catalog, name, input string, roles ...string) harness.PolicyInput {
	tb.Helper()
	in, ok := c.Intent(name)
	if !ok {
		tb.Fatalf("no intent %s", name)
	}
	tool, _ := c.Tool(in.Tool)
	return harness.PolicyInput{
		Stage: anuencia.PolicyExecution, Intent: in, Agent: in.Agent, Tool: &tool, Channel: anuencia.ChannelAPI, Input: input,
		Actor: anuencia.Actor{Person: anuencia.Person{ID: personID(1), InstitutionID: "2023-114", Roles: roles, Institutional: true}},
		Time:  time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
	}
}

func plain() harness.PolicyInput {
	return harness.PolicyInput{Stage: anuencia.PolicyExecution, Intent: anuencia.Intent{Name: "a", Risk: anuencia.RiskMedium}}
}

func TestDemoDecisions(t *testing.T) {
	t.Parallel()
	e, c := demoEngine(t)
	own, other := `{"estudiante_id":"2023-114"}`, `{"estudiante_id":"2020-001"}`
	rows := map[string]struct {
		intent, input string
		roles         []string
		want          string
	}{
		"own enrolment":     {"consulta.matricula", own, []string{"estudiante"}, "allow low intent.own 0"},
		"another enrolment": {"consulta.matricula", other, []string{"estudiante"}, "deny low intent.own 0"},
		"clerk":             {"consulta.matricula", other, []string{"registro"}, "allow low intent.offered 0"},
		"search by all":     {"documento.buscar", `{"consulta":"becas"}`, []string{"auditor"}, "allow low intent.offered 0"},
		"certificate":       {"constancia.emitir", `{"estudiante_id":"2023-114","tipo":"notas"}`, []string{"estudiante"}, "allow medium intent.own 0"},
		"grant":             {"beca.asignar", `{"estudiante_id":"2023-114","monto":10000,"motivo":"abc"}`, []string{"registro"}, "allow high intent.offered 1"},
		"large grant":       {"beca.asignar", `{"estudiante_id":"2023-114","monto":10000.01,"motivo":"abc"}`, []string{"registro"}, "allow critical intent.offered 2"},
		"grant by student":  {"beca.asignar", `{"estudiante_id":"2023-114","monto":1,"motivo":"abc"}`, []string{"estudiante"}, "deny high intent.role 0"},
		"grade":             {"nota.modificar", own, []string{"registro"}, "allow high intent.offered 1"},
		"export by admin":   {"datos.exportar", `{"conjunto":"x"}`, []string{"admin"}, "deny high datos.exportar.restringido 0"},
		"export by clerk":   {"datos.exportar", `{"conjunto":"x"}`, []string{"registro"}, "deny high datos.exportar.restringido 0"},
		"export by office":  {"datos.exportar", `{"conjunto":"x"}`, []string{"oficina_datos"}, "allow high intent.offered 1"},
		"nobody":            {"nota.modificar", own, nil, "deny high intent.role 0"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := e.Decide(t.Context(), question(t, c, row.intent, row.input, row.roles...))
			if err != nil {
				t.Fatal(err)
			}
			word := "deny"
			if d.Allow {
				word = "allow"
			}
			got := fmt.Sprintf("%s %s %s %d", word, d.Risk, d.PolicyID, d.Approval.People())
			if got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if d.Revision != e.Revision() || len(d.Revision) != 64 {
				t.Errorf("revision %q", d.Revision)
			}
			if !d.Allow && (d.Code != anuencia.CodePolicyDenied || d.NextAction == "" || len(d.Reasons) == 0) {
				t.Errorf("the denial is not whole: %+v", d)
			}
		})
	}
}

func TestLargeGrantRequirement(t *testing.T) {
	t.Parallel()
	e, c := demoEngine(t)
	d, err := e.Decide(t.Context(), question(t, c, "beca.asignar", `{"estudiante_id":"2023-114","monto":20000,"motivo":"abc"}`, "registro"))
	if err != nil {
		t.Fatal(err)
	}
	want := anuencia.Requirement{
		Stages: []anuencia.Stage{
			{Roles: []string{"finanzas"}, Quorum: 1},
			{Roles: []string{"secretaria_academica", "finanzas"}, Quorum: 1}, //nolint:misspell // Spanish
		},
		FourEyes: true, ReasonRequired: true, Channels: []anuencia.Channel{anuencia.ChannelUI, anuencia.ChannelAPI},
		ExpiresIn: 72 * time.Hour, RemindAfter: 24 * time.Hour,
	}
	if !reflect.DeepEqual(d.Approval, want) {
		t.Errorf("got %+v, want %+v", d.Approval, want)
	}
	if !reflect.DeepEqual(d.Reasons, []string{"beca.monto_alto"}) {
		t.Errorf("reasons %v", d.Reasons)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Code != "approval_multiple" || len(d.Mask) != 1 {
		t.Errorf("warnings %v, mask %v", d.Warnings, d.Mask)
	}
}

func TestApprovalStage(t *testing.T) {
	t.Parallel()
	e, c := demoEngine(t)
	a := anuencia.Approval{
		Requester: personID(1), OnBehalfOf: personID(2), Risk: anuencia.RiskCritical,
		Requirement: anuencia.Requirement{
			Stages:   []anuencia.Stage{{Roles: []string{"finanzas"}, Quorum: 1}},
			Channels: []anuencia.Channel{anuencia.ChannelUI},
		},
		Decisions: []anuencia.ApprovalDecision{{Approver: personID(9), Verdict: anuencia.Approve, Roles: []string{"finanzas"}}},
	}
	rows := map[string]struct {
		id        byte
		suspended bool
		role      string
		channel   anuencia.Channel
		verdict   anuencia.Verdict
		want      string
	}{
		"may":             {5, false, "finanzas", anuencia.ChannelUI, anuencia.Approve, "approval.allowed"},
		"requester":       {1, false, "finanzas", anuencia.ChannelUI, anuencia.Approve, "approval.four_eyes"},
		"handed it in":    {2, false, "finanzas", anuencia.ChannelUI, anuencia.Reject, "approval.four_eyes"},
		"no role":         {5, false, "registro", anuencia.ChannelUI, anuencia.Approve, "approval.role"},
		"admin":           {5, false, "admin", anuencia.ChannelUI, anuencia.Approve, "approval.admin"},
		"channel":         {5, false, "finanzas", anuencia.ChannelTelegram, anuencia.Approve, "decision.channel"},
		"channel, reject": {5, false, "finanzas", anuencia.ChannelTelegram, anuencia.Reject, "approval.allowed"},
		"suspended":       {5, true, "finanzas", anuencia.ChannelUI, anuencia.Approve, "actor.suspended"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := question(t, c, "beca.asignar", `{"estudiante_id":"2023-114","monto":1}`, row.role)
			in.Stage, in.Tool, in.Approval, in.Verdict, in.Channel = anuencia.PolicyApproval, nil, &a, row.verdict, row.channel
			in.Actor.ID, in.Actor.Suspended = personID(row.id), row.suspended
			d, err := e.Decide(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if d.PolicyID != row.want || d.Allow != (row.want == "approval.allowed") {
				t.Errorf("got %v %s, want %s", d.Allow, d.PolicyID, row.want)
			}
		})
	}
}

func TestOutputStage(t *testing.T) {
	t.Parallel()
	e, c := demoEngine(t)
	for role, want := range map[string]bool{"approver": true, "registro": true, "admin": false} {
		in := question(t, c, "nota.modificar", `{"estudiante_id":"2020-001"}`, role)
		in.Stage, in.Tool = anuencia.PolicyOutput, nil
		d, err := e.Decide(t.Context(), in)
		if err != nil || d.Allow != want {
			t.Errorf("%s: %v, %v", role, d.Allow, err)
		}
	}
}

func TestReloadKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	e := engine(t, `decision := {"allow": false, "policy_id": "one"}`)
	first := e.Revision()
	same, err := e.Reload(t.Context(), rego(`decision := {"allow": false, "policy_id": "one"}`))
	if err != nil || same {
		t.Errorf("the same content: %v, %v", same, err)
	}
	if _, err := e.Reload(t.Context(), rego(`decision := {`)); err == nil || e.Revision() != first {
		t.Errorf("a bad revision: %v", err)
	}
	if d, err := e.Decide(t.Context(), plain()); err != nil || d.PolicyID != "one" {
		t.Errorf("after a bad revision: %+v, %v", d, err)
	}
	changed, err := e.Reload(t.Context(), rego(`decision := {"allow": false, "policy_id": "two"}`))
	if err != nil || !changed || e.Revision() == first {
		t.Errorf("a good revision: %v, %v", changed, err)
	}
	if d, err := e.Decide(t.Context(), plain()); err != nil || d.PolicyID != "two" || d.Revision != e.Revision() {
		t.Errorf("after a good revision: %+v, %v", d, err)
	}
}

func TestRevisionIsOfThePoliciesNotOfTheirTests(t *testing.T) {
	t.Parallel()
	fsys := rego(`decision := {"allow": false, "policy_id": "one"}`)
	e, err := opa.New(t.Context(), fsys, opa.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fsys["p_test.rego"] = &fstest.MapFile{Data: []byte("package anuencia_test\n\ntest_x if true\n")}
	changed, err := e.Reload(t.Context(), fsys)
	if err != nil || changed {
		t.Errorf("a test changed the revision: %v, %v", changed, err)
	}
}

func TestInputAsTheRulesSeeIt(t *testing.T) {
	t.Parallel()
	check := strings.Join([]string{
		`input.execution.id == "00000000-0000-0000-0000-000000000007"`, `input.agent.name == "ag"`, `input.tool.kind == "sql_view"`,
		`input.actor.attributes.campus == "norte"`, `input.actor.units == ["u"]`, `input.principal.scopes == ["submit"]`,
		`input.principal.act_for == ["estudiante"]`, `input.channel == "n8n"`, `input.input.a["b/c"] == "2023-114"`,
		`input.subject == "2023-114"`, `input.risk.base == "medium"`, `input.time == "2026-03-02T09:00:00Z"`,
		`input.history == {}`, `input.grants == []`, `input.intent.owner_unit == "of"`,
	}, "\n\t")
	e := engine(t, "decision := {\"allow\": true, \"policy_id\": \"x\", \"risk_level\": \"medium\"} if {\n\t"+check+"\n}")
	in := harness.PolicyInput{
		Stage: anuencia.PolicyExecution, ExecutionID: anuencia.ExecutionID(uuid.UUID{15: 7}), Agent: "ag",
		Intent: anuencia.Intent{
			Name: "a", Risk: anuencia.RiskLow, Subject: "/a/b~1c", Responsibility: anuencia.Responsibility{OwnerUnit: "of"},
		},
		Tool: &anuencia.Tool{Name: "t", Kind: "sql_view", Risk: anuencia.RiskMedium},
		Actor: anuencia.Actor{Person: anuencia.Person{
			ID: personID(1), Units: []string{"u"}, Attributes: map[string]string{"campus": "norte"},
		}},
		Principal: anuencia.Principal{Scopes: []anuencia.Scope{anuencia.ScopeSubmit}, ActFor: []string{"estudiante"}},
		Channel:   anuencia.ChannelN8N, Input: `{"a":{"b/c":"2023-114"}}`, Time: time.Date(2026, 3, 2, 4, 0, 0, 0, time.FixedZone("Lima", -5*3600)),
	}
	if _, err := e.Decide(t.Context(), in); err != nil {
		t.Error(err)
	}
}

func TestConcurrentDecisionsAndReloads(t *testing.T) {
	t.Parallel()
	e, c := demoEngine(t)
	in := question(t, c, "nota.modificar", `{"estudiante_id":"2020-001"}`, "registro")
	done := make(chan error, 8)
	for range 8 {
		go func() {
			for range 50 {
				if _, err := e.Decide(t.Context(), in); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 5 {
		if _, err := e.Reload(t.Context(), policies.FS); err != nil {
			t.Error(err)
		}
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The price of a decision does not depend on how many intents the catalog has:
// the one asked about is in the question. low is what most requests are,
// critical the dearest.
func BenchmarkDecide(b *testing.B) {
	e, c := demoEngine(b)
	for level, q := range map[string]harness.PolicyInput{
		"low":      question(b, c, "consulta.matricula", `{"estudiante_id":"2023-114"}`, "estudiante"),
		"critical": question(b, c, "beca.asignar", `{"estudiante_id":"2023-114","monto":20000,"motivo":"apoyo"}`, "registro"),
	} {
		b.Run(level, func(b *testing.B) {
			for b.Loop() {
				if _, err := e.Decide(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
