package sqlstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

type holdRow struct {
	ID           uid     `gorm:"column:id"`
	Intent       string  `gorm:"column:intent"`
	Reason       string  `gorm:"column:reason"`
	PlacedBy     uid     `gorm:"column:placed_by"`
	PlacedByName string  `gorm:"column:placed_by_name"`
	PlacedAt     instant `gorm:"column:placed_at"`
	LiftedBy     uid     `gorm:"column:lifted_by"`
	LiftedByName string  `gorm:"column:lifted_by_name"`
	LiftReason   string  `gorm:"column:lift_reason"`
	LiftedAt     instant `gorm:"column:lifted_at"`
}

func holdColumns() []string {
	return []string{
		"id", "intent", "reason", "placed_by", "placed_by_name", "placed_at", "lifted_by", "lifted_by_name", "lift_reason", "lifted_at",
	}
}

func (r holdRow) hold() (anuencia.Hold, error) {
	return anuencia.Hold{
		ID: anuencia.HoldID(r.ID), Intent: r.Intent, Reason: r.Reason, PlacedBy: anuencia.PersonID(r.PlacedBy),
		PlacedByName: r.PlacedByName, PlacedAt: r.PlacedAt.at, LiftedBy: anuencia.PersonID(r.LiftedBy),
		LiftedByName: r.LiftedByName, LiftReason: r.LiftReason, LiftedAt: r.LiftedAt.at,
	}, nil
}

type holdOp struct{ h anuencia.Hold }

func (*holdOp) rank() int          { return 6 }
func (*holdOp) mark() (mark, bool) { return mark{}, false }

// apply inserts a hold, or lifts one that is in force; of two who lift it at
// once the second meets a conflict.
func (o *holdOp) apply(ctx context.Context, s *Store, to gorm.ConnPool) error {
	h := o.h
	err := s.exec(ctx, to, 1, s.hot.text.putHold,
		idArg(h.ID), h.Intent, h.Reason, idArg(h.PlacedBy), h.PlacedByName, s.timeArg(h.PlacedAt),
		idArg(h.LiftedBy), h.LiftedByName, h.LiftReason, s.timeArg(h.LiftedAt))
	if err != nil {
		return wrap("put hold", err)
	}
	return nil
}

// ActiveHolds implements harness.HoldStore.
func (s *Store) ActiveHolds(ctx context.Context) ([]anuencia.Hold, error) {
	rows, err := many[holdRow](s.reader(ctx).Table("holds").Select(holdColumns()).Where("lifted_at is null").Order("placed_at, id"))
	if err != nil {
		return nil, reachable("list holds", err)
	}
	return convert(rows, holdRow.hold)
}

// Hold implements harness.HoldStore.
func (s *Store) Hold(ctx context.Context, id anuencia.HoldID) (anuencia.Hold, error) {
	row, err := one[holdRow](s.reader(ctx).Table("holds").Select(holdColumns()).Where("id = ?", idArg(id)))
	if err != nil {
		return anuencia.Hold{}, reachable("read hold", err)
	}
	return row.hold()
}
