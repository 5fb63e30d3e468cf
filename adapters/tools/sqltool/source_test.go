package sqltool_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// TestAnAwayDatabaseIsNoAnswer: unavailable, so that it is tried again, and the
// password is not told.
func TestAnAwayDatabaseIsNoAnswer(t *testing.T) {
	t.Parallel()
	src, err := sqltool.Open("institution", "postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	set := sqltool.NewSources(src)
	defer closed(t, set)
	action := sqltool.NewAction(set, time.Now)
	c := agent.Call{Arguments: "{}", Tool: anuencia.Tool{Config: []byte(`{"source":"institution","before":"select 1 as a"}`)}}
	_, before := action.Before(t.Context(), c)
	_, run := action.Run(t.Context(), c)
	_, _, look := action.Look(t.Context(), c)
	for _, err := range []error{before, run, look} {
		if !errors.Is(err, anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonUnavailable)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("away: %v", err)
		}
	}
}

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "mysql://u:hunter2@h/db", "postgres://u:hunter2@h:port/db", "sqlite:"} {
		if _, err := sqltool.Open("x", address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := sqltool.WithSchema("postgres://u:hunter2@h:po rt/db", "s"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("WithSchema: %v", err)
	}
	if got, err := sqltool.WithSchema("postgres://h/db?sslmode=disable", "institution"); err != nil || got != "postgres://h/db?search_path=institution&sslmode=disable" {
		t.Errorf("WithSchema: %s, %v", got, err)
	}
}

// TestSeedingIsDoneOnce, by however many processes that start together, and
// keeps what is there.
func TestSeedingIsDoneOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		w.exec(t, "delete from becas")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				src, err := sqltool.Open("institution", w.address)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(sqltool.Seed(t.Context(), src, "institution", institution(t)), src.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n, m := w.count(t, "select count(*) from becas"), w.count(t, "select count(*) from estudiantes"); n != 0 || m != 2 {
			t.Errorf("%d grants, %d students", n, m)
		}
	})
}

func TestAFreshSQLiteFileIsSeededByOneOfMany(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "institution.db")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			src, err := sqltool.Open("institution", path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(sqltool.Seed(t.Context(), src, "institution", institution(t)), src.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	src, err := sqltool.Open("institution", "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	set := sqltool.NewSources(src)
	defer closed(t, set)
	got, err := set.Snapshot(t.Context(), "institution", map[string]string{"n": "select count(*) as n from estudiantes"}, "{}", 1)
	if err != nil || len(got["n"]) != 1 || got["n"][0]["n"] != int64(2) {
		t.Fatalf("%v, %v", got, err)
	}
}
