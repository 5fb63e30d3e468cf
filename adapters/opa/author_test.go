package opa_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	embedded "github.com/anuencia-harness/anuencia/catalog"

	"github.com/anuencia-harness/anuencia/adapters/opa"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/policies"
)

func TestEmbeddedPoliciesPassTheirTestsAndAreCovered(t *testing.T) {
	t.Parallel()
	r, err := opa.Test(t.Context(), policies.FS)
	if err != nil {
		t.Fatalf("run the Rego tests: %v", err)
	}
	if !r.OK() {
		t.Errorf("passed %d, failed:\n%s", r.Passed, strings.Join(r.Failed, "\n"))
	}
	if r.Coverage < 100 {
		t.Errorf("coverage %.1f %%, not covered: %v", r.Coverage, r.NotCovered)
	}
}

// Every rule that a person may be told of has words in the catalog, and every
// short code of what to do next.
func TestEveryRuleHasWords(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"(, "([a-z_]+)"\])?`)
	found := 0
	for _, name := range []string{"base.rego", "demo.rego"} {
		raw, err := policies.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rule.FindAllStringSubmatch(string(raw), -1) {
			if m[1] == "beca.asignar" || m[1] == "datos.exportar" { // names of intents
				continue
			}
			found++
			if c.Text("es", "rule."+m[1]) == "rule."+m[1] {
				t.Errorf("rule %s has no words", m[1])
			}
			if m[3] != "" && c.Text("es", "next_action."+m[3]) == "next_action."+m[3] {
				t.Errorf("next action %s has no words", m[3])
			}
		}
	}
	if found < 15 {
		t.Errorf("found only %d rules: the search is broken", found)
	}
}

func TestReportOfFailingTests(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"a.rego": {Data: []byte("package anuencia\n\ndecision := {\"allow\": false}\n\nunused if {\n\tinput.x == 1\n}\n")},
		"a_test.rego": {Data: []byte(`package anuencia_test

import data.anuencia

test_ok if anuencia.decision.allow == false

test_bad if anuencia.decision.allow

todo_test_later if true

test_error if 1 / 0 == 1
`)},
	}
	r, err := opa.Test(t.Context(), fsys)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || r.Passed != 1 || len(r.Failed) != 3 {
		t.Errorf("report %+v", r)
	}
	if r.Coverage >= 100 || len(r.NotCovered) == 0 {
		t.Errorf("coverage %.1f, gaps %v", r.Coverage, r.NotCovered)
	}
	none, err := opa.Test(t.Context(), fstest.MapFS{"a.rego": fsys["a.rego"]})
	if err != nil || none.OK() {
		t.Errorf("a folder without tests is OK: %+v, %v", none, err)
	}
	if _, err := opa.Test(t.Context(), fstest.MapFS{}); err == nil {
		t.Error("an empty folder was tested")
	}
}

func TestEval(t *testing.T) {
	t.Parallel()
	out, err := opa.Eval(t.Context(), policies.FS, []byte(`{"stage":"approval","actor":{"id":"x","roles":["admin"]},
		"risk":{"base":"high"},"approval":{"requester":"y","on_behalf_of":"","stages":[],"channels":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(out, &d); err != nil || d["policy_id"] != "approval.admin" {
		t.Errorf("decision %s (%v)", out, err)
	}
	if _, err := opa.Eval(t.Context(), policies.FS, []byte(`{`)); err == nil {
		t.Error("broken input was answered")
	}
	undefined := fstest.MapFS{"a.rego": {Data: []byte("package anuencia\n\ndecision := {\"allow\": true} if input.x\n")}}
	if _, err := opa.Eval(t.Context(), undefined, []byte(`{}`)); !errors.Is(err, opa.ErrUndefined) {
		t.Errorf("undefined: %v", err)
	}
}
