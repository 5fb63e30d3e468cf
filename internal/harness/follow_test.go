package harness_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// TestFollowGivesEveryEventOnceAndEnds: replayed from where the reader was, then
// live, until the execution has ended.
func TestFollowGivesEveryEventOnceAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	var seqs []int64
	caughtUp, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- w.svc.Follow(t.Context(), w.as("clerk"), a.Execution.ID, 2, time.Hour, func(events []anuencia.SealedEvent) error {
			for _, e := range events {
				seqs = append(seqs, e.Seq)
			}
			select {
			case caughtUp <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	<-caughtUp
	w.mustDecide(t, "finance", a, anuencia.Approve)
	w.mustDecide(t, "head", a, anuencia.Approve)
	w.work(t.Context())
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	e := w.execution(t, a.Execution.ID)
	var want []int64
	for i := int64(3); i <= e.Head.Seq; i++ {
		want = append(want, i)
	}
	if !slices.Equal(seqs, want) {
		t.Fatalf("got %v, want %v", seqs, want)
	}
}

func TestFollowRefusesAndStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.submit(t, w.as("clerk"), "grant")
	none := func([]anuencia.SealedEvent) error { return nil }
	err := w.svc.Follow(t.Context(), w.as("student"), a.Execution.ID, 0, time.Hour, none)
	wantFault(t, err, anuencia.CodeValidation, anuencia.ReasonNotFound, "")

	gone := errors.New("reader is gone")
	err = w.svc.Follow(t.Context(), w.as("clerk"), a.Execution.ID, 0, time.Hour, func([]anuencia.SealedEvent) error { return gone })
	if !errors.Is(err, gone) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = w.svc.Follow(ctx, w.as("clerk"), a.Execution.ID, 0, 0, func(events []anuencia.SealedEvent) error {
		if len(events) == 0 {
			cancel() // a sign of life without events came; the reader leaves
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
