package artifact_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/adapters/tools/artifact"
	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	"github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const settings = `{"template":"certificate","data":{"source":"institution","source_id":"v_matricula","queries":{
"estudiante":"select estudiante_id, nombre, carrera, ingreso from estudiantes where estudiante_id = :estudiante_id",
"cursos":"select periodo, curso, curso_nombre, creditos, nota from v_matricula where estudiante_id = :estudiante_id order by periodo, curso"}}}`

// late is past midnight in Greenwich and still the evening before in Lima.
func late() time.Time { return time.Date(2026, 3, 2, 2, 30, 0, 0, time.UTC) }

func lima(t *testing.T) *time.Location {
	t.Helper()
	place, err := time.LoadLocation("America/Lima")
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// institution is the demo's own database, on SQLite.
func institution(t *testing.T) *sqltool.Sources {
	t.Helper()
	src, err := sqltool.Open("institution", filepath.Join(t.TempDir(), "institution.db"))
	if err != nil {
		t.Fatal(err)
	}
	set := sqltool.NewSources(src)
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	files, err := fs.Sub(catalog.FS, "demo/institution")
	if err != nil {
		t.Fatal(err)
	}
	if err := sqltool.Seed(t.Context(), src, "institution", files); err != nil {
		t.Fatal(err)
	}
	return set
}

func certify(t *testing.T, data artifact.Data, now time.Time, args string) (harness.StepResult, error) {
	t.Helper()
	w := artifact.New(data, func() time.Time { return now }, lima(t))
	return w.Run(t.Context(), agent.Call{
		ExecutionID: anuencia.ExecutionID(uuid.MustParse("0198a000-0000-7000-8000-000000000001")), Step: 1,
		Tool: anuencia.Tool{Name: "constancia.generar", Kind: artifact.Kind, Config: []byte(settings)}, Arguments: args,
	})
}

func TestACertificateSaysWhatTheInstitutionHolds(t *testing.T) {
	t.Parallel()
	data := institution(t)
	for kind, c := range map[string]struct{ title, there, absent string }{
		"regular": {"# Constancia de matrícula regular", "| 2026-1 | MAT-101 | Cálculo I | 5 |", "| 14 |"},
		"notas":   {"# Constancia de notas", "| 2026-1 | MAT-101 | Cálculo I | 5 | 14 |", "matriculado"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			res, err := certify(t, data, late(), `{"estudiante_id":"2023-114","tipo":"`+kind+`"}`)
			if err != nil {
				t.Fatal(err)
			}
			md := string(res.Artifacts[0].Content)
			for _, want := range []string{
				c.title, c.there, "Lucía Quispe Rojas", "2023-114", "Emitida el 1 de marzo de 2026.",
				"0198a000-0000-7000-8000-000000000001", res.Sources[0].Hash,
			} {
				if !strings.Contains(md, want) {
					t.Errorf("%q is missing in\n%s", want, md)
				}
			}
			if strings.Contains(md, c.absent) {
				t.Errorf("%q does not belong in\n%s", c.absent, md)
			}
			if len(res.Sources) != 1 || res.Sources[0].ID != "v_matricula" || len(res.Sources[0].Hash) != 64 {
				t.Errorf("sources: %+v", res.Sources)
			}
		})
	}
}

func TestTheResultNamesEachFile(t *testing.T) {
	t.Parallel()
	res, err := certify(t, institution(t), late(), `{"estudiante_id":"2020-001","tipo":"notas"}`)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := audit.Canonical([]byte(res.Result)); err != nil || again != res.Result {
		t.Fatalf("the result is not canonical: %v", err)
	}
	var got struct {
		Constancia map[string]any
		Archivos   []struct {
			Filename  string
			MediaType string `json:"media_type"`
			SHA256    string
			Bytes     int
		}
	}
	if err := json.Unmarshal([]byte(res.Result), &got); err != nil {
		t.Fatal(err)
	}
	if got.Constancia["estudiante"] != "Martín Núñez Peña" || got.Constancia["tipo"] != "notas" || len(got.Archivos) != 2 {
		t.Fatalf("result: %s", res.Result)
	}
	for i, f := range got.Archivos {
		a := res.Artifacts[i]
		sum := sha256.Sum256(a.Content)
		if f.Filename != a.Filename || f.MediaType != a.MediaType || f.Bytes != len(a.Content) || f.SHA256 != hex.EncodeToString(sum[:]) || sum != a.SHA256 {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	if got.Archivos[0].Filename != "constancia-notas-2020-001.md" || got.Archivos[1].MediaType != "application/pdf" {
		t.Errorf("files: %+v", got.Archivos)
	}
}

func TestTheSameDayGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	data := institution(t)
	args := `{"estudiante_id":"2023-114","tipo":"notas"}`
	first, err := certify(t, data, late(), args)
	if err != nil {
		t.Fatal(err)
	}
	again, err := certify(t, data, late().Add(time.Hour), args)
	if err != nil {
		t.Fatal(err)
	}
	next, err := certify(t, data, late().Add(24*time.Hour), args)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first.Artifacts {
		if !bytes.Equal(first.Artifacts[i].Content, again.Artifacts[i].Content) {
			t.Errorf("%s differs within a day", first.Artifacts[i].Filename)
		}
		if bytes.Equal(first.Artifacts[i].Content, next.Artifacts[i].Content) {
			t.Errorf("%s does not show its day", first.Artifacts[i].Filename)
		}
	}
	if first.Result != again.Result {
		t.Error("the result differs within a day")
	}
}

// pageText gives what the compressed streams of a PDF hold.
func pageText(t *testing.T, pdf []byte) string {
	t.Helper()
	var out strings.Builder
	for _, part := range bytes.Split(pdf, []byte("stream\n"))[1:] {
		r, err := zlib.NewReader(bytes.NewReader(part))
		if err != nil {
			continue // not a compressed one
		}
		text, err := io.ReadAll(r)
		if err != nil && len(text) == 0 {
			continue
		}
		out.Write(text)
	}
	return out.String()
}

func TestThePDFHasSpanishLetters(t *testing.T) {
	t.Parallel()
	res, err := certify(t, institution(t), late(), `{"estudiante_id":"2020-001","tipo":"regular"}`)
	if err != nil {
		t.Fatal(err)
	}
	pdf := res.Artifacts[1].Content
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("%%EOF")) {
		t.Fatal("no PDF")
	}
	text := pageText(t, pdf)
	// Windows-1252: one byte for each letter.
	for _, want := range []string{"Mart\xedn N\xfa\xf1ez Pe\xf1a", "Constancia de matr\xedcula regular", "C\xf3digo de verificaci\xf3n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
}

// rows is data of another institution.
type rows map[string][]map[string]any

func (r rows) Snapshot(context.Context, string, map[string]string, string, int) (map[string][]map[string]any, error) {
	return r, nil
}

func TestHostileDataStaysData(t *testing.T) {
	t.Parallel()
	data := rows{
		"estudiante": {{"estudiante_id": "../../x", "nombre": "[a](http://x) <b>|\n# Título 日本 \u202e", "carrera": "C", "ingreso": 2020}},
		"cursos":     {{"periodo": "p", "curso": "a|b", "curso_nombre": strings.Repeat("largo ", 60), "creditos": 3.5, "nota": nil}},
	}
	res, err := certify(t, data, late(), `{"estudiante_id":"../../x","tipo":"notas"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range res.Artifacts {
		if strings.ContainsAny(a.Filename, `/\ `) || strings.Contains(a.Filename, "..") {
			t.Errorf("filename %q", a.Filename)
		}
	}
	md := string(res.Artifacts[0].Content)
	for _, bad := range []string{"[a](", "<b>", "\n# Título"} {
		if strings.Contains(md, bad) {
			t.Errorf("%q became markup in\n%s", bad, md)
		}
	}
	if !strings.Contains(md, "en curso") || !strings.Contains(md, `a\|b`) || !strings.Contains(md, "3.5") {
		t.Errorf("cells are lost in\n%s", md)
	}
}

func TestManyCoursesTakeMorePages(t *testing.T) {
	t.Parallel()
	data := rows{"estudiante": {{"estudiante_id": "1", "nombre": "N", "carrera": "C", "ingreso": "2020"}}}
	for range 200 {
		data["cursos"] = append(data["cursos"], map[string]any{"periodo": "2026-1", "curso": "MAT-101", "curso_nombre": "Cálculo", "creditos": 3, "nota": 11})
	}
	res, err := certify(t, data, late(), `{"estudiante_id":"1","tipo":"notas"}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(pageText(t, res.Artifacts[1].Content), "Huella SHA-256"); n < 4 {
		t.Errorf("the verification stands on %d pages", n)
	}
}

func TestWhatACertificateRefuses(t *testing.T) {
	t.Parallel()
	_, err := certify(t, institution(t), late(), `{"estudiante_id":"1999-999","tipo":"regular"}`)
	if !errors.Is(err, anuencia.NotFound()) {
		t.Errorf("nobody: %v", err)
	}
	_, err = certify(t, rows{"estudiante": {{"estudiante_id": "1"}}}, late(), `{"estudiante_id":"1","tipo":"regular"}`)
	if err == nil || errors.Is(err, anuencia.NotFound()) {
		t.Errorf("a column short: %v", err)
	}
	w := artifact.New(rows{}, late, time.UTC)
	for name, config := range map[string]string{"template": `{"template":"letter"}`, "form": `[]`} {
		if _, err := w.Run(t.Context(), agent.Call{Tool: anuencia.Tool{Config: []byte(config)}, Arguments: `{}`}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if before, err := w.Before(t.Context(), agent.Call{}); before != "" || err != nil {
		t.Errorf("before: %q, %v", before, err)
	}
}
