package harness

import (
	"context"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Follow gives the events of an execution after seq, to its actor and to
// auditors, and goes on as new ones are committed, by whatever process, until
// the execution has ended, ctx ends or the server stops. emit is called from
// one goroutine, with no events at least every quiet so that a connection can
// be kept alive; its error ends the following.
func (s *Service) Follow(ctx context.Context, r Request, id anuencia.ExecutionID, after int64, quiet time.Duration,
	emit func([]anuencia.SealedEvent) error,
) error {
	if err := s.ownOrAudit(ctx, r, id); err != nil {
		return err
	}
	wake, stop := s.o.Watcher.Watch(id)
	defer stop()
	idle := s.now()
	for {
		// The state is read before the chain: what ended it is then in the chain.
		e, err := s.o.Store.Execution(ctx, id)
		if err != nil {
			return err
		}
		events, err := s.o.Store.Stream(ctx, anuencia.StreamOf(id))
		if err != nil {
			return err
		}
		fresh := events[min(int(max(after, 0)), len(events)):] // seq runs from 1 without a gap
		if len(fresh) > 0 || s.now().Sub(idle) >= quiet {
			if err := emit(fresh); err != nil {
				return err
			}
			after += int64(len(fresh))
			idle = s.now()
		}
		if e.State.Terminal() || s.isStopping() {
			return nil
		}
		poll, done := context.WithTimeout(ctx, pollEvery)
		select {
		case <-wake:
		case <-poll.Done():
		}
		done()
		if ctx.Err() != nil {
			return nil
		}
	}
}
