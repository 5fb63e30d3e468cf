package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Options choose what is loaded.
type Options struct {
	// Demo loads the folder demo instead of the root, and asks no register of
	// responsibility (governance section 10).
	Demo bool
	// Messages is where messages/ is read when the folder has none of its own;
	// nil: it must have it.
	Messages fs.FS
}

// Load reads the catalog folder. The error is ProblemsError when the content is
// wrong.
func Load(fsys fs.FS, o Options) (*Catalog, error) {
	l := loader{o: o, c: &Catalog{
		intents: map[string]anuencia.Intent{}, agents: map[string]anuencia.Agent{}, tools: map[string]anuencia.Tool{},
		inputs: map[string]*schema{}, args: map[string]*schema{}, words: map[string]words{},
	}}
	if err := l.messages(fsys); err != nil {
		return nil, err
	}
	root := fsys
	if o.Demo {
		sub, err := fs.Sub(fsys, "demo")
		if err != nil {
			return nil, fmt.Errorf("open demo catalog: %w", err)
		}
		root = sub
	}
	l.readTools(root)
	l.readAgents(root)
	l.readIntents(root)
	l.checkAll()
	if err := l.problems.err(); err != nil {
		return nil, err
	}
	l.c.names = sortedKeys(l.c.intents)
	l.c.revision = l.revision()
	return l.c, nil
}

type loader struct {
	o        Options
	c        *Catalog
	problems ProblemsError
	read     []string // "path sha256" of every file
}

// file reads one file and remembers its hash; false when it could not.
func (l *loader) file(fsys fs.FS, name string) ([]byte, bool) {
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			l.problem(name, "the file is missing")
		} else {
			l.problem(name, "cannot be read")
		}
		return nil, false
	}
	sum := sha256.Sum256(raw)
	l.read = append(l.read, name+" "+hex.EncodeToString(sum[:]))
	return raw, true
}

func (l *loader) revision() string {
	slices.Sort(l.read)
	sum := sha256.Sum256([]byte(strings.Join(l.read, "\n")))
	return hex.EncodeToString(sum[:])
}

func (l *loader) decode(fsys fs.FS, name string, into any) bool {
	raw, ok := l.file(fsys, name)
	if !ok {
		return false
	}
	if err := decodeStrict(raw, into); err != nil {
		l.problem(name, "%v", err)
		return false
	}
	return true
}

func (l *loader) readTools(fsys fs.FS) {
	var f toolsFile
	if !l.decode(fsys, "tools.yaml", &f) {
		return
	}
	for i, t := range f.Tools {
		where := "tools.yaml: " + nameOr(t.Name, i)
		if _, twice := l.c.tools[t.Name]; twice {
			l.problem(where, "declared twice")
			continue
		}
		l.addTool(where, t)
	}
}

func (l *loader) readAgents(fsys fs.FS) {
	var f agentsFile
	if !l.decode(fsys, "agents.yaml", &f) {
		return
	}
	for i, a := range f.Agents {
		where := "agents.yaml: " + nameOr(a.Name, i)
		if _, twice := l.c.agents[a.Name]; twice {
			l.problem(where, "declared twice")
			continue
		}
		if !validName(a.Name) {
			l.problem(where, "name must be lower-case words joined by dots")
		}
		l.c.agents[a.Name] = anuencia.Agent{Name: a.Name, Runner: a.Runner, Tools: a.Tools, Roles: a.Roles}
	}
}

func (l *loader) readIntents(fsys fs.FS) {
	entries, err := fs.ReadDir(fsys, "intents")
	if err != nil {
		l.problem("intents", "the folder is missing")
		return
	}
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".yaml" {
			continue
		}
		where := path.Join("intents", e.Name())
		var f intentFile
		if !l.decode(fsys, where, &f) {
			continue
		}
		if f.Name+".yaml" != e.Name() {
			l.problem(where, "the file of intent %q must be named %s.yaml", f.Name, f.Name)
			continue
		}
		l.addIntent(where, f)
	}
}

func nameOr(name string, i int) string {
	if name == "" {
		return fmt.Sprintf("entry %d", i+1)
	}
	return name
}
