package harness

import (
	"context"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// pollEvery is how often a waiter reads again without being woken.
const pollEvery = 500 * time.Millisecond

// settled reads an execution and waits, d at most, until it neither runs nor is
// about to. What it gives may still run: the time was up.
func (s *Service) settled(ctx context.Context, id anuencia.ExecutionID, d time.Duration) (anuencia.Execution, error) {
	wake, stop := s.o.Watcher.Watch(id)
	defer stop()
	limit, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for {
		e, err := s.o.Store.Execution(ctx, id)
		if err != nil || e.State.Terminal() || e.State == anuencia.StateWaiting || limit.Err() != nil {
			return e, err
		}
		poll, done := context.WithTimeout(limit, pollEvery)
		select {
		case <-wake:
		case <-poll.Done():
		}
		done()
		if ctx.Err() != nil {
			return e, nil
		}
	}
}
