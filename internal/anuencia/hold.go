package anuencia

import "time"

// HoldID is a brake that somebody put on.
type HoldID = ID[holdKind]

type holdKind struct{}

// PolicyHold is the rule named when a hold stops an intake.
const PolicyHold = "hold"

// Hold is the brake: while it is placed, nothing of its intent, or of any when
// Intent is empty, is taken in, started or resumed. It is lifted by another
// person than the one who placed it. A value; see Lift.
type Hold struct {
	ID           HoldID
	Intent       string // "": all
	Reason       string
	PlacedBy     PersonID
	PlacedByName string
	PlacedAt     time.Time
	LiftedBy     PersonID
	LiftedByName string
	LiftReason   string
	LiftedAt     time.Time // zero: in force
}

// Active says whether it is in force.
func (h Hold) Active() bool { return h.LiftedAt.IsZero() }

// Stops says whether it is in force for the intent.
func (h Hold) Stops(intent string) bool { return h.Active() && (h.Intent == "" || h.Intent == intent) }

// Lift ends it. POLICY_DENIED by approval.four_eyes for the one who placed it;
// VALIDATION_FAILED/decided when it is lifted already.
func (h Hold) Lift(by Person, reason string, at time.Time) (Hold, error) {
	if !h.Active() {
		return h, NewFault(CodeValidation, ReasonDecided)
	}
	if by.ID.IsZero() || by.ID == h.PlacedBy {
		return h, Denied(PolicyFourEyes)
	}
	if blank(reason) {
		return h, Invalid(ReasonReasonRequired, FieldError{Path: "/reason", Rule: "required"})
	}
	h.LiftedBy, h.LiftedByName, h.LiftReason, h.LiftedAt = by.ID, by.DisplayName, reason, at
	return h, nil
}

// NewHold checks what is asked of a brake.
func NewHold(id HoldID, intent, reason string, by Person, at time.Time) (Hold, error) {
	if blank(reason) {
		return Hold{}, Invalid(ReasonReasonRequired, FieldError{Path: "/reason", Rule: "required"})
	}
	return Hold{ID: id, Intent: intent, Reason: reason, PlacedBy: by.ID, PlacedByName: by.DisplayName, PlacedAt: at}, nil
}
