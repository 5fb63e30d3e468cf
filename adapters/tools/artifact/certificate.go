package artifact

import (
	"fmt"
	"strings"
	"time"
)

// certificate is what both forms say.
type certificate struct {
	Grades                            bool
	StudentID, Student, Career, Since string
	Courses                           []course
	Code                              string // the execution's id
	Fingerprint                       string // hex SHA-256 of the data
	At                                time.Time
}

type course struct{ Period, Code, Name, Credits, Grade string }

func (c certificate) kind() string {
	if c.Grades {
		return "notas"
	}
	return "regular"
}

func (c certificate) title() string {
	if c.Grades {
		return "Constancia de notas"
	}
	return "Constancia de matrícula regular"
}

func (c certificate) statement() string {
	what := "está matriculado o matriculada en los cursos que se detallan"
	if c.Grades {
		what = "obtuvo las notas que se detallan"
	}
	return fmt.Sprintf("Se deja constancia de que %s, con código %s, estudiante de %s desde el año %s, %s.",
		c.Student, c.StudentID, c.Career, c.Since, what)
}

func (c certificate) columns() []string {
	if c.Grades {
		return []string{"Periodo", "Curso", "Nombre", "Créditos", "Nota"}
	}
	return []string{"Periodo", "Curso", "Nombre", "Créditos"}
}

func (c certificate) rows() [][]string {
	out := make([][]string, 0, len(c.Courses))
	for _, k := range c.Courses {
		row := []string{k.Period, k.Code, k.Name, k.Credits}
		if c.Grades {
			grade := k.Grade
			if grade == "" {
				grade = "en curso"
			}
			row = append(row, grade)
		}
		out = append(out, row)
	}
	return out
}

func (c certificate) date() string {
	months := [...]string{
		"enero", "febrero", "marzo", "abril", "mayo", "junio",
		"julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
	}
	return fmt.Sprintf("%d de %s de %d", c.At.Day(), months[c.At.Month()-1], c.At.Year())
}

func (c certificate) footer() []string {
	return []string{
		"Código de verificación: " + c.Code,
		"Huella SHA-256 de los datos: " + c.Fingerprint,
	}
}

func (c certificate) markdown() string {
	var b strings.Builder
	b.WriteString("# " + c.title() + "\n\n" + escape(c.statement()) + "\n\n")
	if len(c.Courses) == 0 {
		b.WriteString("No registra cursos.\n")
	} else {
		writeRow(&b, c.columns())
		rule := make([]string, len(c.columns()))
		for i := range rule {
			rule[i] = "---"
		}
		b.WriteString("| " + strings.Join(rule, " | ") + " |\n")
		for _, r := range c.rows() {
			writeRow(&b, r)
		}
	}
	b.WriteString("\nEmitida el " + c.date() + ".\n\n---\n\n")
	for _, line := range c.footer() {
		b.WriteString("- " + line + "\n")
	}
	return b.String()
}

func writeRow(b *strings.Builder, cells []string) {
	for _, cell := range cells {
		b.WriteString("| " + escape(cell) + " ")
	}
	b.WriteString("|\n")
}

// escape keeps data from becoming markup: a name that looks like a link, a tag
// or another column stays a name.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\\`*_[]<>|#!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
