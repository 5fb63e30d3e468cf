package catalog

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Reloader holds the catalog in force. A new revision that does not load is
// refused and the last good one stays. Safe for concurrent use.
type Reloader struct {
	current atomic.Pointer[Catalog]
	mu      sync.Mutex // one load at a time, so that the newest one wins
	load    func() (*Catalog, error)
	report  func(*Catalog, error)
}

// NewReloader loads for the first time; an error means that there is nothing to
// start with. report hears of every later Reload: of a new revision with a nil
// error, or of a refused one with the catalog that stays; it may be nil.
func NewReloader(load func() (*Catalog, error), report func(*Catalog, error)) (*Reloader, error) {
	first, err := load()
	if err != nil {
		return nil, fmt.Errorf("load catalog: %w", err)
	}
	r := &Reloader{load: load, report: report}
	r.current.Store(first)
	return r, nil
}

// Current is the catalog in force.
func (r *Reloader) Current() *Catalog { return r.current.Load() }

// Reload loads again: on a signal, or when the folder changed. The same content
// changes nothing and is not reported.
func (r *Reloader) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.load()
	if err != nil {
		err = fmt.Errorf("reload catalog: %w", err)
		r.tell(r.Current(), err)
		return err
	}
	if next.Revision() == r.Current().Revision() {
		return nil
	}
	r.current.Store(next)
	r.tell(next, nil)
	return nil
}

func (r *Reloader) tell(c *Catalog, err error) {
	if r.report != nil {
		r.report(c, err)
	}
}
