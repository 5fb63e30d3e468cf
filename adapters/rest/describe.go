package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The page as its template sees it.
type (
	docPage struct {
		Title, Version string
		Description    []string
		Groups         []docGroup
		Shapes         []docShape
	}
	docGroup struct {
		Name, Description string
		Operations        []docOperation
	}
	docOperation struct {
		Method, Path, Summary, Description, Scope string
		Parameters                                []docField
		Body                                      string
		Responses                                 []docField
	}
	docShape struct {
		Name, Description, Type string
		Fields                  []docField
	}
	// docField is one line of a table. Type names a shape when Link is set.
	docField struct {
		Name, Type, Note string
		Required, Link   bool
	}
)

// The file, as much of it as the page shows.
type (
	specFile struct {
		Info struct {
			Title       string `yaml:"title"`
			Version     string `yaml:"version"`
			Description string `yaml:"description"`
		} `yaml:"info"`
		Tags []struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
		} `yaml:"tags"`
		Paths      map[string]map[string]specOperation `yaml:"paths"`
		Components struct {
			Parameters map[string]specParameter `yaml:"parameters"`
			Responses  map[string]specResponse  `yaml:"responses"`
			Schemas    map[string]specSchema    `yaml:"schemas"`
		} `yaml:"components"`
	}
	specOperation struct {
		Summary     string          `yaml:"summary"`
		Description string          `yaml:"description"`
		Tags        []string        `yaml:"tags"`
		Scope       string          `yaml:"x-scope"`
		Parameters  []specReference `yaml:"parameters"`
		Body        struct {
			Content specContent `yaml:"content"`
		} `yaml:"requestBody"`
		Responses map[string]specResponse `yaml:"responses"`
	}
	specReference struct {
		Ref string `yaml:"$ref"`
	}
	specParameter struct {
		Name        string     `yaml:"name"`
		In          string     `yaml:"in"`
		Required    bool       `yaml:"required"`
		Description string     `yaml:"description"`
		Schema      specSchema `yaml:"schema"`
	}
	specResponse struct {
		Ref         string      `yaml:"$ref"`
		Description string      `yaml:"description"`
		Content     specContent `yaml:"content"`
	}
	specContent map[string]struct {
		Schema specSchema `yaml:"schema"`
	}
	// specSchema may also be a bare true or false, which says nothing here.
	specSchema struct {
		Ref         string       `yaml:"$ref"`
		Type        any          `yaml:"type"`
		Description string       `yaml:"description"`
		Enum        []string     `yaml:"enum"`
		Required    []string     `yaml:"required"`
		Items       *specSchema  `yaml:"items"`
		OneOf       []specSchema `yaml:"oneOf"`
		Properties  specMembers  `yaml:"properties"`
	}
	specMembers []specMember
	specMember  struct {
		Name   string
		Schema specSchema
	}
)

// UnmarshalYAML keeps the order of members.
func (m *specMembers) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		member := specMember{Name: n.Content[i].Value}
		if value := n.Content[i+1]; value.Kind == yaml.MappingNode {
			if err := value.Decode(&member.Schema); err != nil {
				return fmt.Errorf("member %s: %w", member.Name, err)
			}
		}
		*m = append(*m, member)
	}
	return nil
}

// describe makes the page of an OpenAPI file.
func describe(file []byte) (docPage, error) {
	var f specFile
	if err := yaml.Unmarshal(file, &f); err != nil {
		return docPage{}, fmt.Errorf("openapi.yaml: %w", err)
	}
	page := docPage{Title: f.Info.Title, Version: f.Info.Version, Description: strings.Split(f.Info.Description, "\n\n")}
	for _, tag := range f.Tags {
		g := docGroup{Name: tag.Name, Description: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(f.Paths)) {
			for _, method := range slices.Sorted(maps.Keys(f.Paths[path])) {
				if op := f.Paths[path][method]; slices.Contains(op.Tags, tag.Name) {
					g.Operations = append(g.Operations, f.operation(method, path, op))
				}
			}
		}
		page.Groups = append(page.Groups, g)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Components.Schemas)) {
		page.Shapes = append(page.Shapes, f.shape(name))
	}
	return page, nil
}

func (f *specFile) operation(method, path string, op specOperation) docOperation {
	d := docOperation{Method: strings.ToUpper(method), Path: path, Summary: op.Summary, Description: op.Description, Scope: op.Scope}
	for _, r := range op.Parameters {
		p := f.Components.Parameters[last(r.Ref)]
		field := p.Schema.field(p.Name, p.Required)
		field.Note = strings.TrimSpace(p.In + ". " + p.Description)
		d.Parameters = append(d.Parameters, field)
	}
	d.Body = last(op.Body.Content["application/json"].Schema.Ref)
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		r := op.Responses[status]
		if r.Ref != "" {
			r = f.Components.Responses[last(r.Ref)]
		}
		field := r.Content["application/json"].Schema.field(status, false)
		field.Note = r.Description
		d.Responses = append(d.Responses, field)
	}
	return d
}

func (f *specFile) shape(name string) docShape {
	s := f.Components.Schemas[name]
	own := s.field(name, false)
	d := docShape{Name: name, Description: s.Description, Type: own.Type}
	if s.Ref != "" { // keywords beside a reference add to it
		d.Fields = f.shape(last(s.Ref)).Fields
		d.Type = "object"
	}
	for _, m := range s.Properties {
		d.Fields = append(d.Fields, m.Schema.field(m.Name, slices.Contains(s.Required, m.Name)))
	}
	return d
}

func (s specSchema) field(name string, required bool) docField {
	d := docField{Name: name, Note: s.Description, Required: required}
	d.Type, d.Link = s.kind()
	return d
}

// kind says in a word or two what a value is, and whether the words are the name
// of a shape.
func (s specSchema) kind() (string, bool) {
	switch {
	case s.Ref != "":
		return last(s.Ref), true
	case len(s.Enum) > 0:
		return strings.Join(s.Enum, " | "), false
	case len(s.OneOf) > 0:
		words := make([]string, len(s.OneOf))
		for i, o := range s.OneOf {
			words[i], _ = o.kind()
		}
		return strings.Join(words, " | "), false
	case s.Items != nil:
		word, _ := s.Items.kind()
		return word + "[]", false
	}
	switch t := s.Type.(type) {
	case string:
		return t, false
	case []any:
		words := make([]string, len(t))
		for i, w := range t {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, " | "), false
	}
	return "", false
}

func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }
