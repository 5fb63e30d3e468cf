// Package artifact is the tool that writes files: certificates in Markdown and
// PDF from the institution's own data (governance section 9).
package artifact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Kind is the name by which the catalog knows this tool.
const Kind = "artifact"

// templateCertificate is the one template there is.
const templateCertificate = "certificate"

// maxRows bounds what a certificate may list.
const maxRows = 500

// Data reads the institution's databases: several named queries, the same
// arguments (RFC 8785 text of an object), one state of the data.
type Data interface {
	Snapshot(ctx context.Context, source string, queries map[string]string, args string, maxRows int) (map[string][]map[string]any, error)
}

// Writer is the tool. Safe for concurrent use. It has no state: a file exists
// when the harness commits it, so a run that died left nothing.
type Writer struct {
	data  Data
	now   func() time.Time
	place *time.Location
}

var _ agent.Tool = (*Writer)(nil)

// New makes the tool; the date on a certificate is that of now in place.
func New(data Data, now func() time.Time, place *time.Location) *Writer {
	return &Writer{data: data, now: now, place: place}
}

type config struct {
	Template string `json:"template"`
	Data     struct {
		Source   string            `json:"source"`
		SourceID string            `json:"source_id"`
		Queries  map[string]string `json:"queries"`
	} `json:"data"`
}

// Before implements agent.Tool: a new file changes nothing that exists.
func (*Writer) Before(context.Context, agent.Call) (string, error) { return "", nil }

// Run implements agent.Tool. The same data, arguments, execution and day give
// the same bytes. The result is {"constancia": {...}, "archivos": [{filename,
// media_type, sha256, bytes}]}. VALIDATION_FAILED/not_found for a student who
// does not exist.
func (w *Writer) Run(ctx context.Context, c agent.Call) (harness.StepResult, error) {
	var none harness.StepResult
	var cfg config
	if err := json.Unmarshal(c.Tool.Config, &cfg); err != nil {
		return none, fmt.Errorf("configuration of %s: %w", c.Tool.Name, err)
	}
	if cfg.Template != templateCertificate {
		return none, fmt.Errorf("no template %q", cfg.Template)
	}
	var args struct {
		Tipo string `json:"tipo"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
		return none, fmt.Errorf("read arguments: %w", err)
	}
	rows, err := w.data.Snapshot(ctx, cfg.Data.Source, cfg.Data.Queries, c.Arguments, maxRows)
	if err != nil {
		return none, fmt.Errorf("data: %w", err)
	}
	data, err := audit.CanonicalOf(rows)
	if err != nil {
		return none, fmt.Errorf("data: %w", err)
	}
	cert, err := certificateOf(rows, args.Tipo == "notas")
	if err != nil {
		return none, err
	}
	cert.Code = c.ExecutionID.String()
	cert.Fingerprint = audit.Digest(data)
	cert.At = w.now().In(w.place)
	return finish(cert, anuencia.Source{
		Type: "sql_view", ID: cfg.Data.SourceID, Ref: cfg.Data.Source + "." + cfg.Data.SourceID, Hash: cert.Fingerprint,
	})
}

func finish(cert certificate, source anuencia.Source) (harness.StepResult, error) {
	pdf, err := cert.pdf()
	if err != nil {
		return harness.StepResult{}, err
	}
	name := "constancia-" + cert.kind() + "-" + safeName(cert.StudentID)
	res := harness.StepResult{Sources: []anuencia.Source{source}, Artifacts: []anuencia.Artifact{
		fileOf(name+".md", "text/markdown; charset=utf-8", []byte(cert.markdown())),
		fileOf(name+".pdf", "application/pdf", pdf),
	}}
	files := make([]map[string]any, len(res.Artifacts))
	for i, a := range res.Artifacts {
		files[i] = map[string]any{
			"filename": a.Filename, "media_type": a.MediaType, "sha256": hex.EncodeToString(a.SHA256[:]), "bytes": len(a.Content),
		}
	}
	res.Result, err = audit.CanonicalOf(map[string]any{
		"constancia": map[string]any{
			"tipo": cert.kind(), "estudiante_id": cert.StudentID, "estudiante": cert.Student, "carrera": cert.Career,
			"cursos": len(cert.Courses), "fecha": cert.At.Format(time.DateOnly), "codigo": cert.Code, "huella": cert.Fingerprint,
		},
		"archivos": files,
	})
	if err != nil {
		return harness.StepResult{}, fmt.Errorf("result: %w", err)
	}
	return res, nil
}

func fileOf(name, mediaType string, content []byte) anuencia.Artifact {
	return anuencia.Artifact{Filename: name, MediaType: mediaType, Content: content, SHA256: sha256.Sum256(content)}
}

// safeName keeps letters, digits and hyphens; the rest of an id could be a path.
func safeName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, id)
}

// errColumn says that the configured queries do not give what the template needs.
var errColumn = errors.New("a column of the template is missing")

func certificateOf(rows map[string][]map[string]any, grades bool) (certificate, error) {
	cert := certificate{Grades: grades}
	people := rows["estudiante"]
	if len(people) == 0 {
		return cert, anuencia.NotFound().WithCause(errors.New("no such student"))
	}
	for column, into := range map[string]*string{
		"estudiante_id": &cert.StudentID, "nombre": &cert.Student, "carrera": &cert.Career, "ingreso": &cert.Since,
	} {
		v, there := people[0][column]
		if !there {
			return cert, fmt.Errorf("estudiante.%s: %w", column, errColumn)
		}
		*into = plain(v)
	}
	for _, r := range rows["cursos"] {
		cert.Courses = append(cert.Courses, course{
			Period: plain(r["periodo"]), Code: plain(r["curso"]), Name: plain(r["curso_nombre"]),
			Credits: plain(r["creditos"]), Grade: plain(r["nota"]),
		})
	}
	return cert, nil
}

// plain writes a column's value on one line.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strings.Join(strings.Fields(v), " ")
	case float64:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
	default:
		return fmt.Sprint(v)
	}
}
