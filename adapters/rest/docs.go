package rest

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
)

//go:embed openapi.yaml
var openAPI []byte //nolint:gochecknoglobals // an embedded file can only be a package variable

//go:embed docs.html
var docsTemplate string //nolint:gochecknoglobals // an embedded file can only be a package variable

// docs are the API's description, as a file and as a page that needs nothing
// from anywhere else.
type docs struct {
	html []byte
	csp  string
}

type docOperation struct {
	Method, Path, Summary, Description, Scope string
	Responses                                 []docResponse
}

type docResponse struct{ Status, Text string }

type docGroup struct {
	Name       string
	Operations []docOperation
}

type docPage struct {
	Title, Version, Description string
	Groups                      []docGroup
}

// openAPIFile is what the page shows of the file.
type openAPIFile struct {
	Info struct {
		Title       string `yaml:"title"`
		Version     string `yaml:"version"`
		Description string `yaml:"description"`
	} `yaml:"info"`
	Paths map[string]map[string]struct {
		Summary     string   `yaml:"summary"`
		Description string   `yaml:"description"`
		Tags        []string `yaml:"tags"`
		Scope       string   `yaml:"x-scope"`
		Responses   map[string]struct {
			Description string `yaml:"description"`
			Ref         string `yaml:"$ref"`
		} `yaml:"responses"`
	} `yaml:"paths"`
	Components struct {
		Responses map[string]struct {
			Description string `yaml:"description"`
		} `yaml:"responses"`
	} `yaml:"components"`
}

func newDocs() (*docs, error) {
	var f openAPIFile
	if err := yaml.Unmarshal(openAPI, &f); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	page := docPage{Title: f.Info.Title, Version: f.Info.Version, Description: f.Info.Description}
	byTag := map[string][]docOperation{}
	for path, ops := range f.Paths {
		for method, op := range ops {
			d := docOperation{Method: strings.ToUpper(method), Path: path, Summary: op.Summary, Description: op.Description, Scope: op.Scope}
			for status, r := range op.Responses {
				text := r.Description
				if text == "" {
					text = f.Components.Responses[r.Ref[strings.LastIndex(r.Ref, "/")+1:]].Description
				}
				d.Responses = append(d.Responses, docResponse{Status: status, Text: text})
			}
			slices.SortFunc(d.Responses, func(a, b docResponse) int { return strings.Compare(a.Status, b.Status) })
			tag := "other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], d)
		}
	}
	for tag, ops := range byTag {
		slices.SortFunc(ops, func(a, b docOperation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
		page.Groups = append(page.Groups, docGroup{Name: tag, Operations: ops})
	}
	slices.SortFunc(page.Groups, func(a, b docGroup) int { return strings.Compare(a.Name, b.Name) })
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
