package harness

import (
	"context"
	"errors"
	"slices"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// errHeld is no answer to a job: it is tried again until the hold is lifted or
// the approval expires.
var errHeld = errors.New("held: the brake is on")

// held says whether a hold stops the intent now, on whatever replica it was
// placed.
func (s *Service) held(ctx context.Context, intent string) (bool, error) {
	holds, err := s.o.Store.ActiveHolds(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(holds, func(h anuencia.Hold) bool { return h.Stops(intent) }), nil
}

// PlaceHold puts the brake on an intent, or on all with "". For an administrator
// who is a person. VALIDATION_FAILED for an intent that is not in the catalog
// and for a missing reason.
func (s *Service) PlaceHold(ctx context.Context, r Request, intent, reason string) (anuencia.Hold, error) {
	by, err := s.adminPerson(ctx, r)
	if err != nil {
		return anuencia.Hold{}, err
	}
	if _, known := s.o.Catalog().Intent(intent); intent != "" && !known {
		return anuencia.Hold{}, anuencia.Invalid(anuencia.ReasonUnknownIntent, anuencia.FieldError{Path: "/intent", Rule: "known"})
	}
	h, err := anuencia.NewHold(anuencia.HoldID(s.o.NewID()), intent, reason, by, s.now())
	if err != nil {
		return h, err
	}
	ev := s.holdEvent(r, by, anuencia.EventHoldPlaced, h, reason)
	err = s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.PutHold(ctx, h, ev) })
	return h, err
}

// LiftHold takes the brake off. Another person than the one who placed it does.
func (s *Service) LiftHold(ctx context.Context, r Request, id anuencia.HoldID, reason string) (anuencia.Hold, error) {
	by, err := s.adminPerson(ctx, r)
	if err != nil {
		return anuencia.Hold{}, err
	}
	h, err := s.o.Store.Hold(ctx, id)
	if err != nil {
		return h, err
	}
	lifted, err := h.Lift(by, reason, s.now())
	if err != nil {
		return h, err
	}
	ev := s.holdEvent(r, by, anuencia.EventHoldLifted, lifted, reason)
	err = s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.PutHold(ctx, lifted, ev) })
	if errors.Is(err, ErrConflict) {
		return h, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonDecided) // somebody else was first
	}
	return lifted, err
}

// Holds lists the holds in force.
func (s *Service) Holds(ctx context.Context, r Request) ([]anuencia.Hold, error) {
	if err := s.admin(ctx, r); err != nil {
		return nil, err
	}
	return s.o.Store.ActiveHolds(ctx)
}

// adminPerson is the person behind an administrator's own credential. On the
// host the credential is access to the database, and the person is named.
func (s *Service) adminPerson(ctx context.Context, r Request) (anuencia.Person, error) {
	if r.Channel != anuencia.ChannelCLI {
		if err := s.admin(ctx, r); err != nil {
			return anuencia.Person{}, err
		}
	}
	if r.Principal.Person.IsZero() || r.ActFor != "" {
		return anuencia.Person{}, anuencia.Denied(anuencia.PolicyOwnCredential)
	}
	a, err := s.o.Directory.ResolveFresh(ctx, r.Principal.Person)
	return a.Person, err
}

func (s *Service) holdEvent(r Request, by anuencia.Person, t anuencia.EventType, h anuencia.Hold, reason string) anuencia.AuditEvent {
	intent := h.Intent
	if intent == "" {
		intent = "*"
	}
	ev := s.systemEvent(t, map[string]any{"hold_id": h.ID.String(), "intent": intent, "reason": reason, "by": by.DisplayName})
	ev.ActorID, ev.PrincipalID, ev.Channel, ev.TraceID = by.ID, r.Principal.ID, s.channelOf(r), r.TraceID
	return ev
}
