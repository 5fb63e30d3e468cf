package rest_test

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func id[I ~[16]byte](n byte) I {
	return I(uuid.UUID{0x01, 0x9a, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, n})
}

func at(minute int) time.Time { return time.Date(2026, 3, 2, 15, minute, 0, 123000, time.UTC) }

// fake is the use cases with fixed answers. err, when set, is what each gives.
type fake struct {
	mu       sync.Mutex
	err      error
	answer   harness.Answer
	approval harness.ApprovalView
	notReady bool

	request harness.Request
	sub     harness.Submission
	decided harness.DecideCommand
	listed  harness.ExecutionFilter
	audited harness.AuditFilter
	token   harness.NewToken
	refused []*anuencia.Fault
	abouts  []map[string]any
}

func newFake() *fake {
	return &fake{answer: harness.Answer{Execution: completed(), Ran: true, Submitted: true}, approval: approvalView()}
}

func completed() anuencia.Execution {
	return anuencia.Execution{
		ID: id[anuencia.ExecutionID](1), ShortCode: "ABCDEFGH", State: anuencia.StateCompleted, Intent: "nota.modificar", Agent: "directo",
		Input: `{"nota":18}`, Channel: anuencia.ChannelAPI, Actor: clerk(), PrincipalID: id[anuencia.PrincipalID](4), SubjectRef: "2023-114",
		Risk: anuencia.RiskHigh, PolicyID: "intent.offered", PolicyRevision: "rev1", Reasons: []string{"risk.base"},
		ApprovalID: id[anuencia.ApprovalID](3), AuditRef: id[anuencia.EventID](2), CreatedAt: at(0), UpdatedAt: at(1), FinishedAt: at(1), Attempt: 1,
		Step: anuencia.Step{Agent: "directo", Tool: "nota.cambiar", ToolDigest: audit.Digest("t"), Arguments: `{"nota":18}`, Before: `{"nota":12}`},
		Outcome: anuencia.Outcome{
			Result: `{"antes":12,"después":18}`, Sources: []anuencia.Source{{Type: "sql_action", ID: "nota", Ref: "nota"}},
			Warnings: []anuencia.Warning{{Code: "partial_result", Severity: anuencia.SeverityInfo}},
		},
	}
}

func waiting() anuencia.Execution {
	e := completed()
	e.State, e.Outcome, e.FinishedAt = anuencia.StateWaiting, anuencia.Outcome{}, time.Time{}
	return e
}

func failed(f *anuencia.Fault) anuencia.Execution {
	e := completed()
	e.State, e.Outcome = anuencia.StateFailed, anuencia.Outcome{Fault: f}
	return e
}

func clerk() anuencia.Actor {
	return anuencia.Actor{Person: anuencia.Person{
		ID: id[anuencia.PersonID](5), DisplayName: "Rosa Q.", Roles: []string{"registro"}, Institutional: true,
	}}
}

func approvalView() harness.ApprovalView {
	subject := `{"arguments":{"curso":"Error de suma 🎓","nota":18},"before":{"nota":12},"v":1}`
	return harness.ApprovalView{
		Approval: anuencia.Approval{
			ID: id[anuencia.ApprovalID](3), ShortCode: "ABCDEFG1", ExecutionID: id[anuencia.ExecutionID](1), Status: anuencia.ApprovalPending,
			Subject: subject, SubjectHash: audit.Digest(subject), Intent: "nota.modificar", Risk: anuencia.RiskHigh, PolicyID: "intent.offered",
			Reasons: []string{"risk.base"}, Requester: id[anuencia.PersonID](5), CreatedAt: at(0), ExpiresAt: at(59),
			Requirement: anuencia.Requirement{
				Stages: []anuencia.Stage{{Roles: []string{"approver"}, Quorum: 2}}, Channels: []anuencia.Channel{anuencia.ChannelAPI},
			},
			Decisions: []anuencia.ApprovalDecision{{
				Approver: id[anuencia.PersonID](6), ApproverName: "Ana", Verdict: anuencia.Approve, Reason: "de acuerdo", SubjectHash: audit.Digest(subject),
				Channel: anuencia.ChannelTelegram, At: at(2),
			}},
		},
		Execution: waiting(), Missing: 1,
		Intent: anuencia.Intent{Name: "nota.modificar", Title: anuencia.Text{"es": "Modificar una nota", "en": "Change a grade"}},
	}
}

func sealed() anuencia.SealedEvent {
	return anuencia.SealedEvent{
		AuditEvent: anuencia.AuditEvent{
			ID: id[anuencia.EventID](2), StreamID: id[anuencia.StreamID](1), ExecutionID: id[anuencia.ExecutionID](1), Type: anuencia.EventReceived,
			OccurredAt: at(0), ActorID: id[anuencia.PersonID](5), PrincipalID: id[anuencia.PrincipalID](4), Channel: anuencia.ChannelAPI,
			SubjectRef: "2023-114", PolicyRevision: "rev1", TraceID: "0af7651916cd43dd8448eb211c80319c",
		},
		Seq: 1, PayloadText: `{"input":{"nota":18}}`, Salt: []byte{1, 2}, Hash: [32]byte{9},
	}
}

func file() anuencia.Artifact {
	return anuencia.Artifact{
		ID: id[anuencia.ArtifactID](7), ExecutionID: id[anuencia.ExecutionID](1), Filename: "constancia ñ.md", MediaType: "text/markdown; charset=utf-8",
		Content: []byte("# Constancia"), SHA256: [32]byte{1}, CreatedAt: at(1),
	}
}

func storedToken() anuencia.Token {
	return anuencia.Token{
		ID: id[anuencia.TokenID](8), CreatedAt: at(0), CreatedBy: "admin", Hash: [32]byte{0xAB},
		Principal: anuencia.Principal{
			ID: id[anuencia.PrincipalID](4), Name: "robot", Scopes: []anuencia.Scope{anuencia.ScopeSubmit}, Channels: []anuencia.Channel{anuencia.ChannelAPI},
			Person: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "requester"}, ExpiresAt: at(30),
		},
	}
}

// Authenticate takes the names of scopes as credentials: "submit audit".
func (f *fake) Authenticate(_ context.Context, secret string) (anuencia.Principal, error) {
	p := anuencia.Principal{ID: id[anuencia.PrincipalID](4), Name: "p", Channels: []anuencia.Channel{anuencia.ChannelAPI}}
	if s := anuencia.Scope(secret); s.Valid() {
		p.Scopes = []anuencia.Scope{s}
		return p, nil
	}
	return anuencia.Principal{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonCredential)
}

func (f *fake) Refuse(_ context.Context, _ harness.Request, fault *anuencia.Fault, about map[string]any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused, f.abouts = append(f.refused, fault), append(f.abouts, about)
	return nil
}

func (f *fake) Brief(context.Context, harness.Request) bool { return false }

func (f *fake) Submit(_ context.Context, r harness.Request, s harness.Submission) (harness.Answer, error) {
	f.request, f.sub = r, s
	return f.answer, f.err
}

func (f *fake) Read(_ context.Context, r harness.Request, _ anuencia.ExecutionID) (harness.Answer, error) {
	f.request = r
	a := f.answer
	a.Ran, a.Submitted = false, false
	return a, f.err
}

func (f *fake) Cancel(ctx context.Context, r harness.Request, v anuencia.ExecutionID) (harness.Answer, error) {
	return f.Read(ctx, r, v)
}

func (f *fake) List(_ context.Context, _ harness.Request, l harness.ExecutionFilter) ([]anuencia.Execution, string, error) {
	f.listed = l
	return []anuencia.Execution{completed(), failed(anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool))}, id[anuencia.ExecutionID](1).String(), f.err
}

func (f *fake) Follow(ctx context.Context, r harness.Request, id anuencia.ExecutionID, after int64, _ time.Duration, emit func([]anuencia.SealedEvent) error) error {
	events, err := f.Events(ctx, r, id)
	if err != nil {
		return err
	}
	return emit(events[min(int(after), len(events)):])
}

func (f *fake) Events(context.Context, harness.Request, anuencia.ExecutionID) ([]anuencia.SealedEvent, error) {
	return []anuencia.SealedEvent{sealed()}, f.err
}

func (f *fake) Artifacts(context.Context, harness.Request, anuencia.ExecutionID) ([]anuencia.Artifact, error) {
	return []anuencia.Artifact{file()}, f.err
}

func (f *fake) Artifact(_ context.Context, _ harness.Request, _ anuencia.ExecutionID, name string) (anuencia.Artifact, error) {
	if name != file().Filename && f.err == nil {
		return anuencia.Artifact{}, anuencia.NotFound()
	}
	return file(), f.err
}

func (f *fake) Decide(ctx context.Context, r harness.Request, cmd harness.DecideCommand) (harness.Answer, error) {
	f.decided = cmd
	return f.Read(ctx, r, anuencia.ExecutionID{})
}

func (f *fake) Approvals(context.Context, harness.Request, harness.ApprovalFilter) ([]harness.ApprovalView, string, error) {
	return []harness.ApprovalView{f.approval}, "", f.err
}

func (f *fake) Approval(context.Context, harness.Request, string) (harness.ApprovalView, error) {
	return f.approval, f.err
}

func (f *fake) AuditEvents(_ context.Context, _ harness.Request, a harness.AuditFilter) ([]anuencia.SealedEvent, string, error) {
	f.audited = a
	system := sealed()
	system.ExecutionID, system.ActorID, system.Channel, system.ErrorCode = anuencia.ExecutionID{}, anuencia.PersonID{}, "", anuencia.CodeTimeout
	erased := sealed()
	erased.PayloadText, erased.Salt = "", nil
	return []anuencia.SealedEvent{sealed(), system, erased}, "", f.err
}

func (f *fake) AuditEvent(context.Context, harness.Request, anuencia.EventID) (anuencia.SealedEvent, error) {
	return sealed(), f.err
}

func (f *fake) Reconstruct(_ context.Context, _ harness.Request, v anuencia.ExecutionID) (harness.Reconstruction, error) {
	rec := harness.Reconstruction{Events: []anuencia.SealedEvent{sealed()}}
	if v != id[anuencia.ExecutionID](1) {
		return rec, f.err // refused before it became an execution
	}
	e := completed()
	rec.Execution = &e
	rec.Intent = &anuencia.Intent{Responsibility: anuencia.Responsibility{OwnerUnit: "a", Supervisor: "b", Appeals: "c", LegalBasis: "d"}}
	rec.Approvals = []anuencia.Approval{f.approval.Approval}
	return rec, f.err
}

func (f *fake) Intents(context.Context, harness.Request) ([]anuencia.Intent, error) {
	return []anuencia.Intent{{
		Name: "nota.modificar", Title: anuencia.Text{"es": "Modificar una nota"}, Description: anuencia.Text{"es": "Cambia una nota"},
		Risk: anuencia.RiskHigh, InputSchema: []byte(`{"type":"object"}`), Command: "nota",
	}}, f.err
}

func (f *fake) CreateToken(_ context.Context, _ harness.Request, n harness.NewToken) (string, anuencia.Token, error) {
	f.token = n
	return "anu_once", storedToken(), f.err
}

func (f *fake) Tokens(context.Context, harness.Request, harness.Page) ([]anuencia.Token, string, error) {
	return []anuencia.Token{storedToken()}, "", f.err
}

func (f *fake) PlaceHold(_ context.Context, _ harness.Request, intent, reason string) (anuencia.Hold, error) {
	return anuencia.Hold{ID: anuencia.HoldID(uuid.MustParse("01a22f7f-91a7-7b2e-b4d0-b8b8ac1829c3")), Intent: intent, Reason: reason, PlacedAt: time.Unix(0, 0).UTC()}, f.err
}

func (f *fake) LiftHold(_ context.Context, _ harness.Request, id anuencia.HoldID, reason string) (anuencia.Hold, error) {
	return anuencia.Hold{ID: id, Intent: "beca.asignar", LiftReason: reason, PlacedAt: time.Unix(0, 0).UTC(), LiftedAt: time.Unix(1, 0).UTC()}, f.err
}

func (f *fake) Holds(context.Context, harness.Request) ([]anuencia.Hold, error) {
	return []anuencia.Hold{{PlacedAt: time.Unix(0, 0).UTC()}}, f.err
}

func (f *fake) RevokeToken(context.Context, harness.Request, anuencia.TokenID) error { return f.err }

func (f *fake) Ready(context.Context) map[string]error {
	if f.notReady {
		return map[string]error{"database": errLeak}
	}
	return nil
}
