// Package storetest is what every database under the store must do. Run holds
// one of them to it.
package storetest

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Opener gives a store on a fresh, migrated database. It fills in where the
// database is and takes the rest of the options as they are.
type Opener func(t *testing.T, o sqlstore.Options) *sqlstore.Store

// Run runs the whole suite.
func Run(t *testing.T, open Opener) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Opener){
		"execution round trip":          executionRoundTrip,
		"approval round trip":           approvalRoundTrip,
		"artifact round trip":           artifactRoundTrip,
		"token round trip":              tokenRoundTrip,
		"holds":                         holds,
		"not found":                     notFound,
		"a refusal commits":             refusalCommits,
		"a failure keeps nothing":       failureKeepsNothing,
		"a stale version conflicts":     staleVersion,
		"fifty deciders, one outcome":   fiftyDeciders,
		"one key, one execution":        keyRace,
		"append-only":                   appendOnly,
		"chains without a gap":          chainsWithoutGap,
		"pages are stable":              stablePages,
		"filters":                       filters,
		"unsettled and late":            unsettledAndLate,
		"a lost commit is found":        lostCommit,
		"a lost connection is retried":  lostConnection,
		"statements of the hot path":    statementCounts,
		"a poisoned closure":            poisonedClosure,
		"no unit inside another":        nested,
		"a cancelled caller":            cancelledCaller,
		"a closed store is unavailable": closedStore,
		"streams and heads":             streamsAndHeads,
		"principals and people":         principalsAndPeople,
		"old keys go":                   oldKeysGo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// Options are those that a store needs in a test: the real clock's place is
// taken by a fixed instant.
func Options() sqlstore.Options {
	return sqlstore.Options{
		Now:   func() time.Time { return Instant },
		NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) },
	}
}

// Instant is a moment with microseconds.
//
//nolint:gochecknoglobals // a constant
var Instant = time.Date(2026, 3, 9, 14, 5, 7, 123456000, time.UTC)

//nolint:gochecknoglobals // short codes are unique for ever, in this process too
var codes atomic.Uint64

func code() string {
	n := codes.Add(1)
	return anuencia.ShortCode([5]byte{1, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) //nolint:gosec // bytes of a counter
}

func newID[T ~[16]byte]() T { return T(uuid.Must(uuid.NewV7())) }

// Event makes an event of an execution.
func Event(e anuencia.Execution, typ anuencia.EventType) anuencia.AuditEvent {
	return anuencia.AuditEvent{
		ID: newID[anuencia.EventID](), StreamID: anuencia.StreamOf(e.ID), ExecutionID: e.ID, Type: typ, OccurredAt: Instant,
		ActorID: e.Actor.ID, PrincipalID: e.PrincipalID, Channel: e.Channel, SubjectRef: e.SubjectRef, ErrorCode: "",
		PolicyRevision: "rev", TraceID: "", Payload: map[string]any{"type": string(typ), "n": 1, "palabra": "«ñandú» 👍"},
	}
}

func systemEvent(n int) anuencia.AuditEvent {
	return anuencia.AuditEvent{
		ID: newID[anuencia.EventID](), StreamID: anuencia.StreamID{}, ExecutionID: anuencia.ExecutionID{},
		Type: anuencia.EventIntakeSuppressed, OccurredAt: Instant, ActorID: anuencia.PersonID{},
		PrincipalID: anuencia.PrincipalID{}, Channel: "", SubjectRef: "", ErrorCode: "", PolicyRevision: "", TraceID: "",
		Payload: map[string]any{"n": n},
	}
}

// Execution makes a new execution with every field set; it is in no store.
func Execution() anuencia.Execution {
	id := newID[anuencia.ExecutionID]()
	return anuencia.Execution{
		ID: id, ShortCode: code(), Version: 0, Head: anuencia.Head{}, State: anuencia.StateRunning, Intent: "beca.asignar",
		Agent: "becas", Input: `{"monto":12000,"nombre":"Ñusta <&> 👍"}`, Metadata: `{"a":1}`, Channel: anuencia.ChannelAPI,
		Actor: anuencia.Actor{
			Person: anuencia.Person{
				ID: newID[anuencia.PersonID](), InstitutionID: "E-1", DisplayName: "Rosa Ñaupari", Roles: []string{"docente", "tutor"},
				Units: []string{}, Institutional: true, Suspended: false, Attributes: map[string]string{"sede": "Cusco"}, Language: "es",
			},
			Handle: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "rosa@example.edu"},
		},
		PrincipalID: newID[anuencia.PrincipalID](), OnBehalfOf: newID[anuencia.PersonID](), Behalf: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "clerk"},
		Principal: anuencia.Principal{
			ID: newID[anuencia.PrincipalID](), Name: "clerk", TokenID: newID[anuencia.TokenID](), Person: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "clerk"},
			Scopes: []anuencia.Scope{anuencia.ScopeSubmit}, Channels: []anuencia.Channel{anuencia.ChannelAPI}, ActFor: []string{"alumno"}, ExpiresAt: Instant.Add(time.Hour),
		},
		SubjectRef: "S-77",
		Risk:       anuencia.RiskHigh, PolicyID: "beca.tope", PolicyRevision: "abc", Reasons: []string{"monto"},
		ApprovalID: anuencia.ApprovalID{}, AuditRef: newID[anuencia.EventID](), TraceID: "0af7651916cd43dd8448eb211c80319c",
		Timeout: 30*time.Second + time.Nanosecond,
		Step: anuencia.Step{
			Number: 1, Agent: "becas", Tool: "beca_asignar", ToolDigest: "d1", Arguments: `{"a":1}`, Before: `{"b":null}`,
			Effect: true, Idempotent: true, Risk: anuencia.RiskHigh, Timeout: 1500 * time.Millisecond,
		},
		Attempt: 1, LeaseUntil: Instant.Add(time.Minute), Outcome: anuencia.Outcome{Result: "", Sources: nil, Warnings: nil, Fault: nil},
		CreatedAt: Instant, UpdatedAt: Instant, FinishedAt: time.Time{},
	}
}

// Approval makes a new approval of e with two stages.
func Approval(e anuencia.Execution) anuencia.Approval {
	return anuencia.Approval{
		ID: newID[anuencia.ApprovalID](), ShortCode: code(), ExecutionID: e.ID, Version: 0, Status: anuencia.ApprovalPending,
		Subject: `{"v":1}`, SubjectHash: "5e", Requirement: anuencia.Requirement{
			Stages:   []anuencia.Stage{{Roles: []string{"decano", "vicedecano"}, Quorum: 1}, {Roles: []string{"decano", "rector"}, Quorum: 1}},
			FourEyes: true, ReasonRequired: true, Channels: []anuencia.Channel{anuencia.ChannelAPI}, ExpiresIn: 72 * time.Hour,
			RemindAfter: time.Hour, EscalateAfter: 2 * time.Hour, EscalateRoles: []string{"rector"},
		},
		Intent: e.Intent, Risk: e.Risk, PolicyID: e.PolicyID, Reasons: []string{}, Requester: e.Actor.ID, OnBehalfOf: e.OnBehalfOf,
		Decisions: nil, CreatedAt: Instant, ExpiresAt: Instant.Add(72 * time.Hour), ClosedAt: time.Time{},
	}
}

// create stores a new execution with two events.
func create(t *testing.T, s *sqlstore.Store, e anuencia.Execution) anuencia.Execution {
	t.Helper()
	first, second := Event(e, anuencia.EventReceived), Event(e, anuencia.EventToolRequested)
	var out anuencia.Execution
	err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		var err error
		out, err = tx.PutExecution(ctx, e, first, second)
		return err
	})
	must(t, err)
	return out
}

// await stores a new execution that waits for a new approval.
func await(t *testing.T, s *sqlstore.Store) (anuencia.Approval, anuencia.Execution) {
	t.Helper()
	e := Execution()
	e.State, e.LeaseUntil, e.Attempt = anuencia.StateWaiting, time.Time{}, 0
	a := Approval(e)
	e.ApprovalID = a.ID
	ev := Event(e, anuencia.EventApprovalRequested)
	err := s.Atomically(t.Context(), func(ctx context.Context, tx harness.Tx) error {
		var err error
		a, e, err = tx.PutApproval(ctx, a, e, ev)
		return err
	})
	must(t, err)
	return a, e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// verify walks the chain of an execution to the head that its row remembers.
func verify(t *testing.T, s *sqlstore.Store, e anuencia.Execution) {
	t.Helper()
	kept, err := s.Execution(t.Context(), e.ID)
	must(t, err)
	if kept.Head != e.Head {
		t.Errorf("the row's head is at %d, ours at %d", kept.Head.Seq, e.Head.Seq)
	}
	verifyStream(t, s, anuencia.StreamOf(e.ID), &kept.Head)
}

func verifyStream(t *testing.T, s *sqlstore.Store, id anuencia.StreamID, head *anuencia.Head) {
	t.Helper()
	rows, err := s.Stream(t.Context(), id)
	must(t, err)
	if err := audit.VerifyStream(id, rows, head, nil); err != nil {
		t.Error(err)
	}
}

// equal compares by JSON, which shows what differs.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err1 := json.MarshalIndent(got, "", " ")
	w, err2 := json.MarshalIndent(want, "", " ")
	must(t, err1)
	must(t, err2)
	if string(g) != string(w) {
		t.Errorf("%s:\ngot  %s\nwant %s", what, g, w)
	}
}

func number(n int) string { return strconv.Itoa(n) }
