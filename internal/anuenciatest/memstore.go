// Package anuenciatest has what tests of several packages share: a store in
// memory with faults on demand, a clock that is set by hand, and small ports.
// Nothing that ships imports it.
package anuenciatest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// ErrStoreDown is what an armed MemStore gives.
var ErrStoreDown = errors.New("store down")

type memState struct {
	executions map[anuencia.ExecutionID]anuencia.Execution
	approvals  map[anuencia.ApprovalID]anuencia.Approval
	events     map[anuencia.StreamID][]anuencia.SealedEvent
	keys       map[string]harness.IdempotencyKey
	artifacts  map[anuencia.ExecutionID][]anuencia.Artifact
	tokens     map[anuencia.TokenID]anuencia.Token
	holds      map[anuencia.HoldID]anuencia.Hold
	jobs       []harness.Job
}

func (m memState) clone() memState {
	m.executions, m.approvals, m.events = maps.Clone(m.executions), maps.Clone(m.approvals), maps.Clone(m.events)
	m.keys, m.artifacts, m.tokens = maps.Clone(m.keys), maps.Clone(m.artifacts), maps.Clone(m.tokens)
	m.jobs, m.holds = slices.Clone(m.jobs), maps.Clone(m.holds)
	return m
}

// MemStore is a harness.Store in memory. One transaction runs at a time.
type MemStore struct {
	mu         sync.Mutex
	s          memState
	system     anuencia.StreamID
	principals map[string]anuencia.PrincipalID
	people     map[string]anuencia.PersonID
	failBefore int // so many transactions fail before their commit
	failAfter  int // so many commit and then report a failure
}

// NewMemStore makes an empty one.
func NewMemStore() *MemStore {
	return &MemStore{
		s: memState{
			executions: map[anuencia.ExecutionID]anuencia.Execution{}, approvals: map[anuencia.ApprovalID]anuencia.Approval{},
			events: map[anuencia.StreamID][]anuencia.SealedEvent{}, keys: map[string]harness.IdempotencyKey{},
			artifacts: map[anuencia.ExecutionID][]anuencia.Artifact{}, tokens: map[anuencia.TokenID]anuencia.Token{}, holds: map[anuencia.HoldID]anuencia.Hold{},
		},
		system:     anuencia.StreamID(uuid.New()),
		principals: map[string]anuencia.PrincipalID{}, people: map[string]anuencia.PersonID{},
	}
}

// FailBefore makes the next n transactions fail without a trace.
func (m *MemStore) FailBefore(n int) { m.mu.Lock(); m.failBefore = n; m.mu.Unlock() }

// FailAfter makes the next n transactions commit and then report a failure, as
// a connection lost at COMMIT does.
func (m *MemStore) FailAfter(n int) { m.mu.Lock(); m.failAfter = n; m.mu.Unlock() }

// TakeJobs gives the queued jobs and empties the queue.
func (m *MemStore) TakeJobs() []harness.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.s.jobs
	m.s.jobs = nil
	return jobs
}

// Chains gives every chain there is.
func (m *MemStore) Chains() map[anuencia.StreamID][]anuencia.SealedEvent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.s.events)
}

// AllExecutions gives every execution there is.
func (m *MemStore) AllExecutions() []anuencia.Execution {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.s.executions))
}

// Atomically runs fn on a copy and swaps it in.
func (m *MemStore) Atomically(ctx context.Context, fn func(context.Context, harness.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// As after a conflict: a first run of the closure that comes to nothing. What
	// it leaves behind in the caller shows in the second.
	_ = fn(ctx, &memTx{s: m.s.clone(), system: m.system})
	tx := &memTx{s: m.s.clone(), system: m.system}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if m.failBefore > 0 {
		m.failBefore--
		return anuencia.Unavailable("commit", ErrStoreDown)
	}
	m.s = tx.s
	if m.failAfter > 0 {
		m.failAfter--
		return anuencia.Unavailable("commit", ErrStoreDown)
	}
	return nil
}

type memTx struct {
	s      memState
	system anuencia.StreamID
}

func (t *memTx) LockApproval(_ context.Context, id anuencia.ApprovalID) (anuencia.Approval, error) {
	a, ok := t.s.approvals[id]
	if !ok {
		return a, anuencia.NotFound()
	}
	return a, nil
}

func (t *memTx) Execution(_ context.Context, id anuencia.ExecutionID) (anuencia.Execution, error) {
	e, ok := t.s.executions[id]
	if !ok {
		return e, anuencia.NotFound()
	}
	return e, nil
}

func (t *memTx) PutExecution(_ context.Context, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Execution, error) {
	old, exists := t.s.executions[e.ID]
	if exists != (e.Version > 0) || (exists && old.Version != e.Version) {
		return e, harness.ErrConflict
	}
	if exists && old.State.Terminal() {
		return e, errors.New("a terminal state never changes")
	}
	if !exists && t.codeTaken(e.ShortCode) {
		return e, harness.ErrConflict
	}
	sealed, head, err := audit.Seal(e.Head, append([]anuencia.AuditEvent{first}, more...))
	if err != nil {
		return e, err
	}
	e.Version++
	e.Head = head
	t.s.executions[e.ID] = e
	t.append(anuencia.StreamOf(e.ID), sealed)
	return e, nil
}

func (t *memTx) codeTaken(code string) bool {
	for _, e := range t.s.executions {
		if e.ShortCode == code {
			return true
		}
	}
	return code == ""
}

func (t *memTx) append(id anuencia.StreamID, sealed []anuencia.SealedEvent) {
	t.s.events[id] = append(slices.Clone(t.s.events[id]), sealed...)
}

func (t *memTx) PutApproval(ctx context.Context, a anuencia.Approval, e anuencia.Execution, first anuencia.AuditEvent, more ...anuencia.AuditEvent) (anuencia.Approval, anuencia.Execution, error) {
	old, exists := t.s.approvals[a.ID]
	if exists != (a.Version > 0) || (exists && old.Version != a.Version) {
		return a, e, harness.ErrConflict
	}
	e, err := t.PutExecution(ctx, e, first, more...)
	if err != nil {
		return a, e, err
	}
	a.Version++
	t.s.approvals[a.ID] = a
	return a, e, nil
}

func (t *memTx) PutArtifact(_ context.Context, a anuencia.Artifact) error {
	t.s.artifacts[a.ExecutionID] = append(slices.Clone(t.s.artifacts[a.ExecutionID]), a)
	return nil
}

func memKey(p anuencia.PrincipalID, key string) string { return p.String() + " " + key }

func (t *memTx) BindKey(_ context.Context, k harness.IdempotencyKey) error {
	if _, bound := t.s.keys[memKey(k.Principal, k.Key)]; bound {
		return harness.ErrConflict
	}
	t.s.keys[memKey(k.Principal, k.Key)] = k
	return nil
}

func (t *memTx) Key(_ context.Context, p anuencia.PrincipalID, key string) (harness.IdempotencyKey, bool, error) {
	k, ok := t.s.keys[memKey(p, key)]
	return k, ok, nil
}

func (t *memTx) PutToken(ctx context.Context, tok anuencia.Token, first anuencia.AuditEvent) error {
	t.s.tokens[tok.ID] = tok
	return t.RecordSystem(ctx, first)
}

func (t *memTx) PutHold(ctx context.Context, h anuencia.Hold, first anuencia.AuditEvent) error {
	t.s.holds[h.ID] = h
	return t.RecordSystem(ctx, first)
}

func (t *memTx) Record(_ context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error {
	sealed, _, err := audit.Seal(anuencia.Head{}, append([]anuencia.AuditEvent{first}, more...))
	if err == nil {
		t.append(first.StreamID, sealed)
	}
	return err
}

func (t *memTx) RecordSystem(_ context.Context, first anuencia.AuditEvent, more ...anuencia.AuditEvent) error {
	events := append([]anuencia.AuditEvent{first}, more...)
	for i := range events {
		events[i].StreamID = t.system
	}
	var head anuencia.Head
	if chain := t.s.events[t.system]; len(chain) > 0 {
		head = anuencia.Head{Seq: chain[len(chain)-1].Seq, Hash: chain[len(chain)-1].Hash}
	}
	sealed, _, err := audit.Seal(head, events)
	if err == nil {
		t.append(t.system, sealed)
	}
	return err
}

func (t *memTx) Enqueue(_ context.Context, job harness.Job) error {
	t.s.jobs = append(t.s.jobs, job)
	return nil
}

func (m *MemStore) read() memState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.clone()
}

// Execution implements harness.ExecutionStore.
func (m *MemStore) Execution(_ context.Context, id anuencia.ExecutionID) (anuencia.Execution, error) {
	e, ok := m.read().executions[id]
	if !ok {
		return e, anuencia.NotFound()
	}
	return e, nil
}

// ExecutionByCode implements harness.ExecutionStore.
func (m *MemStore) ExecutionByCode(_ context.Context, code string) (anuencia.Execution, error) {
	for _, e := range m.read().executions {
		if e.ShortCode == code {
			return e, nil
		}
	}
	return anuencia.Execution{}, anuencia.NotFound()
}

// Executions implements harness.ExecutionStore for the filters Actor, State and Page.
func (m *MemStore) Executions(_ context.Context, f harness.ExecutionFilter) ([]anuencia.Execution, error) {
	var out []anuencia.Execution
	for _, e := range m.read().executions {
		if (f.Actor.IsZero() || e.Actor.ID == f.Actor) && (f.State == "" || e.State == f.State) && (f.Before == "" || e.ID.String() < f.Before) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b anuencia.Execution) int { return cmp.Compare(b.ID.String(), a.ID.String()) })
	return out[:min(len(out), f.Limit)], nil
}

// Unsettled implements harness.ExecutionStore.
func (m *MemStore) Unsettled(_ context.Context, at time.Time, limit int) ([]anuencia.Execution, error) {
	var out []anuencia.Execution
	for _, e := range m.read().executions {
		if e.State == anuencia.StateApproved || (e.State == anuencia.StateRunning && !at.Before(e.LeaseUntil)) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b anuencia.Execution) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out[:min(len(out), limit)], nil
}

// Artifacts implements harness.ExecutionStore.
func (m *MemStore) Artifacts(_ context.Context, id anuencia.ExecutionID) ([]anuencia.Artifact, error) {
	return m.read().artifacts[id], nil
}

// Artifact implements harness.ExecutionStore.
func (m *MemStore) Artifact(_ context.Context, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error) {
	for _, a := range m.read().artifacts[id] {
		if a.Filename == filename {
			return a, nil
		}
	}
	return anuencia.Artifact{}, anuencia.NotFound()
}

// Key implements harness.ExecutionStore.
func (m *MemStore) Key(_ context.Context, p anuencia.PrincipalID, key string) (harness.IdempotencyKey, bool, error) {
	k, ok := m.read().keys[memKey(p, key)]
	return k, ok, nil
}

// DropKeys implements harness.ExecutionStore.
func (m *MemStore) DropKeys(_ context.Context, before time.Time) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.s.keys)
	maps.DeleteFunc(m.s.keys, func(_ string, k harness.IdempotencyKey) bool { return k.CreatedAt.Before(before) })
	return int64(n - len(m.s.keys)), nil
}

// Approval implements harness.ApprovalStore.
func (m *MemStore) Approval(_ context.Context, id anuencia.ApprovalID) (anuencia.Approval, error) {
	a, ok := m.read().approvals[id]
	if !ok {
		return a, anuencia.NotFound()
	}
	return a, nil
}

// ApprovalByCode implements harness.ApprovalStore.
func (m *MemStore) ApprovalByCode(_ context.Context, code string) (anuencia.Approval, error) {
	for _, a := range m.read().approvals {
		if a.ShortCode == code {
			return a, nil
		}
	}
	return anuencia.Approval{}, anuencia.NotFound()
}

// ApprovalsOf implements harness.ApprovalStore.
func (m *MemStore) ApprovalsOf(_ context.Context, id anuencia.ExecutionID) ([]anuencia.Approval, error) {
	var out []anuencia.Approval
	for _, a := range m.read().approvals {
		if a.ExecutionID == id {
			out = append(out, a)
		}
	}
	return out, nil
}

// Approvals implements harness.ApprovalStore for the filter Status.
func (m *MemStore) Approvals(_ context.Context, f harness.ApprovalFilter) ([]anuencia.Approval, error) {
	var out []anuencia.Approval
	for _, a := range m.read().approvals {
		if f.Status == "" || a.Status == f.Status {
			out = append(out, a)
		}
	}
	return out[:min(len(out), f.Limit)], nil
}

// LateApprovals implements harness.ApprovalStore.
func (m *MemStore) LateApprovals(_ context.Context, at time.Time, limit int) ([]anuencia.ApprovalID, error) {
	var out []anuencia.ApprovalID
	for _, a := range m.read().approvals {
		if a.Status == anuencia.ApprovalPending && !at.Before(a.ExpiresAt) {
			out = append(out, a.ID)
		}
	}
	return out[:min(len(out), limit)], nil
}

// AuditEvent implements harness.AuditStore.
func (m *MemStore) AuditEvent(_ context.Context, id anuencia.EventID) (anuencia.SealedEvent, error) {
	for _, chain := range m.read().events {
		for _, e := range chain {
			if e.ID == id {
				return e, nil
			}
		}
	}
	return anuencia.SealedEvent{}, anuencia.NotFound()
}

// AuditEvents implements harness.AuditStore for the filter Type.
func (m *MemStore) AuditEvents(_ context.Context, f harness.AuditFilter) ([]anuencia.SealedEvent, error) {
	var out []anuencia.SealedEvent
	for _, chain := range m.read().events {
		for _, e := range chain {
			if f.Type == "" || e.Type == f.Type {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b anuencia.SealedEvent) int { return cmp.Compare(b.ID.String(), a.ID.String()) })
	return out[:min(len(out), f.Limit)], nil
}

// Stream implements harness.AuditStore.
func (m *MemStore) Stream(_ context.Context, id anuencia.StreamID) ([]anuencia.SealedEvent, error) {
	return m.read().events[id], nil
}

// TokenByHash implements harness.TokenStore.
func (m *MemStore) TokenByHash(_ context.Context, hash [32]byte) (anuencia.Token, bool, error) {
	for _, t := range m.read().tokens {
		if t.Hash == hash {
			return t, true, nil
		}
	}
	return anuencia.Token{}, false, nil
}

// Token implements harness.TokenStore.
func (m *MemStore) Token(_ context.Context, id anuencia.TokenID) (anuencia.Token, error) {
	t, ok := m.read().tokens[id]
	if !ok {
		return t, anuencia.NotFound()
	}
	return t, nil
}

// Tokens implements harness.TokenStore.
func (m *MemStore) Tokens(_ context.Context, p harness.Page) ([]anuencia.Token, error) {
	out := slices.Collect(maps.Values(m.read().tokens))
	return out[:min(len(out), p.Limit)], nil
}

// ActiveHolds implements harness.HoldStore.
func (m *MemStore) ActiveHolds(context.Context) ([]anuencia.Hold, error) {
	out := []anuencia.Hold{}
	for _, h := range m.read().holds {
		if h.Active() {
			out = append(out, h)
		}
	}
	return out, nil
}

// Hold implements harness.HoldStore.
func (m *MemStore) Hold(_ context.Context, id anuencia.HoldID) (anuencia.Hold, error) {
	h, ok := m.read().holds[id]
	if !ok {
		return h, anuencia.NotFound()
	}
	return h, nil
}

// EnsurePrincipal implements harness.TokenStore.
func (m *MemStore) EnsurePrincipal(_ context.Context, name string) (anuencia.PrincipalID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.principals[name]; !ok {
		m.principals[name] = anuencia.PrincipalID(uuid.New())
	}
	return m.principals[name], nil
}

// EnsurePerson implements harness.TokenStore.
func (m *MemStore) EnsurePerson(_ context.Context, id string) (anuencia.PersonID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.people[id]; !ok {
		m.people[id] = anuencia.PersonID(uuid.New())
	}
	return m.people[id], nil
}

// Ping implements harness.Store.
func (m *MemStore) Ping(context.Context) error { return nil }
