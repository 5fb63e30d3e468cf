package harness

import (
	"context"
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// errCancelled is the cause of a run that its actor stopped.
var errCancelled = errors.New("cancelled by its actor")

// runAndWait runs an execution that is committed as running and waits for its
// end, d at most. The run goes on when the caller leaves.
func (s *Service) runAndWait(ctx context.Context, e anuencia.Execution, mask []string, d time.Duration, isBrief bool) (Answer, error) {
	type end struct {
		e   anuencia.Execution
		err error
	}
	done := make(chan end, 1)
	a := Answer{Execution: e, Submitted: true, Ran: true, Brief: isBrief}
	if !s.begin() {
		a.Unfinished = true // committed, not started: found at the next start
		return a, nil
	}
	go func() {
		defer s.running.Done()
		last, err := s.execute(context.WithoutCancel(ctx), e, mask)
		done <- end{last, err}
	}()
	limit, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case r := <-done:
		if r.err != nil {
			// It is on record as running, and how it ended is not known here: no other
			// status may be told. The sweep settles it.
			a.Unfinished = true
			return a, nil
		}
		a = answer(r.e, isBrief)
		a.Submitted, a.Ran = true, true
	case <-limit.Done():
		a.Unfinished = true
	}
	return a, nil
}

// execute runs the committed step of e, takes its output through the guard and
// commits the outcome. No transaction is open while the tool works.
func (s *Service) execute(ctx context.Context, e anuencia.Execution, mask []string) (anuencia.Execution, error) {
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limited, cancel := context.WithTimeout(runCtx, e.Timeout)
	defer cancel()
	s.track(e.ID, stop)
	defer s.untrack(e.ID)

	res, err := s.o.Runner.Run(limited, s.o.Catalog(), e)
	if err == nil {
		return s.complete(ctx, e, res, mask)
	}
	if errors.Is(err, ErrSuperseded) {
		return s.supersedeRunning(ctx, e)
	}
	return s.ended(ctx, e, runFault(limited, runCtx, err), mask)
}

// runFault names why a run gave no result: its own fault, the actor's wish, the
// execution's time, or INTERNAL_ERROR.
func runFault(limited, run context.Context, err error) *anuencia.Fault {
	switch {
	case errors.Is(context.Cause(run), errCancelled):
		return anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonCancelled).WithCause(err)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonExecution).WithCause(err)
	}
	return anuencia.AsFault(err)
}

// ended handles a run without a result. Where the step has an effect, the
// ledger is asked first: a lost connection says nothing of what happened.
func (s *Service) ended(ctx context.Context, e anuencia.Execution, f *anuencia.Fault, mask []string) (anuencia.Execution, error) {
	if e.Step.Effect {
		look, cancel := context.WithTimeout(ctx, e.Timeout)
		defer cancel()
		res, happened, err := s.o.Runner.Look(look, s.o.Catalog(), e)
		switch {
		case errors.Is(err, ErrUnknownOutcome):
			return s.unknown(ctx, e, f)
		case err != nil:
			// The ledger cannot be read now: the sweep looks again when the lease is over.
			s.log(ctx, "cannot look for the outcome of an effect", err, slogExecution(e.ID))
			return e, anuencia.Unavailable("look for the effect", err)
		case happened:
			return s.complete(ctx, e, res, mask)
		}
	}
	f = final(f)
	if f.Code == anuencia.CodeInternal {
		s.log(ctx, "tool failed", f, slogExecution(e.ID))
	}
	now := s.now()
	toolFailed := s.event(e, anuencia.EventToolFailed, mergePayload(faultPayload(f), map[string]any{"tool": e.Step.Tool, "step": e.Step.Number}))
	toolFailed.ErrorCode = f.Code
	if f.Reason == anuencia.ReasonCancelled {
		last := s.event(e, anuencia.EventCancelled, faultPayload(f))
		last.ErrorCode = f.Code
		return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Cancel(f, now) }, nil, toolFailed, last)
	}
	return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Fail(f, now) }, nil, toolFailed, s.failed(e, f))
}

// final is the fault that an execution ends with: "come again" is said only of
// what was not taken in.
func final(f *anuencia.Fault) *anuencia.Fault {
	if f.Code != anuencia.CodeInternal || f.Reason != anuencia.ReasonUnavailable {
		return f
	}
	return anuencia.NewFault(anuencia.CodeInternal, "").WithDetails(f.Details).WithCause(f)
}

func mergePayload(a, b map[string]any) map[string]any {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// unknown ends an execution whose effect may or may not have happened: it is
// never started again (governance section 9).
func (s *Service) unknown(ctx context.Context, e anuencia.Execution, cause *anuencia.Fault) (anuencia.Execution, error) {
	f := anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonOutcomeUnknown).WithCause(cause)
	now := s.now()
	ev := s.event(e, anuencia.EventToolUnknown, map[string]any{"tool": e.Step.Tool, "step": e.Step.Number})
	ev.ErrorCode = f.Code
	s.log(ctx, "the outcome of an effect is unknown", f, slogExecution(e.ID))
	return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Fail(f, now) }, nil, ev, s.failed(e, f))
}

// complete guards a result and commits it with its artifacts.
func (s *Service) complete(ctx context.Context, e anuencia.Execution, res StepResult, mask []string) (anuencia.Execution, error) {
	result := res.Result
	if result == "" {
		result = "{}"
	}
	guarded, cut, err := s.o.Guard.Inspect(result, mask)
	if err != nil {
		// Nothing unguarded leaves; that the effect happened stays on record.
		f := anuencia.Internal("guard", err)
		s.log(ctx, "guard failed", f, slogExecution(e.ID))
		now := s.now()
		done := s.event(e, anuencia.EventToolCompleted, toolCompleted(e, res, ""))
		return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Fail(f, now) }, nil, done, s.failed(e, f))
	}
	out := anuencia.Outcome{Result: guarded, Sources: res.Sources, Warnings: append(e.Outcome.Warnings[:len(e.Outcome.Warnings):len(e.Outcome.Warnings)], res.Warnings...)}
	now := s.now()
	events := []anuencia.AuditEvent{s.event(e, anuencia.EventToolCompleted, toolCompleted(e, res, guarded))}
	if len(cut) > 0 {
		rules := make([]map[string]any, len(cut))
		for i, c := range cut {
			rules[i] = map[string]any{"rule": c.Rule, "path": c.Path}
		}
		events = append(events, s.event(e, anuencia.EventOutputRedacted, map[string]any{"cut": rules}))
		out.Warnings = append(out.Warnings, anuencia.Warning{Code: "output_redacted", Severity: anuencia.SeverityWarning})
	}
	for i := range res.Artifacts {
		res.Artifacts[i].ID = anuencia.ArtifactID(s.o.NewID())
		res.Artifacts[i].ExecutionID = e.ID
		res.Artifacts[i].CreatedAt = now
	}
	events = append(events, s.event(e, anuencia.EventCompleted, map[string]any{"result_digest": audit.Digest(guarded)}))
	return s.finish(ctx, e, func(e anuencia.Execution) (anuencia.Execution, error) { return e.Complete(out, now) }, res.Artifacts, events...)
}

// toolCompleted tells the outcome. What an effect did is evidence, as the guard
// let it through; what was only read is named by its hash.
func toolCompleted(e anuencia.Execution, res StepResult, guarded string) map[string]any {
	sources := make([]map[string]any, len(res.Sources))
	for i, src := range res.Sources {
		sources[i] = map[string]any{"type": src.Type, "id": src.ID, "ref": src.Ref, "hash": src.Hash}
	}
	p := map[string]any{
		"tool": e.Step.Tool, "step": e.Step.Number, "result_digest": audit.Digest(res.Result), "sources": sources,
	}
	if e.Step.Effect {
		p["result"] = raw(guarded)
	}
	return p
}

// finish commits the end of a run. When another writer was first (a cancel),
// the execution is read again; a terminal state is never changed.
func (s *Service) finish(ctx context.Context, e anuencia.Execution, end func(anuencia.Execution) (anuencia.Execution, error),
	files []anuencia.Artifact, events ...anuencia.AuditEvent,
) (anuencia.Execution, error) {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var kept anuencia.Execution
	again := false
	err := s.o.Store.Atomically(limited, func(ctx context.Context, tx Tx) error {
		current := e
		if again {
			fresh, err := tx.Execution(ctx, e.ID)
			if err != nil {
				return err
			}
			if fresh.State != anuencia.StateRunning || fresh.Attempt != e.Attempt {
				kept = fresh
				return nil
			}
			current = fresh
		}
		again = true
		next, err := end(current)
		if err != nil {
			return anuencia.Internal("end of run", err)
		}
		if kept, err = tx.PutExecution(ctx, next, events[0], events[1:]...); err != nil {
			return err
		}
		for _, f := range files {
			if err := tx.PutArtifact(ctx, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log(ctx, "cannot commit the end of a run", err, slogExecution(e.ID))
		return e, anuencia.Unavailable("commit outcome", err)
	}
	// Others wait for what a person decided; the end of a run that needed nobody
	// interests its own submitter, and one statement more would be a third.
	s.o.Watcher.Notify(e.ID, !e.ApprovalID.IsZero())
	return kept, nil
}

func (s *Service) track(id anuencia.ExecutionID, stop context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels[id] = stop
}

func (s *Service) untrack(id anuencia.ExecutionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cancels, id)
}

// stopHere cancels the run of an execution if it is this process's, and says
// whether it was.
func (s *Service) stopHere(id anuencia.ExecutionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, here := s.cancels[id]
	if here {
		stop(errCancelled)
	}
	return here
}
