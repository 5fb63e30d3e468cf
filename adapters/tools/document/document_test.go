package document_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/adapters/tools/document"
	"github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func regulations(t *testing.T) fs.FS {
	t.Helper()
	files, err := fs.Sub(catalog.FS, "demo/regulations")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func open(t *testing.T, files fs.FS) *document.Search {
	t.Helper()
	s, err := document.New(map[string]fs.FS{"regulations": files})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

type result struct {
	Resultados []struct{ Documento, Titulo, Fragmento string }
}

// tester is a test, or one run of a property.
type tester interface {
	rapid.TB
	Context() context.Context
}

func ask(t tester, s *document.Search, query string) (harness.StepResult, result) {
	t.Helper()
	args, err := audit.CanonicalOf(map[string]any{"consulta": query})
	if err != nil {
		t.Fatalf("arguments: %v", err)
	}
	res, err := s.Run(t.Context(), agent.Call{
		Tool: anuencia.Tool{Kind: document.Kind, Config: []byte(`{"collection":"regulations","max_results":5}`)}, Arguments: args,
	})
	if err != nil {
		t.Fatalf("search %q: %v", query, err)
	}
	var got result
	if err := json.Unmarshal([]byte(res.Result), &got); err != nil {
		t.Fatalf("result: %v", err)
	}
	return res, got
}

func TestTheRegulationAskedForComesFirst(t *testing.T) {
	t.Parallel()
	s := open(t, regulations(t))
	for _, query := range []string{
		"becas", "BECAS", "¿Cuáles son los requisitos para una beca?", "renovacion de la beca", "renovación de becas",
		"beca AND NOT title:(becas)", "+becas -becas",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			res, got := ask(t, s, query)
			if len(got.Resultados) == 0 || got.Resultados[0].Documento != "REG-BEC-2024" {
				t.Fatalf("got %+v", got)
			}
			if len(got.Resultados) > 5 || len(res.Sources) != len(got.Resultados) || len(res.Warnings) != 0 {
				t.Fatalf("%d results, %d sources, %v", len(got.Resultados), len(res.Sources), res.Warnings)
			}
		})
	}
}

func TestAccentsDoNotMatter(t *testing.T) {
	t.Parallel()
	s := open(t, regulations(t))
	for with, without := range map[string]string{"matrícula": "matricula", "evaluación": "evaluacion", "constancias académicas": "constancias academicas"} { //nolint:misspell // Spanish
		a, first := ask(t, s, with)
		b, _ := ask(t, s, without)
		if len(first.Resultados) == 0 || a.Result != b.Result {
			t.Errorf("%q and %q differ: %s, %s", with, without, a.Result, b.Result)
		}
	}
}

func TestSourcesNameTheFileThatWasRead(t *testing.T) {
	t.Parallel()
	files := regulations(t)
	res, _ := ask(t, open(t, files), "becas")
	raw, err := fs.ReadFile(files, "becas.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	want := anuencia.Source{Type: "document", ID: "REG-BEC-2024", Ref: "Reglamento de Becas", Hash: hex.EncodeToString(sum[:])}
	if res.Sources[0] != want {
		t.Fatalf("source %+v, want %+v", res.Sources[0], want)
	}
}

func TestStopWordsAndNonsenseFindNothing(t *testing.T) {
	t.Parallel()
	s := open(t, regulations(t))
	for _, query := range []string{"de la y el", "xyzzyplugh", "***", "\u202e\u200b", "日本"} {
		res, got := ask(t, s, query)
		if len(got.Resultados) != 0 || res.Result != `{"resultados":[]}` {
			t.Errorf("%q found %s", query, res.Result)
		}
		if len(res.Warnings) != 1 || res.Warnings[0].Code != "no_results" {
			t.Errorf("%q warns %v", query, res.Warnings)
		}
	}
}

func TestFragmentsAreShortAndShowTheMatch(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("Texto sin relación alguna con lo buscado, señalado así. ", 80)
	long := "---\nid: LARGO\ntitle: Norma extensa\n---\n## Artículo 1. Uno\n" + filler + "La excepción ñandú aplica aquí. " + filler
	s := open(t, fstest.MapFS{"largo.md": {Data: []byte(long)}})
	_, got := ask(t, s, "excepción ñandú")
	if len(got.Resultados) != 1 {
		t.Fatalf("got %+v", got)
	}
	f := got.Resultados[0].Fragmento
	if len(f) > 400 || !strings.Contains(f, "ñandú") || !strings.HasPrefix(f, "… ") || !strings.HasSuffix(f, " …") || !utf8.ValidString(f) {
		t.Fatalf("fragment of %d bytes: %q", len(f), f)
	}
}

// TestAnyTextIsOnlyWords: no query is an error, and no fragment is broken.
func TestAnyTextIsOnlyWords(t *testing.T) {
	t.Parallel()
	s := open(t, regulations(t))
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{"beca", "matrícula", "AND", "OR", "-", "+", "\"", "title:", "*", "?", "~2", "^9", "/x/", "(", ")", "\\", ">=", "artículo"}),
			rapid.StringN(0, 20, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }),
		), 1, 8).Draw(rt, "query")
		_, got := ask(rt, s, strings.Join(parts, " "))
		for _, r := range got.Resultados {
			if len(r.Fragmento) > 400 || !utf8.ValidString(r.Fragmento) || r.Titulo == "" {
				rt.Fatalf("result %+v", r)
			}
		}
	})
}

func TestWhatIsNoCollectionIsRefused(t *testing.T) {
	t.Parallel()
	doc := func(text string) fstest.MapFS { return fstest.MapFS{"a.md": {Data: []byte(text)}} }
	for name, files := range map[string]fstest.MapFS{
		"no front matter":  doc("# Título\n"),
		"never closed":     doc("---\nid: A\ntitle: B\n# Título\n"),
		"no title":         doc("---\nid: A\n---\ntexto\n"),
		"no yaml":          doc("---\nid: [\n---\ntexto\n"),
		"one id, two docs": {"a.md": {Data: []byte("---\nid: A\ntitle: B\n---\nx\n")}, "b.md": {Data: []byte("---\nid: A\ntitle: C\n---\ny\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := document.New(map[string]fs.FS{"c": files})
			if err == nil {
				t.Fatal("accepted", s.Close())
			}
		})
	}
}

func TestACallThatCannotBe(t *testing.T) {
	t.Parallel()
	s := open(t, regulations(t))
	for name, c := range map[string][2]string{
		"collection": {`{"collection":"others","max_results":1}`, `{"consulta":"x"}`},
		"settings":   {`[]`, `{"consulta":"x"}`},
		"arguments":  {`{"collection":"regulations"}`, `[]`},
	} {
		if _, err := s.Run(t.Context(), agent.Call{Tool: anuencia.Tool{Config: []byte(c[0])}, Arguments: c[1]}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if before, err := s.Before(t.Context(), agent.Call{}); before != "" || err != nil {
		t.Errorf("before: %q, %v", before, err)
	}
}

func BenchmarkOpen(b *testing.B) {
	files, err := fs.Sub(catalog.FS, "demo/regulations")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := document.New(map[string]fs.FS{"regulations": files})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
