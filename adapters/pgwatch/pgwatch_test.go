package pgwatch_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/anuencia-harness/anuencia/adapters/pgwatch"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func process(t *testing.T, url string) (*pgwatch.Watcher, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w := pgwatch.New(pool, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		pool.Close()
	})
	return w, pool
}

// notifyUntil notifies again and again until the other process hears: LISTEN
// may not have begun yet.
func notifyUntil(t *testing.T, from *pgwatch.Watcher, id anuencia.ExecutionID, wake <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		from.Notify(id, true)
		select {
		case <-wake:
			return
		case <-tick.C:
		case <-limit:
			t.Fatal("not woken")
		}
	}
}

func TestWakesAnotherProcess(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, _ := process(t, url)
	two, _ := process(t, url)
	id := anuencia.ExecutionID(uuid.New())
	wake, stop := two.Watch(id)
	defer stop()
	notifyUntil(t, one, id, wake)
}

func TestListensAgainAfterALostConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one, pool := process(t, url)
	two, _ := process(t, url)
	id := anuencia.ExecutionID(uuid.New())
	wake, stop := two.Watch(id)
	defer stop()
	notifyUntil(t, one, id, wake)
	if _, err := pool.Exec(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query ilike 'listen%'"); err != nil {
		t.Fatal(err)
	}
	notifyUntil(t, one, id, wake)
}

func TestNearNotificationsStayHere(t *testing.T) {
	t.Parallel()
	one, _ := process(t, pgtest.URL(t))
	id := anuencia.ExecutionID(uuid.New())
	wake, stop := one.Watch(id)
	one.Notify(id, false)
	<-wake
	stop()
	one.Notify(id, false)
	select {
	case <-wake:
		t.Fatal("woken after stop")
	default:
	}
}
