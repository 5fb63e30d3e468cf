package catalog_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

var _ harness.Catalog = (*catalog.Catalog)(nil)

func demo(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		t.Fatalf("load the demo: %v", err)
	}
	return c
}

func intent(t *testing.T, c *catalog.Catalog, name string) anuencia.Intent {
	t.Helper()
	in, ok := c.Intent(name)
	if !ok {
		t.Fatalf("no intent %s", name)
	}
	return in
}

func TestDemoLoads(t *testing.T) {
	t.Parallel()
	c := demo(t)
	var got []string
	for _, in := range c.Intents() {
		got = append(got, in.Name+":"+string(in.Risk)+":"+in.Command)
		if !in.Responsibility.Complete() {
			t.Errorf("%s: the register of responsibility is not complete", in.Name)
		}
		tool, ok := c.Tool(in.Tool)
		if !ok || len(tool.Digest) != 64 || len(tool.Config) == 0 || len(tool.InputSchema) == 0 {
			t.Errorf("%s: tool %q is not whole: %+v", in.Name, in.Tool, tool)
		}
		if _, ok := c.Agent(in.Agent); !ok {
			t.Errorf("%s: no agent %q", in.Name, in.Agent)
		}
	}
	want := "beca.asignar:high:beca constancia.emitir:medium:constancia consulta.matricula:low:matricula " +
		"datos.exportar:high: documento.buscar:low:buscar nota.modificar:high:"
	if strings.Join(got, " ") != want {
		t.Errorf("intents\n got %s\nwant %s", strings.Join(got, " "), want)
	}
	if len(c.Revision()) != 64 {
		t.Errorf("revision %q is no SHA-256", c.Revision())
	}
	if demo(t).Revision() != c.Revision() {
		t.Error("the same content has two revisions")
	}
}

func TestEmbeddedWithoutDemoIsEmptyAndLoads(t *testing.T) {
	t.Parallel()
	c, err := catalog.Load(embedded.FS, catalog.Options{})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if n := len(c.Intents()); n != 0 {
		t.Errorf("%d intents, want none", n)
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	c := demo(t)
	_, intentOK := c.Intent("x")
	_, agentOK := c.Agent("x")
	_, toolOK := c.Tool("x")
	if intentOK || agentOK || toolOK {
		t.Error("something unknown was found")
	}
	if _, _, err := c.ValidateInput(anuencia.Intent{Name: "x"}, []byte(`{}`)); !errors.Is(err, anuencia.NewFault(anuencia.CodeInternal, "")) {
		t.Errorf("validate for an unknown intent: %v", err)
	}
	if _, err := c.ValidateArguments(anuencia.Tool{Name: "x"}, []byte(`{}`)); !errors.Is(err, anuencia.NewFault(anuencia.CodeInternal, "")) {
		t.Errorf("validate for an unknown tool: %v", err)
	}
}

func TestValidateInputAccepts(t *testing.T) {
	t.Parallel()
	c := demo(t)
	canonical, subject, err := c.ValidateInput(intent(t, c, "beca.asignar"),
		[]byte(`{ "motivo":"Apoyo económico", "monto": 1.50e3, "estudiante_id":"2023-114"}`))
	if err != nil {
		t.Fatalf("validate: %v", err)
	}
	if want := `{"estudiante_id":"2023-114","monto":1500,"motivo":"Apoyo económico"}`; canonical != want || subject != "2023-114" {
		t.Errorf("got %s for %q, want %s", canonical, subject, want)
	}
	canonical, subject, err = c.ValidateInput(intent(t, c, "documento.buscar"), []byte(`{"consulta":"becas"}`))
	if err != nil || subject != "" || canonical != `{"consulta":"becas"}` {
		t.Errorf("got %s for %q: %v", canonical, subject, err)
	}
	tool, _ := c.Tool("matricula.consultar")
	if got, err := c.ValidateArguments(tool, []byte(`{"estudiante_id" : "2020-001"}`)); err != nil || got != `{"estudiante_id":"2020-001"}` {
		t.Errorf("arguments: %s, %v", got, err)
	}
}

func TestValidateInputRefuses(t *testing.T) {
	t.Parallel()
	c := demo(t)
	long := strings.Repeat("a", 100)
	rows := map[string]struct{ intent, input, fields string }{
		"missing":        {"beca.asignar", `{"estudiante_id":"2023-114"}`, "/input/monto required,/input/motivo required"},
		"wrong type":     {"beca.asignar", `{"estudiante_id":"2023-114","monto":"5","motivo":"abc"}`, "/input/monto type"},
		"zero":           {"beca.asignar", `{"estudiante_id":"2023-114","monto":0,"motivo":"abc"}`, "/input/monto exclusiveMinimum"},
		"cents":          {"beca.asignar", `{"estudiante_id":"2023-114","monto":0.001,"motivo":"abc"}`, "/input/monto multipleOf"},
		"pattern":        {"consulta.matricula", `{"estudiante_id":"2023-114' or 1=1"}`, "/input/estudiante_id pattern"},
		"enum":           {"constancia.emitir", `{"estudiante_id":"2023-114","tipo":"falsa"}`, "/input/tipo enum"},
		"grade":          {"nota.modificar", `{"estudiante_id":"2023-114","curso":"MAT-101","nota":20.5,"justificacion":"abc"}`, "/input/nota maximum"}, //nolint:misspell // Spanish
		"unknown":        {"documento.buscar", `{"consulta":"becas","otro":1}`, "/input/otro additionalProperties"},
		"unknown, long":  {"documento.buscar", `{"consulta":"becas","` + long + `":1}`, "/input additionalProperties"},
		"unknown, value": {"documento.buscar", `{"consulta":"becas","<b>x</b>":1}`, "/input additionalProperties"},
		"no object":      {"documento.buscar", `[1]`, "/input type"},
		"too long":       {"documento.buscar", `{"consulta":"` + strings.Repeat("ñ", 301) + `"}`, "/input/consulta maxLength"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := c.ValidateInput(intent(t, c, row.intent), []byte(row.input))
			f := anuencia.AsFault(err)
			if f == nil || f.Code != anuencia.CodeValidation || f.Reason != anuencia.ReasonSchema {
				t.Fatalf("got %v, want VALIDATION_FAILED/schema", err)
			}
			var got []string
			for _, field := range f.Details.Fields {
				got = append(got, field.Path+" "+field.Rule)
			}
			if strings.Join(got, ",") != row.fields {
				t.Errorf("fields %v, want %s", got, row.fields)
			}
		})
	}
}

func TestValidateInputRefusesMalformed(t *testing.T) {
	t.Parallel()
	c := demo(t)
	_, _, err := c.ValidateInput(intent(t, c, "documento.buscar"), []byte(`{"consulta":"a","consulta":"b"}`))
	if !errors.Is(err, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMalformed)) {
		t.Errorf("duplicate keys: %v", err)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	c := demo(t)
	if got := c.Message("es", anuencia.CodePolicyDenied, ""); got != "La política institucional bloqueó la acción solicitada." {
		t.Errorf("POLICY_DENIED in Spanish is not the client's: %q", got)
	}
	seen := map[string]bool{}
	for _, lang := range catalog.Languages() {
		for _, code := range anuencia.Codes() {
			for _, reason := range append([]anuencia.Reason{""}, catalog.Reasons()[code]...) {
				text := c.Message(lang, code, reason)
				if text == "" {
					t.Errorf("%s %s/%s has no words", lang, code, reason)
				}
				seen[lang+text] = true
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d different messages", len(seen))
	}
	if got := c.Message("fr", anuencia.CodeTimeout, "nothing"); got != c.Message("es", anuencia.CodeTimeout, "") {
		t.Errorf("unknown language and reason: %q", got)
	}
	if got := c.WarningMessage("en", "partial_result"); !strings.Contains(got, "incomplete") {
		t.Errorf("warning: %q", got)
	}
	if got := c.WarningMessage("en", "nothing"); got != "nothing" {
		t.Errorf("unknown warning: %q", got)
	}
	if got := c.Text("en", "risk.high"); got != "high" {
		t.Errorf("text: %q", got)
	}
	if got := c.Text("es", "nothing"); got != "nothing" {
		t.Errorf("unknown text: %q", got)
	}
	if len(c.Texts()) < 50 {
		t.Errorf("only %d texts", len(c.Texts()))
	}
}

func TestMessagesMayComeFromAnotherFolder(t *testing.T) {
	t.Parallel()
	own, err := fs.Sub(embedded.FS, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Load(own, catalog.Options{}); err == nil {
		t.Error("a folder without messages loaded")
	}
	c, err := catalog.Load(own, catalog.Options{Messages: embedded.FS})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if len(c.Intents()) != 6 {
		t.Errorf("%d intents", len(c.Intents()))
	}
}

// changed gives the embedded catalog with one replacement in one file; an empty
// old text replaces the whole file, which may be new.
func changed(t *testing.T, name, from, to string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(embedded.FS, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(embedded.FS, p)
		out[p] = &fstest.MapFile{Data: raw}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if from == "" {
		out[name] = &fstest.MapFile{Data: []byte(to)}
		return out
	}
	raw := string(out[name].Data)
	if !strings.Contains(raw, from) {
		t.Fatalf("%s has no %q", name, from)
	}
	out[name] = &fstest.MapFile{Data: []byte(strings.Replace(raw, from, to, 1))}
	return out
}
