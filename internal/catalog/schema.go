package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// schemaURL names the one resource of each compiler; nothing is fetched.
const schemaURL = "anuencia:input"

// schema is a compiled JSON Schema (draft 2020-12) of a closed object.
type schema struct {
	text     string // canonical JSON
	doc      map[string]any
	compiled *jsonschema.Schema
	defaults bool // whether any property has one
}

// noLoader refuses to fetch: a schema stands on its own.
type noLoader struct{}

// Load always refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %q", url)
}

func compile(m map[string]any) (*schema, error) {
	if len(m) == 0 {
		return nil, errors.New("a schema is needed")
	}
	text, err := audit.CanonicalOf(m)
	if err != nil {
		return nil, errors.New("the schema has no exact JSON form")
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	object, ok := doc.(map[string]any)
	if !ok || object["type"] != "object" || object["additionalProperties"] != false {
		return nil, errors.New("the schema must be of type object with additionalProperties false")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	s := &schema{text: text, doc: object, compiled: compiled}
	s.defaults, err = checkDefaults(c, object, "#")
	if err != nil {
		return nil, err
	}
	return s, nil
}

// checkDefaults says whether a default stands anywhere below doc, and refuses
// one that its own schema would refuse.
func checkDefaults(c *jsonschema.Compiler, doc map[string]any, at string) (bool, error) {
	found := false
	for name, sub := range propertiesOf(doc) {
		here := at + "/properties/" + escape(name)
		if def, has := sub["default"]; has {
			found = true
			one, err := c.Compile(schemaURL + here)
			if err != nil {
				return false, fmt.Errorf("compile property %s: %w", name, err)
			}
			if err := one.Validate(def); err != nil {
				return false, fmt.Errorf("the default of %s is refused by its own schema", name)
			}
		}
		below, err := checkDefaults(c, sub, here)
		if err != nil {
			return false, err
		}
		found = found || below
	}
	return found, nil
}

// apply brings input to its canonical form with defaults and validates it.
func (s *schema) apply(input []byte, prefix string) (string, any, error) {
	canonical, err := audit.Canonical(input)
	if err != nil {
		return "", nil, err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(canonical))
	if err != nil {
		return "", nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMalformed).WithCause(err)
	}
	if object, ok := value.(map[string]any); ok && s.defaults && fill(object, s.doc) {
		if canonical, err = audit.CanonicalOf(object); err != nil {
			return "", nil, err
		}
	}
	if err := s.compiled.Validate(value); err != nil {
		return "", nil, fieldFault(err, prefix)
	}
	return canonical, value, nil
}

// fill sets the defaults of missing properties and says whether it set any.
func fill(object, doc map[string]any) bool {
	set := false
	for name, sub := range propertiesOf(doc) {
		current, has := object[name]
		def, hasDefault := sub["default"]
		if !has && hasDefault {
			object[name], set = copyOf(def), true
			continue
		}
		if inner, ok := current.(map[string]any); ok && fill(inner, sub) {
			set = true
		}
	}
	return set
}

// copyOf keeps a request from changing the schema's own value.
func copyOf(v any) any {
	switch t := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			out[k] = copyOf(e)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			out[i] = copyOf(e)
		}
		return out
	}
	return v
}

func propertiesOf(doc map[string]any) map[string]map[string]any {
	all, ok := doc["properties"].(map[string]any)
	if !ok {
		return nil
	}
	out := make(map[string]map[string]any, len(all))
	for name, p := range all {
		if sub, ok := p.(map[string]any); ok {
			out[name] = sub
		}
	}
	return out
}

func (s *schema) requires(name string) bool { return requiredIn(s.doc, name) }

func requiredIn(doc map[string]any, name string) bool {
	_, declared := propertiesOf(doc)[name]
	list, ok := doc["required"].([]any)
	return declared && ok && slices.Contains(list, any(name))
}

func (s *schema) requiresString(pointer string) bool {
	doc := s.doc
	parts, ok := split(pointer)
	if !ok {
		return false
	}
	for _, part := range parts {
		if !requiredIn(doc, part) {
			return false
		}
		doc = propertiesOf(doc)[part]
	}
	return doc["type"] == "string"
}

// lookup follows a JSON pointer (RFC 6901) through objects; nil when it leads
// nowhere.
func lookup(value any, pointer string) any {
	parts, ok := split(pointer)
	if !ok {
		return nil
	}
	for _, part := range parts {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[part]
	}
	return value
}

func split(pointer string) ([]string, bool) {
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	parts := strings.Split(pointer[1:], "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, true
}

func escape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
}

const (
	maxFields  = 20 // of one refusal
	maxKeyEcho = 64 // bytes of a key that the caller invented
)

func fieldFault(err error, prefix string) error {
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonSchema).WithCause(err)
	}
	var fields []anuencia.FieldError
	collect(ve, prefix, &fields)
	slices.SortFunc(fields, func(a, b anuencia.FieldError) int {
		return strings.Compare(a.Path+"\x00"+a.Rule, b.Path+"\x00"+b.Rule)
	})
	fields = slices.Compact(fields)
	return anuencia.Invalid(anuencia.ReasonSchema, fields[:min(len(fields), maxFields)]...)
}

// collect gives one field for each failing keyword: where and which, never the
// value. Of a choice (anyOf, oneOf, not) the choice itself is named, for its
// branches contradict each other.
func collect(e *jsonschema.ValidationError, prefix string, out *[]anuencia.FieldError) {
	at := prefix + pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*out = append(*out, anuencia.FieldError{Path: at + "/" + escape(name), Rule: "required"})
		}
		return
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*out = append(*out, anuencia.FieldError{Path: at + echo(name), Rule: "additionalProperties"})
		}
		return
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
	default:
		if len(e.Causes) > 0 {
			for _, c := range e.Causes {
				collect(c, prefix, out)
			}
			return
		}
	}
	*out = append(*out, anuencia.FieldError{Path: at, Rule: keyword(e)})
}

func keyword(e *jsonschema.ValidationError) string {
	path := e.ErrorKind.KeywordPath()
	if len(path) == 0 {
		return "schema"
	}
	return path[0]
}

func pointer(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(echo(p))
	}
	return b.String()
}

// echo names a key of the input in a path, unless it is so long or so strange
// that naming it would hand a value back.
func echo(key string) string {
	strange := strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
	if strange || len(key) > maxKeyEcho {
		return ""
	}
	return "/" + key
}
