package harness

import (
	"context"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Transactor is the only way to write. Atomically runs fn in one transaction
// and commits when fn gives nil. fn may run again on a conflict or a lost
// connection, each time with fresh reads: no network, clock, channel or fresh
// id in it, and only its own Tx. Errors: the Fault that fn gave;
// INTERNAL_ERROR/unavailable when the store cannot be reached; ErrConflict when
// the retries were used up.
type Transactor interface {
	Atomically(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
}

// Tx is one unit of work. Writes are buffered and flushed when the closure
// ends: one state write with its events is one autocommit statement
// (core-data.md). A state write takes the events that speak of it, so that an
// unaudited change does not compile.
type Tx interface {
	// LockApproval reads an approval, with its decisions, under a row lock held to
	// the end. VALIDATION_FAILED/not_found.
	LockApproval(ctx context.Context, id anuencia.ApprovalID) (anuencia.Approval, error)
	// Execution reads an execution, fresh. VALIDATION_FAILED/not_found.
	Execution(ctx context.Context, id anuencia.ExecutionID) (anuencia.Execution, error)
	// PutExecution inserts e when its Version is 0, else compares and sets it.
	// It gives e with the new Version and Head. A create whose id exists with
	// the same head is a success (a retry after a lost COMMIT).
	PutExecution(ctx context.Context, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Execution, error)
	// PutApproval inserts or compares-and-sets a, and its execution with the
	// events in the execution's chain.
	PutApproval(ctx context.Context, a anuencia.Approval, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Approval, anuencia.Execution, error)
	// PutArtifact inserts a file of the execution whose PutExecution is in the same unit.
	PutArtifact(ctx context.Context, a anuencia.Artifact) error
	// BindKey ties an idempotency key to an execution created in the same unit.
	// A key that is bound already is a conflict: the closure runs again.
	BindKey(ctx context.Context, k IdempotencyKey) error
	// Key reads a bound key; false when there is none.
	Key(ctx context.Context, principal anuencia.PrincipalID, key string) (IdempotencyKey, bool, error)
	// PutToken inserts t, or sets its RevokedAt. Its event goes to the process's own stream.
	PutToken(ctx context.Context, t anuencia.Token, first anuencia.AuditEvent) error
	// PutHold inserts h, or sets how it was lifted. Its event goes to the process's
	// own stream.
	PutHold(ctx context.Context, h anuencia.Hold, first anuencia.AuditEvent) error
	// Record writes a chain of its own, from seq 1: all events share a fresh StreamID.
	Record(ctx context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error
	// RecordSystem appends to the process's own stream; StreamID is set by the store.
	RecordSystem(ctx context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error
	// Enqueue adds a durable job in this transaction.
	Enqueue(ctx context.Context, job Job) error
}

// IdempotencyKey ties a caller's key to an execution (contracts section 1).
// Digest is the SHA-256 of what must be equal in a repeat.
type IdempotencyKey struct {
	Principal   anuencia.PrincipalID
	Key         string
	Digest      [32]byte
	ExecutionID anuencia.ExecutionID
	CreatedAt   time.Time
}

// JobKind names a durable job.
type JobKind string

// The jobs.
const (
	JobResume  JobKind = "resume"  // run an approved execution; ID is the execution's, "/" and the approval's
	JobExpire  JobKind = "expire"  // close an approval that is late; ID is the approval's
	JobSweep   JobKind = "sweep"   // periodic: late approvals, approved without a job, ended leases
	JobCleanup JobKind = "cleanup" // periodic: old idempotency keys
)

// Job is durable work: ids only, the worker reads again and is idempotent.
type Job struct {
	Kind  JobKind
	ID    string
	RunAt time.Time // zero: now
}

// ExecutionStore reads executions and what belongs to them. Not found is
// VALIDATION_FAILED/not_found on each.
type ExecutionStore interface {
	Execution(ctx context.Context, id anuencia.ExecutionID) (anuencia.Execution, error)
	ExecutionByCode(ctx context.Context, code string) (anuencia.Execution, error)
	Executions(ctx context.Context, f ExecutionFilter) ([]anuencia.Execution, error)
	// Unsettled lists executions that a sweep must look at: approved, and
	// running ones whose lease has ended at that time; oldest first.
	Unsettled(ctx context.Context, at time.Time, limit int) ([]anuencia.Execution, error)
	// Artifacts lists the files of an execution without their content.
	Artifacts(ctx context.Context, id anuencia.ExecutionID) ([]anuencia.Artifact, error)
	Artifact(ctx context.Context, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error)
	// Key reads a bound idempotency key outside a transaction.
	Key(ctx context.Context, principal anuencia.PrincipalID, key string) (IdempotencyKey, bool, error)
	// DropKeys deletes keys made before that time and says how many.
	DropKeys(ctx context.Context, before time.Time) (int64, error)
}

// ApprovalStore reads approvals with their decisions.
type ApprovalStore interface {
	Approval(ctx context.Context, id anuencia.ApprovalID) (anuencia.Approval, error)
	ApprovalByCode(ctx context.Context, code string) (anuencia.Approval, error)
	ApprovalsOf(ctx context.Context, id anuencia.ExecutionID) ([]anuencia.Approval, error)
	Approvals(ctx context.Context, f ApprovalFilter) ([]anuencia.Approval, error)
	// LateApprovals lists pending approvals whose expiry has passed.
	LateApprovals(ctx context.Context, at time.Time, limit int) ([]anuencia.ApprovalID, error)
}

// AuditStore reads the audit.
type AuditStore interface {
	AuditEvent(ctx context.Context, id anuencia.EventID) (anuencia.SealedEvent, error)
	AuditEvents(ctx context.Context, f AuditFilter) ([]anuencia.SealedEvent, error)
	// Stream gives one chain in order of seq.
	Stream(ctx context.Context, id anuencia.StreamID) ([]anuencia.SealedEvent, error)
}

// TokenStore reads credentials.
type TokenStore interface {
	// TokenByHash gives false when there is none.
	TokenByHash(ctx context.Context, hash [32]byte) (anuencia.Token, bool, error)
	Token(ctx context.Context, id anuencia.TokenID) (anuencia.Token, error)
	Tokens(ctx context.Context, p Page) ([]anuencia.Token, error)
	// EnsurePrincipal gives the id of the principal of that name, made if it is new.
	EnsurePrincipal(ctx context.Context, name string) (anuencia.PrincipalID, error)
	// EnsurePerson gives the random UUID of an institution's id, made if it is new.
	EnsurePerson(ctx context.Context, institutionID string) (anuencia.PersonID, error)
}

// HoldStore reads the brakes.
type HoldStore interface {
	// ActiveHolds lists those in force, oldest first.
	ActiveHolds(ctx context.Context) ([]anuencia.Hold, error)
	// Hold gives one: VALIDATION_FAILED/not_found.
	Hold(ctx context.Context, id anuencia.HoldID) (anuencia.Hold, error)
}

// Store is all of the above over one database.
type Store interface {
	Transactor
	ExecutionStore
	ApprovalStore
	AuditStore
	TokenStore
	HoldStore
	// Ping says whether the database answers a write-capable connection.
	Ping(ctx context.Context) error
}

// Page is a keyset page: items strictly after (older than) the cursor, newest
// first. Before zero starts at the newest. Ids are UUIDv7, so id order is time
// order to the millisecond.
type Page struct {
	Before string // canonical uuid of the last item seen, "" for the start
	Limit  int    // 1 to 201 (one more than asked, to know whether there is a next page)
}

// ExecutionFilter narrows a list of executions; zero values do not narrow.
type ExecutionFilter struct {
	Page
	Actor   anuencia.PersonID
	State   anuencia.State
	Intent  string
	Subject string
	Channel anuencia.Channel
	Risk    anuencia.Risk
	Code    anuencia.Code
	From    time.Time // inclusive, by CreatedAt
	To      time.Time // exclusive
}

// ApprovalFilter narrows a list of approvals. Roles keeps those with a stage
// that asks for one of them.
type ApprovalFilter struct {
	Page
	Status anuencia.ApprovalStatus
	Intent string
	Roles  []string
}

// AuditFilter narrows a list of audit events.
type AuditFilter struct {
	Page
	Type        anuencia.EventType
	ExecutionID anuencia.ExecutionID
	Actor       anuencia.PersonID
	Principal   anuencia.PrincipalID
	Channel     anuencia.Channel
	Subject     string
	Code        anuencia.Code
	From        time.Time
	To          time.Time
}

// Directory knows people (governance section 7). Errors:
// IDENTITY_NOT_FOUND/actor for unknown, ambiguous and suspended ones;
// INTERNAL_ERROR/unavailable when it cannot be asked.
type Directory interface {
	// Resolve may answer from a cache bounded in time.
	Resolve(ctx context.Context, h anuencia.Handle) (anuencia.Actor, error)
	// ResolveFresh passes the cache by: at decision and at resume.
	ResolveFresh(ctx context.Context, h anuencia.Handle) (anuencia.Actor, error)
	// Holders lists the active people who hold the role.
	Holders(ctx context.Context, role string) ([]anuencia.Person, error)
}

// PolicyInput is what the engine is asked (governance section 5). Input,
// Before and Result are RFC 8785 text, "" for none.
type PolicyInput struct {
	Stage       anuencia.PolicyStage
	ExecutionID anuencia.ExecutionID
	Intent      anuencia.Intent
	Agent       string
	Tool        *anuencia.Tool
	Actor       anuencia.Actor
	Principal   anuencia.Principal
	Channel     anuencia.Channel
	Input       string
	Time        time.Time
	Approval    *anuencia.Approval // stage approval: with Actor as the one who decides
	Verdict     anuencia.Verdict
}

// Policy is the engine. An error means that there was no usable answer
// (undefined, malformed, late): at intake that is a denial by rule "engine",
// at resume it is no answer and the job is tried again.
type Policy interface {
	Decide(ctx context.Context, in PolicyInput) (anuencia.Decision, error)
	Revision() string
}

// RateKey is one dimension that a request counts against.
type RateKey struct {
	Kind  string // "principal", "actor", "intent", "read", "address"
	Value string
	Limit anuencia.Limit
}

// RateResult says whether the request may pass, and if not which limit it hit.
type RateResult struct {
	Allowed    bool
	Hit        RateKey
	RetryAfter time.Duration
}

// Limiter counts requests. All keys must pass; a refused request counts
// against none.
type Limiter interface {
	Allow(ctx context.Context, keys ...RateKey) (RateResult, error)
}

// Catalog is one revision of the catalog folder.
type Catalog interface {
	Revision() string
	Intent(name string) (anuencia.Intent, bool)
	Intents() []anuencia.Intent // by name
	Agent(name string) (anuencia.Agent, bool)
	Tool(name string) (anuencia.Tool, bool)
	// ValidateInput checks input (canonical JSON) against the intent's schema and
	// gives its canonical form with defaults applied, and the person it
	// concerns. VALIDATION_FAILED/schema with fields.
	ValidateInput(in anuencia.Intent, input []byte) (canonical string, subject string, err error)
	// ValidateArguments does the same for a tool's own schema.
	ValidateArguments(tool anuencia.Tool, args []byte) (canonical string, err error)
}

// StepResult is what one step gave, before the guard.
type StepResult struct {
	Result    string // RFC 8785 text of an object
	Sources   []anuencia.Source
	Warnings  []anuencia.Warning
	Artifacts []anuencia.Artifact // ID, ExecutionID and CreatedAt are set by the harness
}

// Runner does the work of an execution (governance section 9). It decides
// nothing: allow-lists, policy and approval came before.
type Runner interface {
	// Plan resolves what would run: tool, digest, arguments with defaults, and
	// the state before, read now. TOOL_NOT_ALLOWED when the tool is on neither
	// list; VALIDATION_FAILED; TIMEOUT/tool; INTERNAL_ERROR.
	Plan(ctx context.Context, c Catalog, e anuencia.Execution, in anuencia.Intent) (anuencia.Step, error)
	// Run does it once. The effect key is (execution, step). TIMEOUT/tool when
	// the tool's own time is up.
	Run(ctx context.Context, c Catalog, e anuencia.Execution) (StepResult, error)
	// Look says, after a crash, whether the effect of the step happened, and if
	// so what it gave. It starts nothing. False with a nil error: it certainly
	// did not happen. ErrUnknownOutcome: the tool cannot tell.
	Look(ctx context.Context, c Catalog, e anuencia.Execution) (StepResult, bool, error)
}

// Redaction names what the guard cut: the rule and where, never the value.
type Redaction struct {
	Rule string
	Path string // JSON pointer into the result
}

// Guard inspects what is about to leave (governance section 8).
type Guard interface {
	Inspect(result string, mask []string) (guarded string, cut []Redaction, err error)
}

// Watcher wakes those who wait for an execution. A notification may be lost or
// come for nothing: who waits reads again, and polls as well.
type Watcher interface {
	// Notify wakes those who wait for id, in this process; with far, in the others
	// too. It never blocks.
	Notify(id anuencia.ExecutionID, far bool)
	// Watch gives a channel that receives after each Notify until stop is called.
	Watch(id anuencia.ExecutionID) (wake <-chan struct{}, stop func())
}
