package harness

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// defaultApprovalLife is how long an approval lives unless policy says
// otherwise; defaultTimeout is a direct intent's (contracts section 1).
const (
	defaultApprovalLife = 72 * time.Hour
	defaultTimeout      = 30 * time.Second
)

// Submit takes in a request for work. The checks come in the order of
// governance section 1, rule 9, and nothing runs before the first commit. A
// fault means that no execution was made (the edge records the refusal);
// everything past the rate check is an execution, and its end stands in the
// Answer.
func (s *Service) Submit(ctx context.Context, r Request, sub Submission) (Answer, error) {
	if err := s.need(r, anuencia.ScopeSubmit); err != nil {
		return Answer{}, err
	}
	if s.isStopping() {
		return Answer{}, anuencia.Unavailable("submit", errStopping)
	}
	form, err := formOf(r, sub)
	if err != nil {
		return Answer{}, err
	}
	if id, found, err := s.repeated(ctx, r, sub.Keys, form.digest); err != nil || found {
		if err != nil {
			return Answer{}, err
		}
		return s.repeat(ctx, r, id)
	}
	c, err := s.who(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	in := s.newIntake(r, sub, form, c)
	if err := in.rate(ctx); err != nil {
		return Answer{}, err
	}
	in.judge(ctx)
	if in.err != nil {
		return Answer{}, in.err
	}
	for range codeTries {
		// A short code that is taken shows as a conflict that does not go away.
		if err := in.newCodes(); err != nil {
			return Answer{}, err
		}
		a, err := in.commit(ctx)
		if !errors.Is(err, ErrConflict) {
			return a, err
		}
	}
	return Answer{}, anuencia.Unavailable("first commit", ErrConflict)
}

// codeTries: with ten million codes in use, one in 100,000 fresh ones is taken.
const codeTries = 3

// newCodes gives the execution, and its approval, a random short code each.
func (in *intake) newCodes() error {
	var err error
	if in.e.ShortCode, err = in.s.shortCode(); err == nil && in.approval != nil {
		in.approval.ShortCode, err = in.s.shortCode()
	}
	return err
}

// form is a submission in canonical form, with the digest that its keys bind.
type form struct {
	input, metadata string
	digest          [32]byte
}

func formOf(r Request, sub Submission) (form, error) {
	var f form
	var err error
	if len(sub.Input) == 0 {
		return f, anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/input", Rule: "required"})
	}
	if f.input, err = audit.Canonical(sub.Input); err != nil {
		return f, err
	}
	if len(sub.Metadata) > 0 {
		if f.metadata, err = audit.Canonical(sub.Metadata); err != nil {
			return f, err
		}
	}
	bound, err := audit.CanonicalOf(map[string]any{
		"route": sub.Route, "intent": sub.Intent, "actor": r.ActFor, "channel": string(r.Channel),
		"input": raw(f.input), "metadata": raw(f.metadata),
	})
	if err != nil {
		return f, err
	}
	f.digest = sha256.Sum256([]byte(bound))
	return f, nil
}

// repeated looks the keys up. Another body, or keys of two executions, is
// VALIDATION_FAILED/idempotency_key_reused.
func (s *Service) repeated(ctx context.Context, r Request, keys []string, digest [32]byte) (anuencia.ExecutionID, bool, error) {
	var id anuencia.ExecutionID
	for _, key := range keys {
		k, found, err := s.o.Store.Key(ctx, r.Principal.ID, key)
		if err != nil {
			return id, false, err
		}
		if !found {
			continue
		}
		if k.Digest != digest || (!id.IsZero() && id != k.ExecutionID) {
			return id, false, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonKeyReused)
		}
		id = k.ExecutionID
	}
	return id, !id.IsZero(), nil
}

// repeat answers a known key with its execution as it stands, once it does not
// run any more. The key's own digest already binds the actor; the person is
// resolved again, so that a suspended one learns nothing.
func (s *Service) repeat(ctx context.Context, r Request, id anuencia.ExecutionID) (Answer, error) {
	c, err := s.who(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	e, err := s.settled(ctx, id, r.Wait)
	if err != nil {
		return Answer{}, err
	}
	if e.Actor.ID != c.actor.ID {
		return Answer{}, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonKeyReused)
	}
	a := answer(e, brief(s.channelOf(r), c.actor))
	a.Submitted = true
	return a, nil
}

func answer(e anuencia.Execution, isBrief bool) Answer {
	return Answer{Execution: e, Unfinished: !e.State.Terminal() && e.State != anuencia.StateWaiting, Brief: isBrief}
}

// intake is one submission on its way to its first commit.
type intake struct {
	s        *Service
	r        Request
	sub      Submission
	form     form
	who      caller
	catalog  Catalog
	e        anuencia.Execution
	events   []anuencia.AuditEvent
	approval *anuencia.Approval
	mask     []string
	err      error // a failure of ours: nothing is committed
}

func (s *Service) newIntake(r Request, sub Submission, f form, c caller) *intake {
	now := s.now()
	in := &intake{s: s, r: r, sub: sub, form: f, who: c, catalog: s.o.Catalog()}
	in.e = anuencia.Execution{
		ID: r.ID, Intent: sub.Intent, Input: f.input, Metadata: f.metadata, Channel: s.channelOf(r), Actor: c.actor,
		Principal: r.Principal, PrincipalID: r.Principal.ID, OnBehalfOf: c.behalf, Behalf: c.behalfHandle, TraceID: r.TraceID, Timeout: defaultTimeout,
		PolicyRevision: s.o.Policy.Revision(), CreatedAt: now, UpdatedAt: now,
	}
	received := s.event(in.e, anuencia.EventReceived, map[string]any{
		"intent": sub.Intent, "input": s.withoutSecrets(f.input), "input_digest": audit.Digest(f.input),
		"metadata": s.withoutSecrets(f.metadata), "principal": r.Principal.Name, "route": sub.Route, "catalog_revision": in.catalog.Revision(),
	})
	in.e.AuditRef = received.ID
	identity := map[string]any{
		"person_id": c.actor.ID.String(), "roles": c.actor.Roles, "units": c.actor.Units,
		"institutional": c.actor.Institutional, "handle_channel": string(c.actor.Handle.Channel),
	}
	if !c.behalf.IsZero() {
		identity["acting_person_id"] = c.behalf.String()
	}
	in.events = []anuencia.AuditEvent{received, s.event(in.e, anuencia.EventIdentityResolved, identity)}
	return in
}

func (in *intake) add(t anuencia.EventType, payload map[string]any) {
	in.events = append(in.events, in.s.event(in.e, t, payload))
}

// rate counts the submission against its principal, its actor and its intent.
func (in *intake) rate(ctx context.Context) error {
	l := in.s.o.Limits
	if def, known := in.catalog.Intent(in.sub.Intent); known && def.Limit.Count > 0 {
		l.Intent = def.Limit
	}
	actor := in.who.actor.ID.String()
	keys := []RateKey{
		{Kind: "principal", Value: in.r.Principal.ID.String(), Limit: l.Principal},
		{Kind: "actor", Value: actor, Limit: l.Actor},
		{Kind: "intent", Value: actor + " " + in.sub.Intent, Limit: l.Intent},
	}
	if err := in.s.allow(ctx, keys...); err != nil {
		return err
	}
	in.add(anuencia.EventRateChecked, map[string]any{"allowed": true, "keys": []string{"principal", "actor", "intent"}})
	return nil
}

// judge takes the submission through schema, policy, allow-lists and approval
// and leaves e in the state that the first commit holds.
func (in *intake) judge(ctx context.Context) {
	s := in.s
	def, known := in.catalog.Intent(in.sub.Intent)
	if !known {
		in.fail(anuencia.Invalid(anuencia.ReasonUnknownIntent, anuencia.FieldError{Path: "/intent", Rule: "known"}))
		return
	}
	in.e.Agent = def.Agent
	if def.Timeout > 0 {
		in.e.Timeout = def.Timeout
	}
	input, subject, err := in.catalog.ValidateInput(def, []byte(in.form.input))
	if err != nil {
		in.fail(anuencia.AsFault(err))
		return
	}
	in.e.Input, in.e.SubjectRef = input, subject
	for i := range in.events {
		in.events[i].SubjectRef = subject // an act is found by whom it concerns from its first event
	}
	in.add(anuencia.EventValidated, map[string]any{"intent": def.Name, "input_digest": audit.Digest(input)})

	d, fault := s.evaluate(ctx, in.catalog, in.e, def, in.r.Principal)
	in.e.Risk, in.e.PolicyID, in.e.Reasons = d.Risk, d.PolicyID, d.Reasons
	if d.Revision != "" {
		in.e.PolicyRevision = d.Revision
	}
	in.add(anuencia.EventPolicyEvaluated, decisionPayload(d))
	if fault != nil {
		in.fail(fault)
		return
	}
	held, err := s.held(ctx, def.Name)
	if err != nil {
		in.err = err
		return
	}
	if held {
		in.fail(anuencia.Denied(anuencia.PolicyHold))
		return
	}
	in.mask = d.Mask
	in.e.Outcome.Warnings = d.Warnings
	in.plan(ctx, def, d)
}

// plan resolves what would run and either starts it or asks for consent.
func (in *intake) plan(ctx context.Context, def anuencia.Intent, d anuencia.Decision) {
	s := in.s
	step, err := s.o.Runner.Plan(ctx, in.catalog, in.e, def)
	if err != nil {
		in.fail(anuencia.AsFault(err))
		return
	}
	in.e.Step = step
	now := s.now()
	if !d.Risk.NeedsApproval() {
		if in.e, in.err = in.e.Start(now, in.e.Timeout+s.o.Grace); in.err == nil {
			in.add(anuencia.EventAgentStarted, map[string]any{"agent": step.Agent, "attempt": in.e.Attempt})
			in.add(anuencia.EventToolRequested, s.stepPayload(step))
		}
		return
	}
	a, err := s.newApproval(in.e, d, now)
	if err != nil {
		in.err = err
		return
	}
	if f := s.decidable(ctx, in.e, def, a); f != nil {
		in.fail(f)
		return
	}
	if in.e, in.err = in.e.Wait(a.ID, now); in.err == nil {
		in.approval = &a
		in.add(anuencia.EventApprovalRequested, s.approvalPayload(a))
	}
}

func (in *intake) fail(f *anuencia.Fault) {
	if f.Code == anuencia.CodeInternal && f.Reason == anuencia.ReasonUnavailable {
		in.err = f // what is away may be back: nothing is bound, the caller tries again
		return
	}
	if f.Details.RiskLevel == "" && in.e.Risk.Valid() && f.Code == anuencia.CodePolicyDenied {
		d := f.Details
		d.RiskLevel = in.e.Risk
		f = f.WithDetails(d)
	}
	if in.e, in.err = in.e.Fail(f, in.s.now()); in.err == nil {
		in.events = append(in.events, in.s.failed(in.e, f))
	}
}

// commit writes the execution with every event so far, and then runs it when it
// is to run.
func (in *intake) commit(ctx context.Context) (Answer, error) {
	s, r := in.s, in.r
	var kept anuencia.Execution
	var repeatOf anuencia.ExecutionID
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		repeatOf = anuencia.ExecutionID{}
		for _, key := range in.sub.Keys {
			k, found, err := tx.Key(ctx, r.Principal.ID, key)
			if err != nil {
				return err
			}
			if found && k.ExecutionID != in.e.ID {
				if k.Digest != in.form.digest {
					return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonKeyReused)
				}
				repeatOf = k.ExecutionID
				return nil
			}
		}
		var err error
		kept, err = in.put(ctx, tx)
		return err
	})
	if err != nil {
		return Answer{}, in.storeFault(err)
	}
	if !repeatOf.IsZero() {
		return s.repeat(ctx, r, repeatOf)
	}
	isBrief := brief(in.e.Channel, in.e.Actor)
	if kept.State == anuencia.StateRunning {
		return s.runAndWait(ctx, kept, in.mask, r.Wait, isBrief)
	}
	a := answer(kept, isBrief)
	a.Submitted, a.Ran = true, true
	return a, nil
}

// storeFault: if the first commit cannot be written, nothing ran, and the
// caller hears 503 whatever the store said (contracts section 1, audit_ref).
func (in *intake) storeFault(err error) error {
	f := new(anuencia.Fault)
	if errors.As(err, &f) && f.Code != anuencia.CodeInternal {
		return f
	}
	return anuencia.Unavailable("first commit", err)
}

func (in *intake) put(ctx context.Context, tx Tx) (anuencia.Execution, error) {
	var kept anuencia.Execution
	var err error
	if in.approval != nil {
		_, kept, err = tx.PutApproval(ctx, *in.approval, in.e, in.events[0], in.events[1:]...)
		if err == nil {
			err = tx.Enqueue(ctx, Job{Kind: JobExpire, ID: in.approval.ID.String(), RunAt: in.approval.ExpiresAt})
		}
	} else {
		kept, err = tx.PutExecution(ctx, in.e, in.events[0], in.events[1:]...)
	}
	if err != nil {
		return kept, err
	}
	for _, key := range in.sub.Keys {
		k := IdempotencyKey{
			Principal: in.r.Principal.ID, Key: key, Digest: in.form.digest, ExecutionID: in.e.ID, CreatedAt: in.e.CreatedAt,
		}
		if err := tx.BindKey(ctx, k); err != nil {
			return kept, err
		}
	}
	return kept, nil
}
