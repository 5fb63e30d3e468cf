package rest

import (
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// newHold is the body of POST /admin/holds: one intent, or all.
type newHold struct {
	Intent string `json:"intent" validate:"required_without=All,excluded_with=All,max=200"`
	All    bool   `json:"all"`
	Reason string `json:"reason" validate:"required,max=2000"`
}

// liftHold is the body of POST /admin/holds/{id}/lift.
type liftHold struct {
	Reason string `json:"reason" validate:"required,max=2000"`
}

// holdRow is a brake. Intent is null when it stops all.
type holdRow struct {
	HoldID     string     `json:"hold_id"`
	Intent     *string    `json:"intent"`
	Reason     string     `json:"reason"`
	PlacedBy   string     `json:"placed_by"`
	PlacedAt   time.Time  `json:"placed_at"`
	LiftedBy   *string    `json:"lifted_by"`
	LiftReason *string    `json:"lift_reason"`
	LiftedAt   *time.Time `json:"lifted_at"`
}

func holdOf(h anuencia.Hold) holdRow {
	return holdRow{
		HoldID: h.ID.String(), Intent: optional(h.Intent), Reason: h.Reason, PlacedBy: h.PlacedByName, PlacedAt: h.PlacedAt,
		LiftedBy: optional(h.LiftedByName), LiftReason: optional(h.LiftReason), LiftedAt: optionalTime(h.LiftedAt),
	}
}

func (s *surface) placeHold(c *httpkit.Call) error {
	var body newHold
	if err := c.Decode(&body); err != nil {
		return err
	}
	h, err := s.o.Service.PlaceHold(c.Context(), c.Request, body.Intent, body.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, holdOf(h))
}

func (s *surface) liftHold(c *httpkit.Call) error {
	v, err := id[anuencia.HoldID](c, "id")
	if err != nil {
		return err
	}
	var body liftHold
	if err := c.Decode(&body); err != nil {
		return err
	}
	h, err := s.o.Service.LiftHold(c.Context(), c.Request, v, body.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, holdOf(h))
}

func (s *surface) holds(c *httpkit.Call) error {
	items, err := s.o.Service.Holds(c.Context(), c.Request)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(items, "", holdOf))
}
