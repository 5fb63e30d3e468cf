package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// holds: what is placed is read back, and of many who lift it at once one does,
// with one event.
func holds(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	placer, lifter := anuencia.Person{ID: anuencia.PersonID(uuid.New()), DisplayName: "Ana"}, anuencia.Person{ID: anuencia.PersonID(uuid.New()), DisplayName: "Luz"}
	h, err := anuencia.NewHold(anuencia.HoldID(uuid.Must(uuid.NewV7())), "beca.asignar", "montos raros", placer, Instant)
	must(t, err)
	ev := systemEvent(1)
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.PutHold(ctx, h, ev) }))
	list, err := s.ActiveHolds(t.Context())
	must(t, err)
	if len(list) != 1 || list[0] != h {
		t.Fatalf("got %+v, want %+v", list, h)
	}
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		lifted, err := h.Lift(lifter, "revisado", Instant.Add(time.Duration(i)*time.Second))
		must(t, err)
		ev := systemEvent(i + 2)
		wg.Go(func() {
			err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.PutHold(ctx, lifted, ev) })
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, harness.ErrConflict) {
				t.Errorf("lift %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	kept, err := s.Hold(t.Context(), h.ID)
	must(t, err)
	if won.Load() != 1 || kept.Active() || kept.LiftedByName != "Luz" {
		t.Errorf("%d lifted it: %+v", won.Load(), kept)
	}
	if rows, err := s.Stream(t.Context(), s.SystemStream()); err != nil || len(rows) != 2 {
		t.Errorf("%d events, want 2 (%v)", len(rows), err)
	}
	if list, err = s.ActiveHolds(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("still in force: %v, %v", list, err)
	}
}
