package sqlstore_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/adapters/sqlstore/storetest"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// BenchmarkLowRisk is what a low-risk execution costs: two commits, with four
// and three events.
func BenchmarkLowRisk(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		o := storetest.Options()
		o.SQLitePath = filepath.Join(b.TempDir(), "bench.db")
		lowRisk(b, o)
	})
	b.Run("postgres", func(b *testing.B) {
		o := storetest.Options()
		o.DatabaseURL = pgtest.URL(b)
		lowRisk(b, o)
	})
}

func lowRisk(b *testing.B, o sqlstore.Options) {
	b.Helper()
	if err := sqlstore.Migrate(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	s, err := sqlstore.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			e := storetest.Execution()
			if e, err := put(b.Context(), s, e, 4); err != nil {
				b.Error(err)
			} else {
				e.State = anuencia.StateCompleted
				if _, err := put(b.Context(), s, e, 3); err != nil {
					b.Error(err)
				}
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "executions/s")
}

func put(ctx context.Context, s *sqlstore.Store, e anuencia.Execution, n int) (anuencia.Execution, error) {
	events := make([]anuencia.AuditEvent, n)
	for i := range events {
		events[i] = storetest.Event(e, anuencia.EventPolicyEvaluated)
	}
	err := s.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		kept, err := tx.PutExecution(ctx, e, events[0], events[1:]...)
		if err == nil {
			e = kept
		}
		return err
	})
	return e, err
}
