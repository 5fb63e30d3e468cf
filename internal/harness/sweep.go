package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

const (
	sweepBatch   = 1000
	keptKeysFor  = 48 * time.Hour // contracts section 1 asks for 24 h at least
	orphanMargin = 24 * time.Hour
)

// Work does one durable job. An error means that it is to be tried again.
func (s *Service) Work(ctx context.Context, job Job) error {
	switch job.Kind {
	case JobResume:
		text, _, _ := strings.Cut(job.ID, "/")
		id, err := anuencia.ParseID[anuencia.ExecutionID](text)
		if err != nil {
			return fmt.Errorf("job %s: %w", job.Kind, err)
		}
		return s.Resume(ctx, id)
	case JobExpire:
		id, err := anuencia.ParseID[anuencia.ApprovalID](job.ID)
		if err != nil {
			return fmt.Errorf("job %s: %w", job.Kind, err)
		}
		return s.Expire(ctx, id)
	case JobSweep:
		return s.Sweep(ctx)
	case JobCleanup:
		_, err := s.o.Store.DropKeys(ctx, s.now().Add(-keptKeysFor))
		return err
	}
	return fmt.Errorf("unknown job kind %q", job.Kind)
}

// Sweep finds what a crash or a lost job left: late approvals, approved
// executions that nobody resumed, and runs whose lease is over. One that cannot
// be settled now does not keep the others waiting.
func (s *Service) Sweep(ctx context.Context) error { return s.sweep(ctx, s.now(), false) }

// SweepOrphans is Sweep for the only process of an installation, at its start:
// every run on record is known to be dead, whatever its lease says.
func (s *Service) SweepOrphans(ctx context.Context) error {
	return s.sweep(ctx, s.now().Add(orphanMargin), true)
}

func (s *Service) sweep(ctx context.Context, leasesUntil time.Time, alone bool) error {
	var failures []error
	late, err := s.o.Store.LateApprovals(ctx, s.now(), sweepBatch)
	if err != nil {
		return err
	}
	for _, id := range late {
		failures = append(failures, s.Expire(ctx, id))
	}
	open, err := s.o.Store.Unsettled(ctx, leasesUntil, sweepBatch)
	if err != nil {
		return err
	}
	for _, e := range open {
		if alone {
			e.LeaseUntil = s.now()
		}
		failures = append(failures, s.settle(ctx, e))
	}
	return errors.Join(failures...)
}

func (s *Service) settle(ctx context.Context, e anuencia.Execution) error {
	switch e.State {
	case anuencia.StateApproved:
		return s.restart(ctx, e)
	case anuencia.StateRunning:
		if s.runsHere(e.ID) {
			return nil
		}
		return s.recover(ctx, e)
	case anuencia.StateWaiting, anuencia.StateCompleted, anuencia.StateFailed, anuencia.StateIncomplete, anuencia.StateCancelled:
	}
	return nil
}

func (s *Service) runsHere(id anuencia.ExecutionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, here := s.cancels[id]
	return here
}

// recover takes up a run that died: look for its effect, and only when it
// certainly did not happen, or does no harm twice, start again (governance
// section 9).
func (s *Service) recover(ctx context.Context, e anuencia.Execution) error {
	look, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	res, happened, err := s.o.Runner.Look(look, s.o.Catalog(), e)
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		_, err = s.unknown(ctx, e, anuencia.Internal("recover", err))
		return err
	case err != nil:
		return err
	case happened:
		mask, err := s.maskOf(ctx, e)
		if err != nil {
			return err // unmasked nothing leaves: the next sweep asks again
		}
		_, err = s.complete(ctx, e, res, mask)
		return err
	case e.Attempt >= s.o.MaxAttempts:
		return s.failOpen(ctx, e, anuencia.Internal("recover", errors.New("the run died at every attempt")), nil)
	}
	return s.restart(ctx, e)
}

// maskOf asks policy again what may be seen of a result whose run died. A
// result that policy would not allow now is hidden whole.
func (s *Service) maskOf(ctx context.Context, e anuencia.Execution) ([]string, error) {
	c := s.o.Catalog()
	def, known := c.Intent(e.Intent)
	if !known {
		return []string{""}, nil
	}
	d, err := s.ask(ctx, c, e, def, e.Principal)
	if err != nil {
		return nil, err
	}
	if !d.Allow {
		return []string{""}, nil
	}
	return d.Mask, nil
}
