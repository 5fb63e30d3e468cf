// Package identity is the directory of people as a file: who a handle of a
// channel is, and who holds a role (governance section 7).
package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Ensure gives the random UUID of this installation for an institution's id,
// made if it is new (contracts section 9). It is called once for each person of
// a revision, at load.
type Ensure func(ctx context.Context, institutionID string) (anuencia.PersonID, error)

// File implements harness.Directory over one YAML file. Everything is in
// memory, so Resolve and ResolveFresh give the same: there is no cache to pass
// by. Safe for concurrent use.
type File struct {
	path    string
	ensure  Ensure
	mu      sync.Mutex // one reload at a time
	current atomic.Pointer[roster]
}

var _ harness.Directory = (*File)(nil)

type roster struct {
	revision string
	handles  map[anuencia.Handle]*anuencia.Person
	holders  map[string][]anuencia.Person // active people, in the order of the file
}

// NewFile reads the file at path in fsys. Errors: ProblemsError for what is wrong in
// it; else what reading or ensure gave.
func NewFile(ctx context.Context, fsys fs.FS, path string, ensure Ensure) (*File, error) {
	if ensure == nil {
		return nil, errors.New("identity: ensure is missing")
	}
	f := &File{path: path, ensure: ensure}
	r, err := f.read(ctx, fsys)
	if err != nil {
		return nil, err
	}
	f.current.Store(r)
	return f, nil
}

// Reload reads the file again and says whether it differs. A bad one is refused
// and the last good one stays.
func (f *File) Reload(ctx context.Context, fsys fs.FS) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.read(ctx, fsys)
	if err != nil {
		return false, fmt.Errorf("reload directory: %w", err)
	}
	changed = r.revision != f.Revision()
	f.current.Store(r)
	return changed, nil
}

// Revision is the hex SHA-256 of the file in force.
func (f *File) Revision() string { return f.current.Load().revision }

// Resolve gives the person behind a handle. IDENTITY_NOT_FOUND/actor for an
// unknown handle and for a suspended person, alike.
func (f *File) Resolve(_ context.Context, h anuencia.Handle) (anuencia.Actor, error) {
	p, known := f.current.Load().handles[h]
	if !known || p.Suspended {
		return anuencia.Actor{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor)
	}
	return anuencia.Actor{Person: clone(*p), Handle: h}, nil
}

// ResolveFresh is Resolve: the file in force is the newest there is.
func (f *File) ResolveFresh(ctx context.Context, h anuencia.Handle) (anuencia.Actor, error) {
	return f.Resolve(ctx, h)
}

// Holders lists the active people who hold the role, in the order of the file.
// Nobody is no error.
func (f *File) Holders(_ context.Context, role string) ([]anuencia.Person, error) {
	held := f.current.Load().holders[role]
	out := make([]anuencia.Person, 0, len(held))
	for _, p := range held {
		out = append(out, clone(p))
	}
	return out, nil
}

// clone keeps a caller from changing the roster through a shared slice or map.
func clone(p anuencia.Person) anuencia.Person {
	p.Roles, p.Units = slices.Clone(p.Roles), slices.Clone(p.Units)
	attributes := make(map[string]string, len(p.Attributes))
	for k, v := range p.Attributes {
		attributes[k] = v
	}
	p.Attributes = attributes
	return p
}
