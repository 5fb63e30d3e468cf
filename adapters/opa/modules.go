package opa

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

const decisionQuery = "data.anuencia.decision"

func decisionRef() ast.Ref {
	return ast.DefaultRootRef.Append(ast.StringTerm("anuencia")).Append(ast.StringTerm("decision"))
}

// modules are the parsed files of a folder.
type modules struct {
	hash  string // of the policies; tests do not change the revision
	rules map[string]*ast.Module
	tests map[string]*ast.Module
}

// capabilities are the built-ins that a policy may use: none that reaches the
// network or the process, and none whose answer depends on anything but its
// arguments. The time of a question is input.time.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.AllowNet = []string{}
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		switch b.Name {
		case "net.lookup_ip_addr", "opa.runtime", "time.now_ns", "uuid.rfc4122", "trace", "print",
			"io.jwt.decode_verify", "providers.aws.sign_req":
			return true
		}
		return b.Nondeterministic || strings.HasPrefix(b.Name, "http.") || strings.HasPrefix(b.Name, "rand.") ||
			strings.HasPrefix(b.Name, "crypto.x509.")
	})
	return c
}

// load parses every .rego file below fsys.
func load(fsys fs.FS) (*modules, error) {
	m := &modules{rules: map[string]*ast.Module{}, tests: map[string]*ast.Module{}}
	sum := sha256.New()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" {
			return err
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		mod, err := ast.ParseModuleWithOpts(name, string(raw), ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
		if err != nil {
			return fmt.Errorf("parse policy: %w", err)
		}
		if mod == nil {
			return fmt.Errorf("parse policy: %s is empty", name)
		}
		if strings.HasSuffix(name, "_test.rego") {
			m.tests[name] = mod
			return nil
		}
		m.rules[name] = mod
		file := sha256.Sum256(raw)
		_, err = fmt.Fprintf(sum, "%s %x\n", name, file) // WalkDir goes in lexical order
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load policies: %w", err)
	}
	if len(m.rules) == 0 {
		return nil, errors.New("load policies: no .rego file")
	}
	m.hash = hex.EncodeToString(sum.Sum(nil))
	return m, nil
}

// compile checks the rules strictly: unused variables, shadowed input and
// built-ins out of reach are refused.
func (m *modules) compile() (*ast.Compiler, error) {
	c := newCompiler()
	if c.Compile(m.rules); c.Failed() {
		return nil, fmt.Errorf("compile policies: %w", c.Errors)
	}
	return c, nil
}

func newCompiler() *ast.Compiler {
	return ast.NewCompiler().WithStrict(true).WithCapabilities(capabilities()).WithDefaultRegoVersion(ast.RegoV1)
}
