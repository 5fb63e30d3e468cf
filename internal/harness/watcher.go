package harness

import (
	"sync"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// LocalWatcher wakes the waiters of this process. Safe for concurrent use.
type LocalWatcher struct {
	mu    sync.Mutex
	waits map[anuencia.ExecutionID]map[chan struct{}]struct{}
}

// NewLocalWatcher makes one with nobody waiting.
func NewLocalWatcher() *LocalWatcher {
	return &LocalWatcher{waits: map[anuencia.ExecutionID]map[chan struct{}]struct{}{}}
}

// Notify wakes everyone who watches id; it never blocks. There are no others to
// tell.
func (w *LocalWatcher) Notify(id anuencia.ExecutionID, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.waits[id] {
		select {
		case c <- struct{}{}:
		default: // already told, and not yet looked
		}
	}
}

// Watch gives a channel that receives after each Notify of id, until stop.
func (w *LocalWatcher) Watch(id anuencia.ExecutionID) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits[id] == nil {
		w.waits[id] = map[chan struct{}]struct{}{}
	}
	w.waits[id][c] = struct{}{}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waits[id], c)
		if len(w.waits[id]) == 0 {
			delete(w.waits, id)
		}
	}
}
