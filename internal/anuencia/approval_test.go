package anuencia_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// bruteMissing tries every assignment of people to places.
func bruteMissing(places [][]string, people [][]string) int {
	if len(places) == 0 {
		return 0
	}
	best := 1 + bruteMissing(places[1:], people)
	for i, roles := range people {
		if slices.ContainsFunc(roles, func(r string) bool { return slices.Contains(places[0], r) }) {
			rest := slices.Delete(slices.Clone(people), i, i+1)
			best = min(best, bruteMissing(places[1:], rest))
		}
	}
	return best
}

func TestMissingIsTheBestAssignment(t *testing.T) {
	t.Parallel()
	roles := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string])
	rapid.Check(t, func(rt *rapid.T) {
		a := anuencia.Approval{SubjectHash: "h"}
		var places, people [][]string
		for range rapid.IntRange(1, 3).Draw(rt, "stages") {
			s := anuencia.Stage{Roles: roles.Draw(rt, "roles"), Quorum: rapid.IntRange(1, 2).Draw(rt, "quorum")}
			a.Requirement.Stages = append(a.Requirement.Stages, s)
			for range s.Quorum {
				places = append(places, s.Roles)
			}
		}
		for range rapid.IntRange(0, 4).Draw(rt, "people") {
			held := roles.Draw(rt, "held")
			people = append(people, held)
			a.Decisions = append(a.Decisions, anuencia.ApprovalDecision{
				Approver: anuencia.PersonID(uuid.New()), Roles: held, Verdict: anuencia.Approve, SubjectHash: "h",
			})
		}
		if got, want := a.Missing(), bruteMissing(places, people); got != want {
			rt.Fatalf("missing %d, want %d", got, want)
		}
	})
}

func TestAZeroRequirementIsNeverSatisfied(t *testing.T) {
	t.Parallel()
	if (anuencia.Approval{}).Satisfied() {
		t.Fatal("a zero value permits")
	}
	if (anuencia.Requirement{}).CouldBeFilledBy([]anuencia.Person{{ID: anuencia.PersonID(uuid.New())}}) {
		t.Fatal("a zero requirement can be filled")
	}
}

func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	requester, behalf, boss := anuencia.PersonID(uuid.New()), anuencia.PersonID(uuid.New()), anuencia.PersonID(uuid.New())
	base := anuencia.Approval{
		Status: anuencia.ApprovalPending, SubjectHash: "h", ExpiresAt: at.Add(time.Hour), Requester: requester, OnBehalfOf: behalf,
		Requirement: anuencia.Requirement{
			Stages: []anuencia.Stage{{Roles: []string{"boss"}, Quorum: 2}}, Channels: []anuencia.Channel{anuencia.ChannelAPI},
		},
	}
	good := anuencia.ApprovalDecision{
		Approver: boss, Roles: []string{"boss"}, Verdict: anuencia.Approve, SubjectHash: "h", Channel: anuencia.ChannelAPI, At: at, Reason: "r",
	}
	for name, c := range map[string]struct {
		change func(*anuencia.Approval, *anuencia.ApprovalDecision)
		want   *anuencia.Fault
	}{
		"requester":        {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Approver = requester }, anuencia.Denied("")},
		"who handed it in": {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Approver = behalf }, anuencia.Denied("")},
		"role":             {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Roles = []string{"clerk"} }, anuencia.Denied("")},
		"channel":          {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Channel = anuencia.ChannelTelegram }, anuencia.Denied("")},
		"another hash":     {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.SubjectHash = "" }, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonSubjectMismatch)},
		"verdict":          {func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Verdict = "Approve" }, anuencia.Invalid(anuencia.ReasonSchema)},
		"reject, no reason": {
			func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) { d.Verdict, d.Reason = anuencia.Reject, "" },
			anuencia.Invalid(anuencia.ReasonReasonRequired),
		},
		"invisible reason": {
			func(_ *anuencia.Approval, d *anuencia.ApprovalDecision) {
				d.Verdict, d.Reason = anuencia.Reject, " \u00a0\u200b\u2060 "
			},
			anuencia.Invalid(anuencia.ReasonReasonRequired),
		},
		"late":      {func(a *anuencia.Approval, _ *anuencia.ApprovalDecision) { a.ExpiresAt = at }, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonExpired)},
		"withdrawn": {func(a *anuencia.Approval, _ *anuencia.ApprovalDecision) { a.Status = anuencia.ApprovalWithdrawn }, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonWithdrawn)},
		"zero":      {func(a *anuencia.Approval, _ *anuencia.ApprovalDecision) { *a = anuencia.Approval{} }, anuencia.NewFault(anuencia.CodeInternal, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, d := base, good
			c.change(&a, &d)
			next, _, err := a.Decide(d)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if next.Status == anuencia.ApprovalApproved || len(next.Decisions) != 0 {
				t.Fatalf("counted: %+v", next)
			}
		})
	}
	if next, res, err := base.Decide(good); err != nil || res != anuencia.DecisionRecorded || next.Missing() != 1 {
		t.Fatalf("the good one: %s, %v", res, err)
	}
}

func TestShortCodes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var b [5]byte
		copy(b[:], rapid.SliceOfN(rapid.Byte(), 5, 5).Draw(rt, "bytes"))
		code := anuencia.ShortCode(b)
		if got, ok := anuencia.NormalizeShortCode(code); !ok || got != code {
			rt.Fatalf("%s: %s %v", code, got, ok)
		}
	})
	if got, ok := anuencia.NormalizeShortCode("oil0abcd"); !ok || got != "0110ABCD" {
		t.Fatalf("typed by hand: %s %v", got, ok)
	}
	for _, bad := range []string{"", "ABCDEFG", "ABCDEFGU", "ABC-EFGH", "ABCDEFGHI", "ñBCDEFG"} {
		if got, ok := anuencia.NormalizeShortCode(bad); ok {
			t.Fatalf("%q read as %s", bad, got)
		}
	}
}

func TestIDsHaveOneName(t *testing.T) {
	t.Parallel()
	id := anuencia.ExecutionID(uuid.Must(uuid.NewV7()))
	if got, err := anuencia.ParseID[anuencia.ExecutionID](id.String()); err != nil || got != id {
		t.Fatalf("round trip: %v %v", got, err)
	}
	for _, bad := range []string{"", "urn:uuid:" + id.String(), "{" + id.String() + "}", "../" + id.String(), id.String() + "\n"} {
		if _, err := anuencia.ParseID[anuencia.ExecutionID](bad); err == nil {
			t.Fatalf("%q accepted", bad)
		}
	}
}
