package sqltool_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const (
	grade = `{"estudiante_id":"2023-114","curso":"MAT-101","nota":18,"justificacion":"Error de suma"}` //nolint:misspell // Spanish
	grant = `{"estudiante_id":"2023-114","monto":1500.5,"motivo":"Excelencia"}`

	countGrants  = "select count(*) from becas where estudiante_id = '2023-114'"
	countEffects = "select count(*) from anuencia_effects"
)

func TestAnActionShowsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "nota.actualizar", grade)
		if c.Before != `[{"curso":"MAT-101","estudiante_id":"2023-114","nota":14}]` {
			t.Fatalf("before: %s", c.Before)
		}
		if _, happened, err := w.action.Look(t.Context(), c); happened || err != nil {
			t.Fatalf("look before: %v, %v", happened, err)
		}
		res, err := w.action.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"antes":` + c.Before + `,"despues":[{"curso":"MAT-101","estudiante_id":"2023-114","nota":18}]}`
		if res.Result != want || len(res.Sources) != 1 || res.Sources[0].Type != "sql_action" {
			t.Fatalf("result: %+v", res)
		}
		if n := w.count(t, "select count(*) from matriculas where nota = 18 and curso = 'MAT-101'"); n != 1 {
			t.Fatalf("%d rows changed", n)
		}
		seen, happened, err := w.action.Look(t.Context(), c)
		if !happened || err != nil || seen.Result != res.Result || seen.Sources[0] != res.Sources[0] {
			t.Fatalf("look after: %+v, %v, %v", seen, happened, err)
		}
	})
}

// TestAnEffectTwiceIsImpossible: the same key again, also from several
// processes at once and after the state moved on, gives the first result.
func TestAnEffectTwiceIsImpossible(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "beca.registrar", grant)
		second := w.replica(t)
		results := make([]string, 12)
		var all sync.WaitGroup
		for i := range results {
			all.Go(func() {
				tool := w.action
				if i%2 == 1 {
					tool = second
				}
				res, err := tool.Run(t.Context(), c)
				if err != nil {
					t.Errorf("run %d: %v", i, err)
				}
				results[i] = res.Result
			})
		}
		all.Wait()
		for _, r := range results {
			if r != results[0] || !strings.Contains(r, `"becas":1`) {
				t.Errorf("result: %s", r)
			}
		}
		w.exec(t, "delete from becas where estudiante_id = '2023-114'")
		if res, err := w.action.Run(t.Context(), c); err != nil || res.Result != results[0] {
			t.Errorf("later: %+v, %v", res, err)
		}
		if n, m := w.count(t, countGrants), w.count(t, countEffects); n != 0 || m != 1 {
			t.Errorf("%d grants, %d effects", n, m)
		}
		c.Step = 2 // another step is another effect
		if _, err := w.action.Run(t.Context(), c); err != nil || w.count(t, countGrants) != 1 {
			t.Errorf("another step: %v", err)
		}
	})
}

// replica is the tool as another process has it.
func (w *world) replica(t *testing.T) *sqltool.Action {
	t.Helper()
	other, err := sqltool.Open("institution", w.address)
	if err != nil {
		t.Fatal(err)
	}
	set := sqltool.NewSources(other)
	t.Cleanup(func() { closed(t, set) })
	return sqltool.NewAction(set, time.Now)
}

func closed(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestLookTellsTheTruth of runs that were cut off anywhere.
func TestLookTellsTheTruth(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		happened := 0
		for i := range 60 {
			c := w.call(t, "beca.registrar", grant)
			before := w.count(t, countGrants)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*150*time.Microsecond)
			_, err := w.action.Run(ctx, c)
			cancel()
			_, did, lookErr := w.action.Look(t.Context(), c)
			if lookErr != nil {
				t.Fatalf("look: %v", lookErr)
			}
			after := w.count(t, countGrants)
			if (after == before+1) != did || after > before+1 || err == nil && !did {
				t.Fatalf("run %d: %v; look says %v; grants went from %d to %d", i, err, did, before, after)
			}
			if !did { // what certainly did not happen is started again
				if _, err := w.action.Run(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				continue
			}
			happened++
		}
		if n, m := w.count(t, countGrants), w.count(t, countEffects); n != 60 || m != 60 {
			t.Errorf("%d grants, %d effects of 60 (%d at the first run)", n, m, happened)
		}
	})
}

// TestLookWaitsForACommitUnderWay: a run that lost its caller while its commit
// was on the way may still take effect; no answer before that is settled.
func TestLookWaitsForACommitUnderWay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "beca.registrar", grant)
		tx, err := w.other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(t.Context(), "insert into anuencia_effects values ('"+c.ExecutionID.String()+"', 1, '{\"antes\":[]}', 'now')")
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, happened, err := w.action.Look(short, c); err == nil {
			t.Fatalf("look said %v of a run that has not ended", happened)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		res, happened, err := w.action.Look(t.Context(), c)
		if err != nil || !happened || res.Result != `{"antes":[]}` {
			t.Fatalf("look after: %+v, %v, %v", res, happened, err)
		}
	})
}

func TestAnotherStateBeforeIsSuperseded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "nota.actualizar", grade)
		w.exec(t, "update matriculas set nota = 5 where estudiante_id = '2023-114' and curso = 'MAT-101'")
		_, err := w.action.Run(t.Context(), c)
		if !errors.Is(err, harness.ErrSuperseded) {
			t.Fatalf("stale: %v", err)
		}
		if n := w.count(t, "select count(*) from matriculas where nota = 5"); n != 1 || w.count(t, countEffects) != 0 {
			t.Fatal("something was done")
		}
		if _, happened, err := w.action.Look(t.Context(), c); happened || err != nil {
			t.Fatalf("look: %v, %v", happened, err)
		}
	})
}

// TestOneOfManyChangesOfARow takes effect: the others saw another state before.
func TestOneOfManyChangesOfARow(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		const writers = 6
		errs := make([]error, writers)
		calls := make([]agent.Call, writers)
		for i := range calls {
			calls[i] = w.call(t, "nota.actualizar", grade)
		}
		var all sync.WaitGroup
		for i, c := range calls {
			all.Go(func() { _, errs[i] = w.action.Run(t.Context(), c) })
		}
		all.Wait()
		done := 0
		for _, err := range errs {
			switch {
			case err == nil:
				done++
			case !errors.Is(err, harness.ErrSuperseded):
				t.Errorf("refused: %v", err)
			}
		}
		if done != 1 || w.count(t, countEffects) != 1 {
			t.Errorf("%d took effect", done)
		}
	})
}

func TestAnotherNumberOfRowsIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		for name, statement := range map[string]string{
			"more": "update matriculas set nota = 20", "none": "update matriculas set nota = 20 where curso = 'X' and estudiante_id = :estudiante_id",
			"bad": "update matriculas set no_such = 1", "two": "delete from becas; delete from matriculas",
		} {
			c := w.call(t, "nota.actualizar", grade)
			c.Tool.Config = []byte(`{"source":"institution","source_id":"m","before":"select nota from matriculas where curso = :curso and estudiante_id = :estudiante_id",` +
				`"statement":"` + statement + `","after":"select 1 as a","rows":1}`)
			before, err := w.action.Before(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			c.Before = before
			if res, err := w.action.Run(t.Context(), c); err == nil || errors.Is(err, harness.ErrSuperseded) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			if _, happened, err := w.action.Look(t.Context(), c); happened || err != nil {
				t.Errorf("%s: look %v, %v", name, happened, err)
			}
		}
		if n := w.count(t, "select count(*) from matriculas where nota = 20"); n != 0 || w.count(t, countEffects) != 0 || w.count(t, "select count(*) from becas") != 1 {
			t.Error("something was done")
		}
	})
}

func TestNothingToChangeIsNotFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "nota.actualizar", grade)
		c.Arguments = strings.Replace(c.Arguments, "MAT-101", "QUI-999", 1)
		if _, err := w.action.Before(t.Context(), c); !errors.Is(err, anuencia.NotFound()) {
			t.Fatalf("nobody's course: %v", err)
		}
	})
}

func TestHostileArgumentsOfAnAction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		const hostile = `x'); delete from becas; -- :monto $1 \\ \"`
		c := w.call(t, "beca.registrar", strings.Replace(grant, "Excelencia", hostile, 1))
		if _, err := w.action.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		var kept string
		if err := w.other.QueryRowContext(t.Context(), "select motivo from becas where monto = 1500.5").Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if kept != `x'); delete from becas; -- :monto $1 \ "` || w.count(t, "select count(*) from becas") != 2 {
			t.Fatalf("kept %q", kept)
		}
	})
}

// TestTheRunnerOverAnAction plans with the state before, runs, and looks.
func TestTheRunnerOverAnAction(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		direct := agent.NewDirect(map[string]agent.Tool{sqltool.KindAction: w.action, sqltool.KindView: w.view})
		in, _ := w.catalog.Intent("nota.modificar")
		e := anuencia.Execution{ID: newExecution(), Input: grade, Actor: anuencia.Actor{Person: anuencia.Person{Roles: []string{"registro"}}}}
		step, err := direct.Plan(t.Context(), w.catalog, e, in)
		if err != nil || !strings.Contains(step.Before, `"nota":14`) || step.ToolDigest == "" {
			t.Fatalf("plan: %+v, %v", step, err)
		}
		e.Step = step
		if _, happened, err := direct.Look(t.Context(), w.catalog, e); happened || err != nil {
			t.Fatalf("look before: %v, %v", happened, err)
		}
		res, err := direct.Run(t.Context(), w.catalog, e)
		if err != nil {
			t.Fatal(err)
		}
		seen, happened, err := direct.Look(t.Context(), w.catalog, e)
		if err != nil || !happened || seen.Result != res.Result {
			t.Fatalf("look after: %+v, %v, %v", seen, happened, err)
		}
	})
}

// TestManyActionsAtOnceAllTakeEffect: serializable transactions are refused by
// the database for no fault of theirs, and tried again.
func TestManyActionsAtOnceAllTakeEffect(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		calls := make([]agent.Call, 64)
		for i := range calls {
			calls[i] = w.call(t, "beca.registrar", grant)
		}
		var all sync.WaitGroup
		replicas := []*sqltool.Action{w.action, w.replica(t), w.replica(t), w.replica(t)}
		for i, c := range calls {
			all.Go(func() {
				if _, err := replicas[i%len(replicas)].Run(t.Context(), c); err != nil {
					t.Errorf("run: %v", err)
				}
			})
		}
		all.Wait()
		if n := w.count(t, countGrants); n != len(calls) {
			t.Errorf("%d grants of %d", n, len(calls))
		}
	})
}
