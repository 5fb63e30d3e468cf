package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func executionRoundTrip(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := create(t, s, Execution())
	if e.Version != 1 || e.Head.Seq != 2 {
		t.Fatalf("version %d, head %d after a create with two events", e.Version, e.Head.Seq)
	}
	got, err := s.Execution(t.Context(), e.ID)
	must(t, err)
	if !reflect.DeepEqual(got, e) {
		equal(t, "after create", got, e)
	}
	fault := anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool).WithDetails(anuencia.Details{
		RiskLevel: anuencia.RiskHigh, PolicyID: "p", NextAction: "n", Fields: []anuencia.FieldError{{Path: "/a", Rule: "type"}},
		RetryAfterMS: 5, Limit: 6, Window: "1m", MaxBytes: 7, Supported: []string{"es", "en"},
	})
	e.State, e.FinishedAt, e.UpdatedAt, e.LeaseUntil = anuencia.StateIncomplete, Instant.Add(time.Microsecond), Instant.Add(time.Second), time.Time{}
	e.Reasons, e.Risk, e.Attempt = nil, anuencia.RiskCritical, 3
	e.ApprovalID = newID[anuencia.ApprovalID]()
	e.Outcome = anuencia.Outcome{
		Result:   `{"a":"<b>&","n":1e3}`,
		Sources:  []anuencia.Source{{Type: "document", ID: "d", Ref: "p. 3", Hash: "ff"}},
		Warnings: []anuencia.Warning{{Code: "w", Severity: anuencia.SeverityInfo}}, Fault: fault,
	}
	ev := Event(e, anuencia.EventIncomplete)
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		var err error
		e, err = tx.PutExecution(ctx, e, ev)
		return err
	}))
	got, err = s.ExecutionByCode(t.Context(), e.ShortCode)
	must(t, err)
	if !reflect.DeepEqual(got, e) {
		equal(t, "after the outcome", got, e)
		t.Errorf("not equal after the outcome")
	}
	verify(t, s, e)
	kept, err := s.AuditEvent(t.Context(), ev.ID)
	must(t, err)
	want := ev
	want.Payload = nil
	if !reflect.DeepEqual(kept.AuditEvent, want) {
		equal(t, "event", kept.AuditEvent, want)
	}
}

func approvalRoundTrip(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	a, e := await(t, s)
	got, err := s.Approval(t.Context(), a.ID)
	must(t, err)
	if !reflect.DeepEqual(got, a) {
		equal(t, "after create", got, a)
	}
	decided := Event(e, anuencia.EventApprovalDecided)
	d := anuencia.ApprovalDecision{
		ID: decided.ID, Approver: newID[anuencia.PersonID](), ApproverName: "Ana", Handle: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "approver"}, Roles: []string{"decano"},
		Verdict: anuencia.Approve, Reason: "conforme", SubjectHash: a.SubjectHash, Channel: anuencia.ChannelAPI,
		PrincipalID: newID[anuencia.PrincipalID](), At: Instant.Add(time.Minute),
	}
	next, result, err := a.Decide(d)
	must(t, err)
	if result != anuencia.DecisionRecorded {
		t.Fatalf("result %s", result)
	}
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		locked, err := tx.LockApproval(ctx, a.ID)
		if err != nil {
			return err
		}
		fresh, err := tx.Execution(ctx, locked.ExecutionID)
		if err != nil {
			return err
		}
		a, e, err = tx.PutApproval(ctx, next, fresh, decided)
		return err
	}))
	got, err = s.ApprovalByCode(t.Context(), a.ShortCode)
	must(t, err)
	if !reflect.DeepEqual(got, a) || len(got.Decisions) != 1 {
		equal(t, "after a decision", got, a)
	}
	of, err := s.ApprovalsOf(t.Context(), e.ID)
	must(t, err)
	equal(t, "approvals of the execution", of, []anuencia.Approval{a})
	verify(t, s, e)
}

func artifactRoundTrip(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	e := Execution()
	first := Event(e, anuencia.EventReceived)
	files := []anuencia.Artifact{}
	for _, name := range []string{"b.pdf", "a.md"} {
		content := []byte("x\x00" + name)
		files = append(files, anuencia.Artifact{
			ID: newID[anuencia.ArtifactID](), ExecutionID: e.ID, Filename: name, MediaType: "text/plain", Content: content,
			SHA256: sha256.Sum256(content), CreatedAt: Instant,
		})
	}
	must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		if _, err := tx.PutExecution(ctx, e, first); err != nil {
			return err
		}
		return errors.Join(tx.PutArtifact(ctx, files[0]), tx.PutArtifact(ctx, files[1]))
	}))
	list, err := s.Artifacts(t.Context(), e.ID)
	must(t, err)
	if len(list) != 2 || list[0].Filename != "a.md" || list[0].Content != nil || list[0].SHA256 != files[1].SHA256 {
		t.Errorf("list: %+v", list)
	}
	one, err := s.Artifact(t.Context(), e.ID, "b.pdf")
	must(t, err)
	if !bytes.Equal(one.Content, files[0].Content) || !reflect.DeepEqual(one, files[0]) {
		t.Errorf("got %+v", one)
	}
}

func tokenRoundTrip(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	owner, err := s.EnsurePrincipal(t.Context(), "portal")
	must(t, err)
	id := newID[anuencia.TokenID]()
	tok := anuencia.Token{
		ID: id, Principal: anuencia.Principal{
			ID: owner, Name: "portal", TokenID: id, Person: anuencia.Handle{Channel: anuencia.ChannelUI, ExternalID: "x"},
			Scopes: []anuencia.Scope{anuencia.ScopeSubmit}, Channels: []anuencia.Channel{anuencia.ChannelAPI},
			ActFor: []string{"alumno"}, ExpiresAt: Instant.Add(time.Hour),
		},
		Hash: sha256.Sum256([]byte("secret")), CreatedAt: Instant, CreatedBy: "cli", RevokedAt: time.Time{},
	}
	put := func() {
		t.Helper()
		ev := systemEvent(1)
		ev.Type = anuencia.EventTokenCreated
		must(t, s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error { return tx.PutToken(ctx, tok, ev) }))
		got, ok, err := s.TokenByHash(t.Context(), tok.Hash)
		must(t, err)
		if !ok || !reflect.DeepEqual(got, tok) {
			equal(t, "token", got, tok)
		}
	}
	put()
	tok.RevokedAt = Instant.Add(time.Minute)
	put()
	if _, ok, err := s.TokenByHash(t.Context(), [32]byte{1}); ok || err != nil {
		t.Errorf("an unknown hash: %v, %v", ok, err)
	}
	list, err := s.Tokens(t.Context(), harness.Page{Limit: 10})
	must(t, err)
	equal(t, "tokens", list, []anuencia.Token{tok})
	verifyStream(t, s, s.SystemStream(), nil)
}

func notFound(t *testing.T, open Opener) {
	t.Helper()
	s := open(t, Options())
	ctx := t.Context()
	_, err1 := s.Execution(ctx, newID[anuencia.ExecutionID]())
	_, err2 := s.ExecutionByCode(ctx, "ZZZZZZZZ")
	_, err3 := s.Approval(ctx, newID[anuencia.ApprovalID]())
	_, err4 := s.ApprovalByCode(ctx, "ZZZZZZZZ")
	_, err5 := s.AuditEvent(ctx, newID[anuencia.EventID]())
	_, err6 := s.Artifact(ctx, newID[anuencia.ExecutionID](), "a")
	_, err7 := s.Token(ctx, newID[anuencia.TokenID]())
	err8 := s.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.LockApproval(ctx, newID[anuencia.ApprovalID]())
		return err
	})
	err9 := s.Atomically(ctx, func(ctx context.Context, tx harness.Tx) error {
		_, err := tx.Execution(ctx, newID[anuencia.ExecutionID]())
		return err
	})
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7, err8, err9} {
		if !errors.Is(err, anuencia.NotFound()) {
			t.Errorf("read %d: %v", i+1, err)
		}
	}
	must(t, s.Ping(ctx))
}
