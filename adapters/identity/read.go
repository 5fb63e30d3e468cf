package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// ProblemsError is everything that is wrong with a directory file, named at once.
type ProblemsError []string

// Error lists the problems, one a line.
func (p ProblemsError) Error() string {
	return fmt.Sprintf("directory has %d problem(s):\n  %s", len(p), strings.Join(p, "\n  "))
}

type (
	peopleFile struct {
		People []personFile `yaml:"people"`
	}
	personFile struct {
		InstitutionID string            `yaml:"institution_id"`
		DisplayName   string            `yaml:"display_name"`
		Roles         []string          `yaml:"roles"`
		Units         []string          `yaml:"units"`
		Institutional bool              `yaml:"institutional"`
		Status        string            `yaml:"status"`
		Language      string            `yaml:"language"`
		Attributes    map[string]string `yaml:"attributes"`
		Handles       map[string]string `yaml:"handles"` // external id by channel
	}
)

const maxText = 200 // bytes of an id or a name

var rolePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func (f *File) read(ctx context.Context, fsys fs.FS) (*roster, error) {
	raw, err := fs.ReadFile(fsys, f.path)
	if err != nil {
		return nil, fmt.Errorf("read directory: %w", err)
	}
	var file peopleFile
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, ProblemsError{err.Error()}
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, ProblemsError{"more than one document in the file"}
	}
	if len(file.People) == 0 {
		return nil, ProblemsError{"nobody is in the file"} // an empty file is a write that was cut short, not an institution
	}
	if p := check(file.People); len(p) > 0 {
		return nil, p
	}
	sum := sha256.Sum256(raw)
	r := &roster{
		revision: hex.EncodeToString(sum[:]),
		handles:  map[anuencia.Handle]*anuencia.Person{}, holders: map[string][]anuencia.Person{},
	}
	for _, p := range file.People {
		id, err := f.ensure(ctx, p.InstitutionID)
		if err != nil {
			return nil, fmt.Errorf("ensure person: %w", err)
		}
		r.add(p, id)
	}
	return r, nil
}

func (r *roster) add(f personFile, id anuencia.PersonID) {
	p := &anuencia.Person{
		ID: id, InstitutionID: f.InstitutionID, DisplayName: f.DisplayName, Roles: f.Roles, Units: f.Units,
		Institutional: f.Institutional, Suspended: f.Status == "suspended", Language: f.Language, Attributes: f.Attributes,
	}
	for channel, external := range f.Handles {
		r.handles[anuencia.Handle{Channel: anuencia.Channel(channel), ExternalID: external}] = p
	}
	if p.Suspended {
		return
	}
	for _, role := range p.Roles {
		r.holders[role] = append(r.holders[role], *p)
	}
}

// check refuses what would make a person ambiguous: two entries of one
// institution's id, or one handle of two people. Which of them is meant could
// only be guessed.
func check(people []personFile) ProblemsError {
	var problems ProblemsError
	add := func(who, format string, args ...any) {
		problems = append(problems, who+": "+fmt.Sprintf(format, args...))
	}
	ids := map[string]bool{}
	handles := map[string]string{}
	for i, p := range people {
		who := p.InstitutionID
		if who == "" {
			who = fmt.Sprintf("entry %d", i+1)
		}
		if !plain(p.InstitutionID) {
			add(who, "institution_id is missing or not plain text")
		}
		if ids[p.InstitutionID] {
			add(who, "institution_id stands twice")
		}
		ids[p.InstitutionID] = true
		if !plain(p.DisplayName) {
			add(who, "display_name is missing or not plain text")
		}
		if p.Status != "active" && p.Status != "suspended" {
			add(who, "status must be active or suspended")
		}
		if p.Language != "" && p.Language != "es" && p.Language != "en" {
			add(who, "language must be es or en")
		}
		checkRoles(who, p.Roles, add)
		if len(p.Handles) == 0 {
			add(who, "has no handles")
		}
		for _, channel := range channels(p.Handles) {
			external := p.Handles[channel]
			if !anuencia.Channel(channel).Valid() {
				add(who, "unknown channel %q", channel)
			}
			if !plain(external) {
				add(who, "the handle on %s is missing or not plain text", channel)
			}
			key := channel + "\x00" + external
			if other, twice := handles[key]; twice {
				add(who, "the handle %q on %s is also that of %s", external, channel, other)
			}
			handles[key] = who
		}
	}
	return problems
}

func checkRoles(who string, roles []string, add func(who, format string, args ...any)) {
	seen := map[string]bool{}
	for _, r := range roles {
		if !rolePattern.MatchString(r) {
			add(who, "%q is not the name of a role", r)
		}
		if seen[r] {
			add(who, "role %q stands twice", r)
		}
		seen[r] = true
	}
}

func channels(handles map[string]string) []string {
	out := make([]string, 0, len(handles))
	for c := range handles {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

// plain: there is a text, of bounded length, without control characters, and
// without blanks around it that nobody would see.
func plain(s string) bool {
	hidden := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
	return s != "" && len(s) <= maxText && strings.TrimSpace(s) == s && !hidden
}
