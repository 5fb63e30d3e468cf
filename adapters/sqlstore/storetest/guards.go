package storetest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func refusalCommits(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	ghost := Execution() // its id has a chain and no row
	received, failed := Event(ghost, anuencia.EventReceived), Event(ghost, anuencia.EventFailed)
	failed.ErrorCode = anuencia.CodePolicyDenied
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		return tx.Record(ctx, received, failed)
	}))
	rows, err := s.Stream(t.Context(), anuencia.StreamOf(ghost.ID))
	must(t, err)
	if len(rows) != 2 || rows[1].ErrorCode != anuencia.CodePolicyDenied {
		t.Errorf("rows: %+v", rows)
	}
	verifyStream(t, s, anuencia.StreamOf(ghost.ID), nil)
	if _, err := s.Execution(t.Context(), ghost.ID); !errors.Is(err, anuencia.NotFound()) {
		t.Errorf("a refused request has a row: %v", err)
	}
}

// jobTable is a queue of one table, for the store's Enqueue.
func jobTable(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	_, err := s.DB().ExecContext(t.Context(), "create table jobs_seen (id text not null)")
	must(t, err)
}

func enqueue(ctx context.Context, tx *sql.Tx, job harness.Job) error {
	_, err := tx.ExecContext(ctx, "insert into jobs_seen (id) values ('"+job.ID+"')") //nolint:gosec // an id of this test
	return err
}

func jobsSeen(t *testing.T, s *sqlstore.Store) int {
	t.Helper()
	var n int
	must(t, s.DB().QueryRowContext(t.Context(), "select count(*) from jobs_seen").Scan(&n))
	return n
}

func failureKeepsNothing(t *testing.T, open Opener) {
	t.Helper()
	o := Options()
	o.Enqueue = enqueue
	s := open(t, o)
	jobTable(t, s)
	boom := errors.New("boom")
	unit := func(fail error) (anuencia.Execution, error) {
		e := Execution()
		ev, sys := Event(e, anuencia.EventReceived), systemEvent(1)
		return e, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
			_, err := tx.PutExecution(ctx, e, ev)
			key := harness.IdempotencyKey{Principal: e.PrincipalID, Key: "k", Digest: [32]byte{1}, ExecutionID: e.ID, CreatedAt: Instant}
			job := harness.Job{Kind: harness.JobResume, ID: e.ID.String(), RunAt: time.Time{}}
			return errors.Join(err, tx.BindKey(ctx, key), tx.Enqueue(ctx, job), tx.RecordSystem(ctx, sys), fail)
		})
	}
	e, err := unit(boom)
	if !errors.Is(err, boom) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Execution(t.Context(), e.ID); !errors.Is(err, anuencia.NotFound()) {
		t.Errorf("the execution stayed: %v", err)
	}
	if _, ok, err := s.Key(t.Context(), e.PrincipalID, "k"); ok || err != nil {
		t.Errorf("the key stayed: %v, %v", ok, err)
	}
	if n := jobsSeen(t, s); n != 0 {
		t.Errorf("%d jobs stayed", n)
	}
	e, err = unit(nil)
	must(t, err)
	if _, ok, err := s.Key(t.Context(), e.PrincipalID, "k"); !ok || err != nil || jobsSeen(t, s) != 1 {
		t.Errorf("the good unit: key %v, %v, jobs %d", ok, err, jobsSeen(t, s))
	}
	rows, err := s.Stream(t.Context(), s.SystemStream())
	must(t, err)
	if len(rows) != 1 {
		t.Errorf("the system chain has %d rows", len(rows))
	}
	verifyStream(t, s, s.SystemStream(), nil)
}

func staleVersion(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	old := create(t, s, Execution())
	put := func(e anuencia.Execution) error {
		ev := Event(e, anuencia.EventToolCompleted)
		return s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
			_, err := tx.PutExecution(ctx, e, ev)
			return err
		})
	}
	must(t, put(old))
	if err := put(old); !errors.Is(err, harness.ErrConflict) {
		t.Errorf("an old version gave %v", err)
	}
	twin := Execution()
	twin.ID = old.ID
	if err := put(twin); !errors.Is(err, harness.ErrConflict) {
		t.Errorf("another execution of the same id gave %v", err)
	}
	rows, err := s.Stream(t.Context(), anuencia.StreamOf(old.ID))
	must(t, err)
	if len(rows) != 3 {
		t.Errorf("%d events, want 3: a lost unit left some", len(rows))
	}
}

func fiftyDeciders(t *testing.T, open Opener) {
	t.Helper()
	o := Options()
	o.Enqueue = enqueue
	s := open(t, o)
	jobTable(t, s)
	a, e := await(t, s)
	var outcomes, late atomic.Int64
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			ev := Event(e, anuencia.EventApprovalDecided)
			d := anuencia.ApprovalDecision{
				ID: ev.ID, Approver: newID[anuencia.PersonID](), ApproverName: number(i), Roles: []string{"decano"},
				Verdict: anuencia.Approve, Reason: "sí", SubjectHash: a.SubjectHash, Channel: anuencia.ChannelAPI,
				PrincipalID: e.PrincipalID, At: Instant.Add(time.Minute),
			}
			if i%5 == 4 {
				d.Verdict = anuencia.Reject
			}
			var result anuencia.DecideResult
			var fault error
			err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
				result, fault = "", nil
				locked, err := tx.LockApproval(ctx, a.ID)
				if err != nil {
					return err
				}
				cur, err := tx.Execution(ctx, e.ID)
				if err != nil {
					return err
				}
				var next anuencia.Approval
				next, result, fault = locked.Decide(d)
				switch result {
				case anuencia.DecisionRecorded:
				case anuencia.DecisionApproved:
					if cur, err = cur.Approved(d.At); err != nil {
						return err
					}
					if err := tx.Enqueue(ctx, harness.Job{Kind: harness.JobResume, ID: e.ID.String(), RunAt: time.Time{}}); err != nil {
						return err
					}
				case anuencia.DecisionRejected:
					if cur, err = cur.Fail(anuencia.NewFault(anuencia.CodeApprovalRejected, anuencia.ReasonRejected), d.At); err != nil {
						return err
					}
				case anuencia.DecisionRepeated, anuencia.DecisionExpired:
					return errors.New("nobody repeats and nobody is late")
				default:
					return nil // refused: the end came before
				}
				_, _, err = tx.PutApproval(ctx, next, cur, ev)
				return err
			})
			switch {
			case err != nil:
				t.Errorf("decider %d: %v", i, err)
			case fault != nil:
				late.Add(1)
			case result == anuencia.DecisionApproved || result == anuencia.DecisionRejected:
				outcomes.Add(1)
			}
		})
	}
	all.Wait()
	end, err := s.Approval(t.Context(), a.ID)
	must(t, err)
	kept, err := s.Execution(t.Context(), e.ID)
	must(t, err)
	if outcomes.Load() != 1 || end.Status == anuencia.ApprovalPending {
		t.Errorf("%d outcomes, status %s", outcomes.Load(), end.Status)
	}
	if want := map[anuencia.ApprovalStatus]int{anuencia.ApprovalApproved: 1}[end.Status]; jobsSeen(t, s) != want {
		t.Errorf("%d jobs after %s", jobsSeen(t, s), end.Status)
	}
	if int(late.Load())+len(end.Decisions) != 50 {
		t.Errorf("%d late and %d decisions of 50", late.Load(), len(end.Decisions))
	}
	verifyStream(t, s, anuencia.StreamOf(e.ID), &kept.Head)
}

func keyRace(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	principal := newID[anuencia.PrincipalID]()
	var mu sync.Mutex
	made, answered := 0, map[anuencia.ExecutionID]int{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			e := Execution()
			ev := Event(e, anuencia.EventReceived)
			var found bool
			var answer anuencia.ExecutionID
			err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
				k, ok, err := tx.Key(ctx, principal, "the key")
				if err != nil {
					return err
				}
				if found = ok; found {
					answer = k.ExecutionID
					return nil
				}
				answer = e.ID
				_, err = tx.PutExecution(ctx, e, ev)
				key := harness.IdempotencyKey{Principal: principal, Key: "the key", Digest: [32]byte{9}, ExecutionID: e.ID, CreatedAt: Instant}
				return errors.Join(err, tx.BindKey(ctx, key))
			})
			if err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if answered[answer]++; !found {
				made++
			}
		})
	}
	all.Wait()
	list, err := s.Executions(t.Context(), harness.ExecutionFilter{Page: harness.Page{Limit: 50}})
	must(t, err)
	if made != 1 || len(answered) != 1 || len(list) != 1 {
		t.Errorf("%d made, %d answers, %d rows", made, len(answered), len(list))
	}
	k, ok, err := s.Key(t.Context(), principal, "the key")
	must(t, err)
	if !ok || k.ExecutionID != list[0].ID || k.Digest != [32]byte{9} || !k.CreatedAt.Equal(Instant) {
		t.Errorf("key: %+v", k)
	}
}

func appendOnly(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	_, e := await(t, s)
	done := Execution()
	done.State = anuencia.StateCompleted
	done = create(t, s, done)
	try := func(query, says string) {
		t.Helper()
		_, err := s.DB().ExecContext(t.Context(), query)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, table := range []string{"audit_events", "executions", "approvals", "approval_roles"} {
		try("delete from "+table, "append-only")
	}
	try("update audit_events set payload = null", "append-only")
	try("update audit_events set event_type = 'x' where seq = 1", "append-only")
	try("update executions set state = 'running' where id = '"+done.ID.String()+"'", "terminal state never changes")
	if s.SQLite() {
		try("insert or replace into audit_events select * from audit_events limit 1", "append-only")
		try("replace into executions select * from executions where id = '"+done.ID.String()+"'", "append-only")
	} else {
		try("truncate audit_events", "append-only")
		try("truncate executions cascade", "append-only")
	}
	ev := Event(done, anuencia.EventCompleted)
	done.State = anuencia.StateRunning
	err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.PutExecution(ctx, done, ev)
		return err
	})
	if err == nil || errors.Is(err, harness.ErrConflict) {
		t.Errorf("a terminal state changed, or was taken for a conflict: %v", err)
	}
	verify(t, s, e)
}
