package rest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/adapters/rest"
	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

var errLeak = errors.New(`pq: relation "audit_events" at /srv/app/x.go:7, postgres://u:hidden@db`)

// world is the API over the fake; every answer is held against openapi.yaml.
type world struct {
	*fake
	router *gin.Engine
	spec   *spec
}

func newWorld(t *testing.T) *world {
	t.Helper()
	words, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{fake: newFake(), spec: newSpec(t)}
	kit, err := httpkit.New(httpkit.Options{
		UseCases: w.fake, Words: func() httpkit.Words { return words }, Languages: contract.NewLanguages("es", "en"),
		Now: func() time.Time { return at(0) }, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.router = kit.Router()
	metrics := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain; version=0.0.4")
		if _, err := io.WriteString(rw, "up 1\n"); err != nil {
			t.Error(err)
		}
	})
	err = rest.Mount(w.router, rest.Options{
		Service: w.fake, Kit: kit, Metrics: metrics,
		Words: func(lang string) map[string]any {
			return map[string]any{"language": lang, "errors": map[string]string{"a": "b"}, "texts": map[string]string{}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// reply is an answer that was as described.
type reply struct {
	*httptest.ResponseRecorder
	raw  string
	body map[string]any
}

// send makes a request with the scope as its credential, "" for none.
func (w *world) send(t *testing.T, scope anuencia.Scope, method, path, body string, headers ...string) reply {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if scope != "" {
		req.Header.Set("Authorization", "Bearer "+string(scope))
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.router.ServeHTTP(rec, req)
	r := reply{ResponseRecorder: rec, raw: rec.Body.String()}
	if strings.HasPrefix(rec.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal([]byte(r.raw), &r.body); err != nil {
			t.Fatalf("%s %s: %q: %v", method, path, r.raw, err)
		}
	}
	w.spec.check(t, method, path, r)
	return r
}

func (r reply) want(t *testing.T, status int, parts ...string) reply {
	t.Helper()
	if r.Code != status {
		t.Fatalf("status %d, want %d: %s", r.Code, status, r.raw)
	}
	for _, p := range parts {
		if !strings.Contains(r.raw, p) {
			t.Errorf("no %s in %s", p, r.raw)
		}
	}
	return r
}

// spec holds answers against the description.
type spec struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
}

const specURL = "file:///openapi.json"

func newSpec(t *testing.T) *spec {
	t.Helper()
	return parseSpec(t, specFile(t))
}

func specFile(t *testing.T) []byte {
	t.Helper()
	w := &world{fake: newFake()}
	kit, err := httpkit.New(httpkit.Options{
		UseCases: w.fake, Words: func() httpkit.Words { return nil }, Languages: contract.NewLanguages("es"),
		Now: func() time.Time { return at(0) }, NewID: uuid.New, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := kit.Router()
	err = rest.Mount(r, rest.Options{
		Service: w.fake, Kit: kit, Metrics: http.NotFoundHandler(), Words: func(string) map[string]any { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.yaml", nil))
	return rec.Body.Bytes()
}

func parseSpec(t *testing.T, raw []byte) *spec {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(specURL, plain); err != nil {
		t.Fatal(err)
	}
	s := &spec{compiler: c}
	var ok bool
	if s.doc, ok = plain.(map[string]any); !ok {
		t.Fatal("openapi.yaml is no object")
	}
	return s
}

func object(v any, path ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, p := range path {
		m, _ = m[p].(map[string]any)
	}
	return m
}

// find gives the template of a path.
func (s *spec) find(path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for template := range object(s.doc, "paths") {
		want := strings.Split(template, "/")
		same := len(want) == len(parts)
		for i := range want {
			same = same && (want[i] == parts[i] || strings.HasPrefix(want[i], "{"))
		}
		if same {
			return template
		}
	}
	return ""
}

func pointer(path ...string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	parts := make([]string, len(path))
	for i, p := range path {
		parts[i] = escape.Replace(p)
	}
	return specURL + "#/" + strings.Join(parts, "/")
}

// check holds an answer against the description: its status must be there, and
// its body must have that shape. What is no operation gives the standard error.
func (s *spec) check(t *testing.T, method, path string, r reply) {
	t.Helper()
	template := s.find(path)
	where := []string{"paths", template, strings.ToLower(method)}
	if template == "" || object(s.doc, where...) == nil {
		if r.body != nil && method != http.MethodHead {
			s.valid(t, pointer("components", "schemas", "Error"), method+" "+path, r)
		}
		return
	}
	where = append(where, "responses", strconv.Itoa(r.Code))
	response := object(s.doc, where...)
	if response == nil {
		t.Errorf("%s %s: status %d is not described: %s", method, path, r.Code, r.raw)
		return
	}
	if ref, ok := response["$ref"].(string); ok {
		where = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response = object(s.doc, where...)
	}
	content := object(response, "content")
	if content == nil && r.raw != "" {
		t.Errorf("%s %s: a body that is not described: %s", method, path, r.raw)
	}
	if content["application/json"] == nil || r.raw == "" {
		return
	}
	s.valid(t, pointer(append(where, "content", "application/json", "schema")...), method+" "+path, r)
}

func (s *spec) valid(t *testing.T, at, name string, r reply) {
	t.Helper()
	schema, err := s.compiler.Compile(at)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(r.raw))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: not as described: %v\n%s", name, err, r.raw)
	}
}
