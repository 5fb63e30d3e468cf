package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func stablePages(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	var want []anuencia.ExecutionID
	for range 11 {
		want = append(want, create(t, s, Execution()).ID)
	}
	slices.Reverse(want)
	var got []anuencia.ExecutionID
	page := harness.Page{Before: "", Limit: 3}
	for {
		list, err := s.Executions(t.Context(), harness.ExecutionFilter{Page: page})
		must(t, err)
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			got = append(got, e.ID)
		}
		page.Before = got[len(got)-1].String()
		create(t, s, Execution()) // what is new does not shift the pages
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	events, err := s.AuditEvents(t.Context(), harness.AuditFilter{Page: harness.Page{Before: "", Limit: 5}})
	must(t, err)
	next, err := s.AuditEvents(t.Context(), harness.AuditFilter{Page: harness.Page{Before: events[4].ID.String(), Limit: 5}})
	must(t, err)
	if len(next) != 5 || next[0].ID.String() >= events[4].ID.String() {
		t.Errorf("audit pages overlap")
	}
}

func filters(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := Execution()
	e.Intent, e.SubjectRef, e.Channel, e.Risk, e.State = "nota.cambiar", "S-1", anuencia.ChannelN8N, anuencia.RiskCritical, anuencia.StateFailed
	e.CreatedAt = Instant.Add(time.Hour)
	e.Outcome.Fault = anuencia.Denied("x")
	mine := create(t, s, e)
	other := create(t, s, Execution())
	for name, f := range map[string]harness.ExecutionFilter{
		"actor": {Actor: mine.Actor.ID}, "state": {State: anuencia.StateFailed}, "intent": {Intent: "nota.cambiar"},
		"subject": {Subject: "S-1"}, "channel": {Channel: anuencia.ChannelN8N}, "risk": {Risk: anuencia.RiskCritical},
		"code": {Code: anuencia.CodePolicyDenied}, "from": {From: Instant.Add(time.Hour)},
		"from and to": {From: Instant.Add(time.Minute), To: Instant.Add(time.Hour + time.Microsecond)},
	} {
		list, err := s.Executions(t.Context(), f)
		must(t, err)
		if len(list) != 1 || list[0].ID != mine.ID {
			t.Errorf("%s: %d executions", name, len(list))
		}
	}
	list, err := s.Executions(t.Context(), harness.ExecutionFilter{To: Instant.Add(time.Hour)})
	must(t, err)
	if len(list) != 1 || list[0].ID != other.ID {
		t.Errorf("to is exclusive: %d", len(list))
	}
	for name, f := range map[string]harness.AuditFilter{
		"execution": {ExecutionID: mine.ID}, "actor": {Actor: mine.Actor.ID}, "principal": {Principal: mine.PrincipalID},
		"channel": {Channel: anuencia.ChannelN8N}, "subject": {Subject: "S-1"},
	} {
		list, err := s.AuditEvents(t.Context(), f)
		must(t, err)
		if len(list) != 2 || list[0].ExecutionID != mine.ID {
			t.Errorf("audit by %s: %d", name, len(list))
		}
	}
	byType, err := s.AuditEvents(t.Context(), harness.AuditFilter{Type: anuencia.EventReceived, From: Instant, To: Instant.Add(time.Microsecond)})
	must(t, err)
	byCode, err := s.AuditEvents(t.Context(), harness.AuditFilter{Code: anuencia.CodeTimeout})
	must(t, err)
	if len(byType) != 2 || len(byCode) != 0 {
		t.Errorf("by type %d, by code %d", len(byType), len(byCode))
	}
	a, _ := await(t, s)
	for name, f := range map[string]struct {
		f    harness.ApprovalFilter
		want int
	}{
		"pending":     {harness.ApprovalFilter{Status: anuencia.ApprovalPending}, 1},
		"approved":    {harness.ApprovalFilter{Status: anuencia.ApprovalApproved}, 0},
		"intent":      {harness.ApprovalFilter{Intent: a.Intent}, 1},
		"role":        {harness.ApprovalFilter{Roles: []string{"rector", "nadie"}}, 1},
		"wrong role":  {harness.ApprovalFilter{Roles: []string{"rect%", "_ector"}}, 0},
		"all of them": {harness.ApprovalFilter{Page: harness.Page{Before: "", Limit: 10}}, 1},
	} {
		list, err := s.Approvals(t.Context(), f.f)
		must(t, err)
		if len(list) != f.want {
			t.Errorf("approvals by %s: %d, want %d", name, len(list), f.want)
		}
	}
}

func unsettledAndLate(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	running := create(t, s, Execution()) // lease ends a minute after Instant
	e := Execution()
	e.State, e.LeaseUntil = anuencia.StateApproved, time.Time{}
	approved := create(t, s, e)
	e = Execution()
	e.State = anuencia.StateCompleted
	create(t, s, e)
	a, _ := await(t, s)
	for at, want := range map[time.Duration][]anuencia.ExecutionID{
		time.Minute - time.Microsecond: {approved.ID},
		time.Minute:                    {running.ID, approved.ID},
	} {
		list, err := s.Unsettled(t.Context(), Instant.Add(at), 10)
		must(t, err)
		var got []anuencia.ExecutionID
		for _, e := range list {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("unsettled after %s: %v, want %v", at, got, want)
		}
	}
	for at, want := range map[time.Duration]int{72*time.Hour - time.Microsecond: 0, 72 * time.Hour: 1} {
		ids, err := s.LateApprovals(t.Context(), Instant.Add(at), 10)
		must(t, err)
		if len(ids) != want || want == 1 && ids[0] != a.ID {
			t.Errorf("late after %s: %v", at, ids)
		}
	}
}

func streamsAndHeads(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	want := map[anuencia.StreamID]bool{}
	heads := map[anuencia.ExecutionID]anuencia.Head{}
	for range 5 {
		e := create(t, s, Execution())
		want[anuencia.StreamOf(e.ID)], heads[e.ID] = true, e.Head
	}
	ghost := Event(Execution(), anuencia.EventFailed)
	ghost.StreamID = anuencia.StreamID{}
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.Record(ctx, ghost) }))
	want[anuencia.StreamID(ghost.ID)] = true
	var after anuencia.StreamID
	n := 0
	for {
		ids, err := s.Streams(t.Context(), after, 2)
		must(t, err)
		if len(ids) == 0 {
			break
		}
		for _, id := range ids {
			if n++; !want[id] {
				t.Errorf("stream %s is not ours", id)
			}
			verifyStream(t, s, id, nil)
		}
		after = ids[len(ids)-1]
	}
	if n != len(want) {
		t.Errorf("%d streams, want %d", n, len(want))
	}
	var last anuencia.ExecutionID
	for {
		list, err := s.Heads(t.Context(), last, 2)
		must(t, err)
		if len(list) == 0 {
			break
		}
		for _, h := range list {
			if heads[h.ID] != h.Head {
				t.Errorf("head of %s: %v", h.ID, h.Head)
			}
			delete(heads, h.ID)
		}
		last = list[len(list)-1].ID
	}
	if len(heads) != 0 {
		t.Errorf("%d heads missing", len(heads))
	}
}

func principalsAndPeople(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	type both struct {
		principal anuencia.PrincipalID
		person    anuencia.PersonID
	}
	got := make(chan both, 10)
	for range 10 {
		go func() {
			var b both
			var err error
			if b.principal, err = s.EnsurePrincipal(t.Context(), "portal"); err != nil {
				t.Errorf("principal: %v", err)
			}
			if b.person, err = s.EnsurePerson(t.Context(), "E-1"); err != nil {
				t.Errorf("person: %v", err)
			}
			got <- b
		}()
	}
	first := <-got
	for range 9 {
		if b := <-got; b != first {
			t.Errorf("two ids for one name: %v and %v", b, first)
		}
	}
	another, err := s.EnsurePerson(t.Context(), "E-2")
	must(t, err)
	if another == first.person || another.UUID().Version() != 4 || first.principal.IsZero() {
		t.Errorf("ids %v %v", another, first)
	}
}

func oldKeysGo(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := Execution()
	ev := Event(e, anuencia.EventReceived)
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		if _, err := tx.PutExecution(ctx, e, ev); err != nil {
			return err
		}
		for i, at := range []time.Time{Instant, Instant.Add(time.Hour)} {
			k := harness.IdempotencyKey{Principal: e.PrincipalID, Key: number(i), Digest: [32]byte{}, ExecutionID: e.ID, CreatedAt: at}
			if err := tx.BindKey(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}))
	n, err := s.DropKeys(t.Context(), Instant.Add(time.Minute))
	must(t, err)
	_, old, err1 := s.Key(t.Context(), e.PrincipalID, "0")
	_, young, err2 := s.Key(t.Context(), e.PrincipalID, "1")
	must(t, err1)
	must(t, err2)
	if n != 1 || old || !young {
		t.Errorf("dropped %d, old %v, young %v", n, old, young)
	}
}
