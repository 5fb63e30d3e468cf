package main_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/libtnb/sqlite"

	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
	"github.com/anuencia-harness/anuencia/policies"
)

// eventually asks until ok, for a minute at most, without sleeping longer than
// the server needs.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func copyFS(t *testing.T, dir string, from fs.FS) {
	t.Helper()
	if err := os.CopyFS(dir, from); err != nil {
		t.Fatal(err)
	}
}

// TestReloadKeepsTheLastGoodOne: catalog and policies are read again on SIGHUP
// and on change; a bad revision is refused and the last good one stays.
func TestReloadKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	catalogDir, policyDir := filepath.Join(dir, "catalog"), filepath.Join(dir, "policies")
	demo, err := fs.Sub(embedded.FS, "demo")
	if err != nil {
		t.Fatal(err)
	}
	copyFS(t, catalogDir, demo)
	copyFS(t, policyDir, policies.FS)
	s := start(t, filepath.Join(dir, "data"), "ANUENCIA_CATALOG="+catalogDir, "ANUENCIA_POLICIES="+policyDir)
	ask := func() reply { return s.submit("requester", "documento.buscar", `{"consulta":"beca"}`) }
	s.want(ask(), 200)

	rules := filepath.Join(policyDir, "zz_local.rego")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.output.String(), what)
	}
	write(rules, "package anuencia\n\nthis is no rego")
	eventually(t, "the bad policies are refused", func() bool { return refused("the new policies were refused") })
	s.want(ask(), 200)
	if err := os.Remove(rules); err != nil {
		t.Fatal(err)
	}

	intent := filepath.Join(catalogDir, "intents", "documento.buscar.yaml")
	good, err := os.ReadFile(intent)
	if err != nil {
		t.Fatal(err)
	}
	write(intent, "name: documento.buscar\nrisk: enormous\n")
	eventually(t, "the bad catalog is refused", func() bool { return refused("the new catalog was refused") })
	s.want(ask(), 200)
	write(intent, strings.Replace(string(good), "Búsqueda en los reglamentos", "Otro título", 1))
	eventually(t, "the good catalog is in force", func() bool {
		return strings.Contains(s.call("requester", http.MethodGet, "/api/v1/catalog/intents", "").raw, "Otro título")
	})

	people := filepath.Join(catalogDir, "people.yaml")
	roster, err := os.ReadFile(people)
	if err != nil {
		t.Fatal(err)
	}
	write(people, "")
	eventually(t, "the empty directory is refused", func() bool { return refused("the new directory was refused") })
	s.want(ask(), 200)
	write(people, strings.Replace(string(roster), "Lucía Quispe Rojas", "Otra Persona", 1))
	activations := func() int {
		r := s.want(s.call("auditor", http.MethodGet, "/api/v1/audit/events?event_type=catalog.activated", ""), 200)
		return strings.Count(r.raw, `"part":"directory"`)*10 + strings.Count(r.raw, `"part":"catalog"`)
	}
	eventually(t, "catalog and directory, at the start and once each, are on record", func() bool { return activations() == 22 })
}

// TestStopLetsRequestsEnd: SIGTERM under load; whoever got an answer got a whole
// one, and nothing that was taken in is lost.
func TestStopLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		var ids sync.Map
		var answers atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					r, err := s.try("clerk", http.MethodPost, "/api/v1/executions", `{"intent":"consulta.matricula","input":{"estudiante_id":"2023-114"}}`)
					if err != nil {
						return // the server is gone
					}
					if r.status != 200 && r.status != 429 {
						s.t.Errorf("status %d: %s", r.status, r.raw)
						return
					}
					if r.status == 200 {
						ids.Store(r.str("execution_id"), true)
					}
					answers.Add(1)
				}
			})
		}
		eventually(s.t, "load runs", func() bool { return answers.Load() > 40 })
		s.verify() // chains that grow meanwhile are no defect
		if err := s.stop(syscall.SIGTERM); err != nil {
			s.t.Fatalf("did not end well: %v", err)
		}
		wg.Wait()
		s.start()
		ids.Range(func(id, _ any) bool {
			s.want(s.call("clerk", http.MethodGet, fmt.Sprint("/api/v1/executions/", id), ""), 200, "status", "completed")
			return !s.t.Failed()
		})
		s.verify()
	})
}

// TestKilledUnderLoad kills the process at any moment of mixed work, several
// times over. Afterwards every approval is pending or decided, every grant in
// the institution's table is one that was approved, none is there twice, and the
// chains verify.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		var granted sync.Map // execution id -> true, once it was approved for certain
		for round := range 3 {
			var work atomic.Int64
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for {
						r, err := s.try("clerk", http.MethodPost, "/api/v1/executions", fmt.Sprintf(`{"intent":"beca.asignar","input":{"estudiante_id":"2023-114","monto":%d,"motivo":"ronda"}}`, 1000+i))
						if err != nil || r.status != 202 {
							return
						}
						d, err := s.try("approver", http.MethodPost, "/aprobar", `{"approval_id":"`+r.str("approval_id")+`","reason":"ok"}`)
						if err == nil && d.status == 200 && d.str("status") == "completed" {
							granted.Store(r.str("execution_id"), true)
						}
						if err != nil {
							return
						}
						work.Add(1)
					}
				})
			}
			eventually(s.t, "work is done", func() bool { return work.Load() > int64(4+7*round) })
			if err := s.stop(syscall.SIGKILL); err == nil {
				s.t.Fatal("a killed process ended well")
			}
			wg.Wait()
			s.start()
		}
		var left []string
		eventually(s.t, "nothing is left half done", func() bool {
			left = s.ids("approved", "running")
			return len(left) == 0
		})
		completed := s.ids("completed")
		granted.Range(func(id, _ any) bool {
			found := false
			for _, c := range completed {
				found = found || c == id
			}
			if !found {
				s.t.Errorf("%v was told as completed and is not", id)
			}
			return true
		})
		if effects := s.effects(); effects != len(completed) {
			s.t.Errorf("%d grants in the institution's table, %d executions completed", effects, len(completed))
		}
		s.verify()
	})
}

// TestTamperingIsFound wipes and cuts evidence behind the server's back; the
// owner of a SQLite file can drop its triggers.
func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"payload wiped":   "update audit_events set payload = null, salt = null where event_type = 'approval.decided'",
		"payload changed": "update audit_events set payload = replace(payload, 'approve', 'reject') where event_type = 'approval.decided'",
		"row deleted":     "delete from audit_events where event_type = 'approval.decided'",
		"tail cut":        "delete from audit_events where event_type = 'execution.completed'",
		"time changed":    "update audit_events set occurred_at = occurred_at + 1 where event_type = 'approval.decided'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, t.TempDir())
			r := s.want(s.submit("clerk", "nota.modificar", nota), 202)
			s.want(s.decide("approver", "aprobar", r.str("approval_id"), "sí"), 200, "status", "completed")
			if err := s.stop(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			s.verify()
			db, err := sql.Open("sqlite", filepath.Join(s.dir, "anuencia.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), statement); err == nil {
				t.Error("the triggers let it through")
			}
			dropTriggers(t, db)
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			out, err := s.run("audit", "verify", "--data", s.dir)
			if err == nil || !strings.Contains(out, "DOES NOT VERIFY") || !strings.Contains(out, r.str("execution_id")) {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

func dropTriggers(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "select name from sqlite_master where type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := db.ExecContext(t.Context(), "drop trigger "+n); err != nil {
			t.Fatal(err)
		}
	}
}

// ids lists the executions of beca.asignar in the states given.
func (s *server) ids(states ...string) []string {
	s.t.Helper()
	var out []string
	for _, state := range states {
		cursor := ""
		for {
			r := s.want(s.call("auditor", http.MethodGet, "/api/v1/executions?limit=200&intent=beca.asignar&state="+state+cursor, ""), 200)
			items, ok := r.at("items").([]any)
			if !ok {
				s.t.Fatalf("list: %s", r.raw)
			}
			for i := range items {
				out = append(out, r.str("items", i, "execution_id"))
			}
			next := r.str("next_cursor")
			if next == "" {
				break
			}
			cursor = "&cursor=" + next
		}
	}
	return out
}

// TestTheDatabaseGoesAway: 503 in the contract meanwhile, and all well again
// without a restart.
func TestTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+url)
	s.want(s.submit("clerk", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 200)
	name := url[strings.LastIndex(url, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	admin := strings.Replace(url, "/"+name, "/postgres", 1)
	exec := func(text string) {
		t.Helper()
		if err := pgtest.Exec(t.Context(), admin, text); err != nil {
			t.Fatal(err)
		}
	}
	exec(fmt.Sprintf(`alter database %q allow_connections false`, name))
	exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '` + name + `'`)
	for range 15 { // more than a stranger may: a database that is away is no flood
		r := s.submit("clerk", "consulta.matricula", `{"estudiante_id":"2023-114"}`)
		s.standardError(r, "database away", 503, "INTERNAL_ERROR")
		if r.header.Get("Retry-After") == "" || fmt.Sprint(r.at("error", "details")) != "map[]" {
			t.Errorf("no Retry-After, or details: %s", r.raw)
		}
		for _, inner := range []string{name, "postgres", "connect", "SQLSTATE", "127.0.0.1", "pgx"} {
			if strings.Contains(r.raw, inner) {
				t.Errorf("%q leaks: %s", inner, r.raw)
			}
		}
	}
	s.want(s.call("", http.MethodGet, "/readyz", ""), 503, "status", "not_ready")
	s.want(s.call("", http.MethodGet, "/healthz", ""), 200)
	exec(fmt.Sprintf(`alter database %q allow_connections true`, name))
	eventually(t, "the server is well again", func() bool {
		return s.submit("clerk", "consulta.matricula", `{"estudiante_id":"2023-114"}`).status == 200
	})
	s.verify()
}

// TestAToolThatFailsTellsNothing breaks the institution's own database: the
// caller hears INTERNAL_ERROR and nothing of why, the auditor finds the cause.
func TestAToolThatFailsTellsNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		s.onInstitution(func(db *sql.DB) {
			if _, err := db.ExecContext(s.t.Context(), "drop view v_matricula"); err != nil {
				s.t.Fatal(err)
			}
		})
		r := s.submit("requester", "consulta.matricula", `{"estudiante_id":"2023-114"}`)
		s.standardError(r, "broken view", 500, "INTERNAL_ERROR")
		for name, values := range r.header {
			r.raw += name + strings.Join(values, " ")
		}
		for _, inner := range []string{"v_matricula", "SQL", "sql", "relation", "no such table", s.dir, "goroutine", ".go:"} {
			if strings.Contains(r.raw, inner) {
				s.t.Errorf("%q leaks: %s", inner, r.raw)
			}
		}
		rec := s.want(s.call("auditor", http.MethodGet, "/api/v1/audit/executions/"+r.str("execution_id"), ""), 200)
		if !strings.Contains(rec.raw, "v_matricula") || !strings.Contains(rec.raw, "tool.failed") {
			s.t.Errorf("the auditor does not find the cause: %s", rec.raw)
		}
	})
}

// effects counts the grants of a test in the institution's table: a query of
// the database itself, not of the server.
func (s *server) effects() int {
	s.t.Helper()
	var n int
	s.onInstitution(func(db *sql.DB) {
		if err := db.QueryRowContext(s.t.Context(), "select count(*) from becas where motivo = 'ronda'").Scan(&n); err != nil {
			s.t.Fatal(err)
		}
	})
	return n
}

// onInstitution opens the institution's database beside the server.
func (s *server) onInstitution(f func(db *sql.DB)) {
	s.t.Helper()
	driver, dsn := "sqlite", filepath.Join(s.dir, "institution.db")
	for _, v := range s.env {
		if url, ok := strings.CutPrefix(v, "ANUENCIA_DATABASE_URL="); ok {
			driver, dsn = "pgx", url+"&search_path=institution"
			if !strings.Contains(url, "?") {
				dsn = url + "?search_path=institution"
			}
		}
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	f(db)
}

// TestLiveEventsFromAnotherReplica follows an execution at one process while it
// is decided at another, and goes on after Last-Event-ID.
func TestLiveEventsFromAnotherReplica(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one := start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+url)
	two := start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+url) // its demo tokens are new ones of the same people
	r := one.want(one.submit("clerk", "nota.modificar", nota), 202)
	path := "/api/v1/executions/" + r.str("execution_id") + "/events"
	live := make(chan reply, 1)
	go func() {
		got, err := two.try("clerk", http.MethodGet, path, "", header{"Accept", "text/event-stream"}, header{"Last-Event-ID", "3"})
		if err != nil {
			t.Error(err)
		}
		live <- got
	}()
	one.want(one.decide("approver", "aprobar", r.str("approval_id"), "sí"), 200, "status", "completed")
	got := <-live
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("status %d, headers %v", got.status, got.header)
	}
	all := one.want(one.call("clerk", http.MethodGet, path, ""), 200)
	items, ok := all.at("items").([]any)
	if !ok || strings.Count(got.raw, "\ndata: {") != len(items)-3 || !strings.Contains(got.raw, "id: 4\n") || strings.Contains(got.raw, "id: 3\n") {
		t.Fatalf("stream of %d events: %s", len(items), got.raw)
	}
	if !strings.Contains(got.raw, "event: execution.completed\n") || strings.Contains(got.raw, `"payload":`) {
		t.Fatalf("the end is missing, or more than the actor may see: %s", got.raw)
	}
	two.standardError(two.call("requester", http.MethodGet, path, "", header{"Accept", "text/event-stream"}), "not theirs", 404, "VALIDATION_FAILED")
	two.standardError(two.call("clerk", http.MethodGet, path, "", header{"Accept", "text/event-stream"}, header{"Last-Event-ID", "x"}), "bad id", 422, "VALIDATION_FAILED")
}

// TestTheBrakeHoldsOnAllReplicas: placed at one, it stops the other at once; the
// one who placed it does not take it off.
func TestTheBrakeHoldsOnAllReplicas(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	one := start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+url)
	two := start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+url)
	h := one.want(one.call("admin", http.MethodPost, "/api/v1/admin/holds", `{"intent":"nota.modificar","reason":"actas en revisión"}`), 201)
	two.want(two.submit("clerk", "nota.modificar", nota), 403, "error.code", "POLICY_DENIED", "error.details.policy_id", "hold")
	two.want(two.submit("clerk", "consulta.matricula", `{"estudiante_id":"2023-114"}`), 200)
	lift := "/api/v1/admin/holds/" + h.str("hold_id") + "/lift"
	two.want(two.call("admin", http.MethodPost, lift, `{"reason":"listo"}`), 403, "error.details.policy_id", "approval.four_eyes")
	two.want(two.call("approver", http.MethodPost, lift, `{"reason":"listo"}`), 403, "error.details.policy_id", "scope")
	if out, err := two.run("hold", "lift", "--data", two.dir, "--as", "api:approver2", "--reason", "listo", h.str("hold_id")); err != nil {
		t.Fatalf("lift: %v %s", err, out)
	}
	one.want(one.submit("clerk", "nota.modificar", nota), 202)
	one.verify()
}
