package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
)

//go:embed openapi.yaml
var openAPI []byte

//go:embed docs.html
var docsTemplate string

// docs are the API's description, as a file and as a page that needs nothing
// from anywhere else.
type docs struct {
	html []byte
	csp  string
}

func newDocs() (*docs, error) {
	page, err := describe(openAPI)
	if err != nil {
		return nil, err
	}
	t, err := template.New("docs").Parse(docsTemplate)
	if err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, page); err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	_, rest, _ := strings.Cut(out.String(), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	return &docs{
		html: out.Bytes(),
		csp: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	}, nil
}

func (d *docs) spec(c *httpkit.Call) error {
	return c.Bytes(http.StatusOK, "application/yaml; charset=utf-8", openAPI, nil)
}

func (d *docs) page(c *httpkit.Call) error {
	return c.Bytes(http.StatusOK, "text/html; charset=utf-8", d.html, map[string]string{
		"Content-Security-Policy": d.csp,
		"Referrer-Policy":         "no-referrer",
	})
}
