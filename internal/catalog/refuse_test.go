package catalog_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
)

const (
	beca   = "demo/intents/beca.asignar.yaml"
	matri  = "demo/intents/consulta.matricula.yaml"
	tools  = "demo/tools.yaml"
	agents = "demo/agents.yaml"
	es     = "messages/es.yaml"
	en     = "messages/en.yaml"
)

func TestRefusals(t *testing.T) {
	t.Parallel()
	rows := map[string]struct{ file, from, to, problem string }{
		"unknown key":            {beca, "risk: high", "risk: high\nriesgo: alto", "field riesgo not found"},
		"two documents":          {beca, "", "name: a\n---\nname: b\n", "more than one document"},
		"empty file":             {beca, "", "", "the file is empty"},
		"file name":              {beca, "name: beca.asignar", "name: beca.otra", "must be named beca.otra.yaml"},
		"name":                   {"demo/intents/Mal.yaml", "", "name: Mal\n", "name must be lower-case"},
		"no title":               {beca, "  en: Award of a grant\n", "", `title has no text in "en"`},
		"language":               {beca, "  en: Award of a grant\n", "  en: Award\n  fr: Bourse\n", `unknown language "fr"`},
		"risk":                   {beca, "risk: high", "risk: huge", `risk "huge" is none of`},
		"risk below tool":        {beca, "risk: high", "risk: low", "risk is below that of its tool"},
		"no roles":               {beca, "roles: [registro]", "roles: []", "nobody may ask"},
		"bad role":               {beca, "roles: [registro]", "roles: [registro, 'A b']", "is not the name of a role"},
		"role twice":             {beca, "roles: [registro]", "roles: [registro, registro]", "stands twice"},
		"unserved role":          {beca, "roles: [registro]", "roles: [estudiante]", `does not serve role "estudiante"`},
		"own without subject":    {matri, "subject: /estudiante_id", `subject: ""`, "own_roles needs a subject"},
		"subject unknown":        {beca, "subject: /estudiante_id", "subject: /alumno", `subject "/alumno" is not the path`},
		"subject no pointer":     {beca, "subject: /estudiante_id", "subject: estudiante_id", "is not the path"},
		"subject no string":      {beca, "subject: /estudiante_id", "subject: /monto", "is not the path"},
		"unknown agent":          {beca, "agent: asistente_bienestar", "agent: nadie", `unknown agent "nadie"`},
		"unknown tool":           {beca, "tool: beca.registrar", "tool: nada", `unknown tool "nada"`},
		"tool not of agent":      {beca, "tool: beca.registrar", "tool: nota.actualizar", "may not use tool"},
		"command":                {beca, "command: beca", "command: /beca", "is not a bot command"},
		"command twice":          {beca, "command: beca", "command: matricula", `is also that of intent "beca.asignar"`},
		"command reserved":       {beca, "command: beca", "command: aprobar", "is one of the bot's own"},
		"timeout":                {beca, "timeout: 30s", "timeout: 2h", "timeout is over one hour"},
		"duration":               {beca, "timeout: 30s", "timeout: soon", "is not a duration"},
		"limit":                  {beca, "timeout: 30s", "timeout: 30s\nlimit: {count: 5}", "limit needs count, window and burst"},
		"no schema":              {"demo/intents/x.yaml", "", "name: x\n", "a schema is needed"},
		"open schema":            {beca, "additionalProperties: false", "additionalProperties: true", "additionalProperties false"},
		"schema keyword":         {beca, "minLength: 3", "minLength: three", "compile schema"},
		"schema pattern":         {beca, `pattern: "^[0-9]{4}-[0-9]{3}$"`, `pattern: "("`, "compile schema"},
		"schema reference":       {beca, "type: number", "$ref: https://example.org/x.json", "may not refer to"},
		"schema number":          {beca, "maximum: 1000000", "maximum: 9007199254740993", "no exact JSON form"},
		"default refused":        {beca, "minLength: 3", "minLength: 3\n      default: a", "default of motivo is refused"},
		"agent twice":            {agents, "name: asistente_datos", "name: asistente_bienestar", "declared twice"},
		"agent name":             {agents, "name: asistente_datos", "name: Datos", "name must be lower-case"},
		"runner":                 {agents, "runner: direct", "runner: magic", `unknown runner "magic"`},
		"agent unknown tool":     {agents, "[datos.extraer]", "[datos.otro]", `unknown tool "datos.otro"`},
		"agent without tools":    {agents, "tools: [datos.extraer]", "tools: []", "has no tools"},
		"agent without roles":    {agents, "roles: [oficina_datos]", "roles: []", "serves no roles"},
		"agents missing key":     {agents, "", "agentes: []\n", "field agentes not found"},
		"tool twice":             {tools, "name: datos.extraer", "name: nota.actualizar", "declared twice"},
		"tool kind":              {tools, "kind: document_search", "kind: shell", `unknown kind "shell"`},
		"tool timeout":           {tools, "timeout: 5s", "timeout: 0s", "timeout must be above zero"},
		"tool risk":              {tools, "risk: low", "risk: none", `risk "none" is none of`},
		"tool name":              {tools, "name: datos.extraer", "name: datos-extraer", "name must be lower-case"},
		"view with effect":       {tools, "effect: false", "effect: true", "a sql_view has no effect"},
		"search with effect":     {tools, "kind: sql_view", "kind: document_search", "config: read"},
		"action without effect":  {tools, "    risk: high\n    timeout: 10s\n    effect: true", "    risk: high\n    timeout: 10s\n    effect: false", "a sql_action has an effect"},
		"config unknown key":     {tools, "max_rows: 100", "max_rows: 100\n      limite: 1", `unknown field "limite"`},
		"max_rows":               {tools, "max_rows: 100", "max_rows: 0", "max_rows must be"},
		"max_results":            {tools, "max_results: 5", "max_results: 500", "max_results must be"},
		"no collection":          {tools, "collection: regulations", `collection: ""`, "config needs collection"},
		"no source":              {tools, "source: institution", `source: ""`, "config needs source"},
		"no rows":                {tools, "      rows: 1\n", "", "rows must be how many"},
		"no template":            {tools, "template: certificate", `template: ""`, "config needs template"},
		"open parameter":         {tools, "where estudiante_id = :estudiante_id order", "where estudiante_id = :alumno order", "parameter :alumno is not"},
		"message missing":        {es, "      tool: La herramienta superó el tiempo permitido.\n", "", "TIMEOUT.tool has no words"},
		"message code missing":   {en, "  TOOL_NOT_ALLOWED:\n    message: The requested tool is not allowed for this action.\n", "", "TOOL_NOT_ALLOWED has no words"},
		"message interpolates":   {es, "La acción no fue aprobada.", "La acción {name} no fue aprobada.", "must be plain words"},
		"message unknown code":   {es, "errors:\n", "errors:\n  OTHER:\n    message: x\n", "unknown code OTHER"},
		"message unknown reason": {es, "      malformed:", "      strange: x\n      malformed:", "unknown reason strange of VALIDATION_FAILED"},
		"message language":       {en, "language: en", "language: de", `language must be "en"`},
		"warning in one only":    {en, "  no_results: No results were found.\n", "", "warning no_results is missing"},
		"text in one only":       {en, "    help: Available commands\n", "", "text notification.help is missing"},
		"text required":          {es, "    critical: crítico\n", "", "text risk.critical is missing"},
		"text no words":          {es, "    critical: crítico\n", "    critical: 7\n", "is neither words nor a section"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := catalog.Load(changed(t, row.file, row.from, row.to), catalog.Options{Demo: true})
			var p catalog.ProblemsError
			if !errors.As(err, &p) {
				t.Fatalf("got %v, want problems", err)
			}
			if !strings.Contains(err.Error(), row.problem) {
				t.Errorf("%q is not among:\n%v", row.problem, err)
			}
		})
	}
}

func TestMissingFilesAreProblems(t *testing.T) {
	t.Parallel()
	for _, name := range []string{tools, agents, es, en} {
		f := changed(t, name, "", "")
		delete(f, name)
		_, err := catalog.Load(f, catalog.Options{Demo: true})
		if err == nil || !strings.Contains(err.Error(), "the file is missing") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	f := changed(t, es, "", "")
	for p := range f {
		if strings.HasPrefix(p, "demo/intents/") {
			delete(f, p)
		}
	}
	if _, err := catalog.Load(f, catalog.Options{Demo: true}); err == nil || !strings.Contains(err.Error(), "intents: the folder is missing") {
		t.Errorf("without intents: %v", err)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	f := changed(t, beca, "risk: high", "risk: huge")
	f[tools].Data = []byte(strings.Replace(string(f[tools].Data), "kind: artifact", "kind: shell", 1))
	f[es].Data = []byte(strings.Replace(string(f[es].Data), "critical: crítico", "critical: ''", 1))
	_, err := catalog.Load(f, catalog.Options{Demo: true})
	var p catalog.ProblemsError
	if !errors.As(err, &p) || len(p) < 3 {
		t.Fatalf("got %v, want three problems or more", err)
	}
	if !slices.IsSorted(p) {
		t.Error("the problems are not in order")
	}
}

func TestResponsibilityIsAskedOutsideTheDemo(t *testing.T) {
	t.Parallel()
	f := changed(t, beca, "  appeals: Vicerrectorado Académico\n", "")
	if _, err := catalog.Load(f, catalog.Options{Demo: true}); err != nil {
		t.Errorf("in the demo: %v", err)
	}
	own := changed(t, beca, "  appeals: Vicerrectorado Académico\n", "")
	for p, file := range own {
		if rest, ok := strings.CutPrefix(p, "demo/"); ok {
			own[rest] = file
		}
	}
	_, err := catalog.Load(own, catalog.Options{})
	if err == nil || !strings.Contains(err.Error(), "responsibility needs owner_unit") {
		t.Errorf("outside the demo: %v", err)
	}
}

func TestDigestIsOfTheWholeDefinition(t *testing.T) {
	t.Parallel()
	digest := func(from, to string) string {
		c, err := catalog.Load(changed(t, tools, from, to), catalog.Options{Demo: true})
		if err != nil {
			t.Fatalf("load: %v", err)
		}
		tool, _ := c.Tool("matricula.consultar")
		return tool.Digest
	}
	same := digest("# The actions", "# Actions")
	for _, change := range [][2]string{
		{"order by periodo, curso", "order by curso"},
		{"max_rows: 100", "max_rows: 99"},
		{"timeout: 5s", "timeout: 6s"},
		{"idempotent: true", "idempotent: false"},
		{"Lee los cursos", "Mira los cursos"},
		{`{type: string, pattern: "^[0-9]{4}-[0-9]{3}$"}`, "{type: string}"},
	} {
		if digest(change[0], change[1]) == same {
			t.Errorf("%q for %q does not change the digest", change[1], change[0])
		}
	}
}

func TestDefaultsApply(t *testing.T) {
	t.Parallel()
	f := changed(t, "demo/intents/constancia.emitir.yaml", "required: [estudiante_id, tipo]", "required: [estudiante_id, tipo, opciones]")
	file := f["demo/intents/constancia.emitir.yaml"]
	file.Data = []byte(strings.Replace(string(file.Data), "      enum: [regular, notas]\n", `      enum: [regular, notas]
      default: regular
    opciones:
      type: object
      additionalProperties: false
      default: {}
      properties:
        copias: {type: integer, default: 1}
`, 1))
	c, err := catalog.Load(f, catalog.Options{Demo: true})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	in := intent(t, c, "constancia.emitir")
	for input, want := range map[string]string{
		`{"estudiante_id":"2023-114"}`:                                            `{"estudiante_id":"2023-114","opciones":{},"tipo":"regular"}`,
		`{"estudiante_id":"2023-114","tipo":"notas","opciones":{}}`:               `{"estudiante_id":"2023-114","opciones":{"copias":1},"tipo":"notas"}`,
		`{"estudiante_id":"2023-114","tipo":"notas","opciones":{"copias":2}}`:     `{"estudiante_id":"2023-114","opciones":{"copias":2},"tipo":"notas"}`,
		`{"opciones":{"copias":3.0},"tipo":"regular","estudiante_id":"2023-114"}`: `{"estudiante_id":"2023-114","opciones":{"copias":3},"tipo":"regular"}`,
	} {
		got, subject, err := c.ValidateInput(in, []byte(input))
		if err != nil || got != want || subject != "2023-114" {
			t.Errorf("%s\n got %s (%v)\nwant %s", input, got, err, want)
		}
	}
}

func TestReloadKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	f := changed(t, beca, "timeout: 30s", "timeout: 31s")
	var reports []string
	r, err := catalog.NewReloader(
		func() (*catalog.Catalog, error) { return catalog.Load(f, catalog.Options{Demo: true}) },
		func(c *catalog.Catalog, err error) {
			word := "refused"
			if err == nil {
				word = "taken"
			}
			reports = append(reports, word+" "+c.Revision()[:8])
		})
	if err != nil {
		t.Fatal(err)
	}
	first := r.Current()
	if err := r.Reload(); err != nil || r.Current() != first {
		t.Errorf("the same content changed something: %v", err)
	}
	good := f[beca].Data
	f[beca].Data = []byte("risk: [")
	if err := r.Reload(); err == nil || r.Current() != first {
		t.Errorf("a bad revision: %v", err)
	}
	f[beca].Data = []byte(strings.Replace(string(good), "timeout: 31s", "timeout: 32s", 1))
	if err := r.Reload(); err != nil || r.Current() == first {
		t.Errorf("a good revision: %v", err)
	}
	in, _ := r.Current().Intent("beca.asignar")
	if in.Timeout.Seconds() != 32 {
		t.Errorf("timeout %v", in.Timeout)
	}
	want := []string{"refused " + first.Revision()[:8], "taken " + r.Current().Revision()[:8]}
	if !slices.Equal(reports, want) {
		t.Errorf("reports %v, want %v", reports, want)
	}
}

func TestReloaderNeedsAFirstCatalog(t *testing.T) {
	t.Parallel()
	refused := anuencia.NewFault(anuencia.CodeInternal, "")
	r, err := catalog.NewReloader(func() (*catalog.Catalog, error) { return nil, refused }, nil)
	if r != nil || !errors.Is(err, refused) {
		t.Errorf("got %v, %v", r, err)
	}
}
