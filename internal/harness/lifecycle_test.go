package harness_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// TestLifecycleHoldsTheInvariants drives submit, decide, expire, cancel,
// resume, sweeps, a directory and an engine that go away, changes behind the
// approver's back, and crashes before and after commits and effects, in any
// order, and checks governance section 1 after every step.
func TestLifecycleHoldsTheInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{w: newWorld(rt), ended: map[anuencia.ExecutionID]anuencia.Execution{}}
		rt.Repeat(rapid.StateMachineActions(m))
	})
}

type machine struct {
	w     *world
	ids   []anuencia.ExecutionID
	ended map[anuencia.ExecutionID]anuencia.Execution
}

func (m *machine) Submit(t *rapid.T) {
	who := rapid.SampledFrom([]string{"clerk", "both", "student"}).Draw(t, "who")
	intent := rapid.SampledFrom([]string{"read", "grant"}).Draw(t, "intent")
	r := m.w.as(who)
	r.Wait = time.Minute // its run ends before the next action, so that a failure can be replayed
	_, err := m.w.svc.Submit(t.Context(), r, harness.Submission{Intent: intent, Input: []byte(`{"subject":"s1"}`), Route: "test"})
	if _, found := m.w.store.Execution(t.Context(), r.ID); found == nil {
		m.ids = append(m.ids, r.ID)
	} else if err == nil {
		t.Fatalf("accepted without a trace")
	}
}

func (m *machine) pick(t *rapid.T) anuencia.Execution {
	if len(m.ids) == 0 {
		t.Skip("nothing submitted")
	}
	return m.pickID(t, rapid.SampledFrom(m.ids).Draw(t, "id"))
}

func (m *machine) Decide(t *rapid.T) {
	e := m.pick(t)
	if e.ApprovalID.IsZero() {
		t.Skip("needs no approval")
	}
	who := rapid.SampledFrom([]string{"head", "finance", "both", "clerk", "student"}).Draw(t, "who")
	verdict := rapid.SampledFrom([]anuencia.Verdict{anuencia.Approve, anuencia.Approve, anuencia.Reject}).Draw(t, "verdict")
	_, err := m.w.svc.Decide(t.Context(), m.w.as(who), harness.DecideCommand{Ref: e.ApprovalID.String(), Verdict: verdict, Reason: "because"})
	if err == nil && (who == "student" || who == "clerk") {
		t.Fatalf("%s decided", who)
	}
}

// Grant takes one request to its quorum, so that runs see much of what comes
// after.
func (m *machine) Grant(t *rapid.T) {
	r := m.w.as("clerk")
	_, err := m.w.svc.Submit(t.Context(), r, harness.Submission{Intent: "grant", Input: []byte(`{"subject":"s1"}`), Route: "test"})
	if _, found := m.w.store.Execution(t.Context(), r.ID); found != nil {
		return
	}
	m.ids = append(m.ids, r.ID)
	for _, who := range []string{"finance", "head"} {
		if err != nil {
			return
		}
		e := m.pickID(t, r.ID)
		_, err = m.w.svc.Decide(t.Context(), m.w.as(who), harness.DecideCommand{Ref: e.ApprovalID.String(), Verdict: anuencia.Approve, Reason: "because"})
	}
}

func (m *machine) pickID(t *rapid.T, id anuencia.ExecutionID) anuencia.Execution {
	e, err := m.w.store.Execution(t.Context(), id)
	if err != nil {
		t.Fatalf("lost: %v", err)
	}
	return e
}

func (m *machine) Cancel(t *rapid.T) {
	e := m.pick(t)
	who := rapid.SampledFrom([]string{"clerk", "both", "student"}).Draw(t, "who")
	_, err := m.w.svc.Cancel(t.Context(), m.w.as(who), e.ID)
	if err == nil && e.Actor.InstitutionID != who {
		t.Fatalf("%s cancelled what is %s's", who, e.Actor.InstitutionID)
	}
}

// Rehire suspends an approver, or takes them back.
func (m *machine) Rehire(t *rapid.T) {
	who := rapid.SampledFrom([]string{"head", "finance", "both"}).Draw(t, "who")
	p := m.w.dir.People[who]
	p.Suspended = !p.Suspended
	m.w.dir.Set(who, p)
}

// SlowPlan makes the questions before a run take longer than an approval lives.
func (m *machine) SlowPlan(t *rapid.T) {
	m.w.runner.OnPlan = nil
	if rapid.Bool().Draw(t, "slow") {
		m.w.runner.OnPlan = func() { m.w.clock.Advance(50 * time.Minute) }
	}
}

func (m *machine) Work(t *rapid.T)  { m.w.work(t.Context()) }
func (m *machine) Touch(*rapid.T)   { m.w.runner.Touch() }
func (m *machine) Deny(*rapid.T)    { m.w.deny = !m.w.deny }
func (m *machine) ToolNew(*rapid.T) { m.w.runner.Digest += "x" }

func (m *machine) Sweep(t *rapid.T) {
	// A sweep that finds something away says so and leaves it for the next one.
	_ = m.w.svc.Sweep(t.Context())
}

func (m *machine) Restart(t *rapid.T) {
	_ = m.w.svc.SweepOrphans(t.Context())
}

func (m *machine) Time(t *rapid.T) {
	m.w.clock.Advance(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
}

func (m *machine) EngineAway(*rapid.T) {
	if m.w.engine == nil {
		m.w.engine = errors.New("no answer")
	} else {
		m.w.engine = nil
	}
}

func (m *machine) DirectoryAway(t *rapid.T) {
	var down error
	if rapid.Bool().Draw(t, "down") {
		down = errors.New("no route")
	}
	m.w.dir.SetDown(down)
}

func (m *machine) Crash(t *rapid.T) {
	switch rapid.IntRange(0, 4).Draw(t, "where") {
	case 0:
		m.w.store.FailBefore(1)
	case 1:
		m.w.store.FailAfter(1)
	case 2:
		m.w.runner.Lose("before")
	case 3:
		m.w.runner.Lose("after")
	case 4:
		m.w.runner.SetLookDown(rapid.Bool().Draw(t, "look"))
	}
}

// Check holds after every action.
func (m *machine) Check(t *rapid.T) {
	for id, chain := range m.w.store.Chains() {
		if err := audit.VerifyStream(id, chain, nil, nil); err != nil {
			t.Fatalf("chain: %v", err)
		}
	}
	for _, e := range m.w.store.AllExecutions() {
		m.checkExecution(t, e)
	}
}

func (m *machine) checkExecution(t *rapid.T, e anuencia.Execution) {
	effects := m.w.runner.Effects(e.ID)
	if effects > 1 {
		t.Fatalf("%s: effect happened %d times", e.ID, effects)
	}
	if old, ended := m.ended[e.ID]; ended && (old.State != e.State || old.Head != e.Head) {
		t.Fatalf("%s: terminal %s became %s", e.ID, old.State, e.State)
	}
	if e.State.Terminal() {
		m.ended[e.ID] = e
	}
	chain, err := m.w.store.Stream(t.Context(), anuencia.StreamOf(e.ID))
	if err != nil || len(chain) == 0 {
		t.Fatalf("%s: no chain (%v)", e.ID, err)
	}
	if last := chain[len(chain)-1]; last.Hash != e.Head.Hash {
		t.Fatalf("%s: head does not agree with its chain", e.ID)
	}
	if e.State == anuencia.StateCompleted && effects != 1 {
		t.Fatalf("%s: completed with %d effects", e.ID, effects)
	}
	if (e.State == anuencia.StateCancelled || e.State == anuencia.StateFailed) && effects > 0 {
		t.Fatalf("%s: %s although its effect happened", e.ID, e.State)
	}
	if effects > 0 && e.Intent == "grant" {
		m.checkConsent(t, e)
	}
}

// checkConsent: enough distinct people, none the requester, in time, and for
// the very subject that ran.
func (m *machine) checkConsent(t *rapid.T, e anuencia.Execution) {
	a, err := m.w.store.Approval(t.Context(), e.ApprovalID)
	if err != nil {
		t.Fatalf("%s: effect without an approval: %v", e.ID, err)
	}
	if a.Status != anuencia.ApprovalApproved || !a.Satisfied() {
		t.Fatalf("%s: effect with an approval that is %s", e.ID, a.Status)
	}
	chain, err := m.w.store.Stream(t.Context(), anuencia.StreamOf(e.ID))
	if err != nil {
		t.Fatalf("chain: %v", err)
	}
	for _, ev := range chain {
		if ev.Type == anuencia.EventToolRequested && !ev.OccurredAt.Before(a.ExpiresAt) {
			t.Fatalf("%s: started at %s, its approval was over at %s", e.ID, ev.OccurredAt, a.ExpiresAt)
		}
	}
	_, hash, err := audit.Subject(e)
	if err != nil || hash != a.SubjectHash {
		t.Fatalf("%s: what ran is not what was approved (%v)", e.ID, err)
	}
	for _, d := range a.Decisions {
		if d.Approver == e.Actor.ID || !d.At.Before(a.ExpiresAt) || d.SubjectHash != hash {
			t.Fatalf("%s: a decision that does not count: %+v", e.ID, d)
		}
	}
}
