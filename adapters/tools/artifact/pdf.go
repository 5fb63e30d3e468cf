package artifact

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/go-pdf/fpdf"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// Measures in millimetres and points.
const (
	margin     = 20.0
	lineHeight = 6.5
	tableRow   = 7.0
	sizeTitle  = 16
	sizeText   = 11
	sizeSmall  = 8
)

// pdf gives the certificate on A4 pages. The bytes depend on the certificate
// alone.
func (c certificate) pdf() ([]byte, error) {
	p := fpdf.New("P", "mm", "A4", "")
	p.SetCatalogSort(true)
	p.SetCreationDate(c.day())
	p.SetModificationDate(c.day())
	p.SetProducer("Anuencia", true)
	p.SetTitle(c.title(), true)
	p.SetLang("es")
	p.SetMargins(margin, margin, margin)
	p.SetAutoPageBreak(true, margin+2*lineHeight)
	p.SetFooterFunc(func() {
		p.SetY(-margin)
		p.SetFont("Helvetica", "", sizeSmall)
		for _, line := range c.footer() {
			p.CellFormat(0, lineHeight*2/3, latin(line), "", 1, "L", false, 0, "")
		}
	})
	p.AddPage()
	p.SetFont("Helvetica", "B", sizeTitle)
	p.CellFormat(0, 2*lineHeight, latin(c.title()), "", 1, "C", false, 0, "")
	p.Ln(lineHeight)
	p.SetFont("Helvetica", "", sizeText)
	p.MultiCell(0, lineHeight, latin(c.statement()), "", "L", false)
	p.Ln(lineHeight)
	c.table(p)
	p.Ln(lineHeight)
	p.CellFormat(0, lineHeight, latin("Emitida el "+c.date()+"."), "", 1, "L", false, 0, "")
	var out bytes.Buffer
	if err := p.Output(&out); err != nil {
		return nil, fmt.Errorf("pdf: %w", err)
	}
	return out.Bytes(), nil
}

// day is the date alone: two runs of a day give the same bytes.
func (c certificate) day() time.Time {
	y, m, d := c.At.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func (c certificate) table(p *fpdf.Fpdf) {
	if len(c.Courses) == 0 {
		p.CellFormat(0, lineHeight, latin("No registra cursos."), "", 1, "L", false, 0, "")
		return
	}
	widths := []float64{22, 25, 83, 20, 20}
	p.SetFont("Helvetica", "B", sizeText-1)
	for i, name := range c.columns() {
		p.CellFormat(widths[i], tableRow, latin(name), "B", 0, "L", false, 0, "")
	}
	p.Ln(tableRow)
	p.SetFont("Helvetica", "", sizeText-1)
	for _, row := range c.rows() {
		for i, cell := range row {
			p.CellFormat(widths[i], tableRow, fit(p, latin(cell), widths[i]), "", 0, "L", false, 0, "")
		}
		p.Ln(tableRow)
	}
	p.SetFont("Helvetica", "", sizeText)
}

// fit cuts a text to the width of its cell. latin gives one byte a character,
// so any cut is a whole one.
func fit(p *fpdf.Fpdf, s string, width float64) string {
	const dots = "..."
	if p.GetStringWidth(s) <= width-2 {
		return s
	}
	for s != "" && p.GetStringWidth(s+dots) > width-2 {
		s = s[:len(s)-1]
	}
	return s + dots
}

// latin encodes text for the standard fonts (Windows-1252), which have every
// letter of Spanish. A letter they lack loses its mark, and what is no letter
// there becomes a question mark; the Markdown form keeps the exact text.
func latin(s string) string {
	var b strings.Builder
	for _, r := range norm.NFC.String(s) {
		if unicode.IsControl(r) {
			r = ' '
		}
		if c, ok := charmap.Windows1252.EncodeRune(r); ok {
			b.WriteByte(c)
			continue
		}
		base := []rune(norm.NFD.String(string(r)))[0]
		if c, ok := charmap.Windows1252.EncodeRune(base); ok {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('?')
	}
	return b.String()
}
