package anuencia

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// Approval is a pending decision on one execution, with what would run and its
// hash (governance section 6). It is a value; see Decide.
type Approval struct {
	ID          ApprovalID
	ShortCode   string
	ExecutionID ExecutionID
	Version     int64
	Status      ApprovalStatus
	Subject     string // RFC 8785 text of exactly what would run
	SubjectHash string // hex SHA-256 of Subject
	Requirement Requirement
	Intent      string
	Risk        Risk
	PolicyID    string
	Reasons     []string
	Requester   PersonID // the actor
	OnBehalfOf  PersonID // who handed it in for the actor, if a person
	Decisions   []ApprovalDecision
	CreatedAt   time.Time
	ExpiresAt   time.Time
	ClosedAt    time.Time
}

// ApprovalDecision is what one person said.
type ApprovalDecision struct {
	ID           EventID // of the approval.decided event that records it
	Approver     PersonID
	ApproverName string
	Handle       Handle   // by which the approver is resolved again at resume
	Roles        []string // held at that moment
	Verdict      Verdict
	Reason       string
	SubjectHash  string
	Channel      Channel
	PrincipalID  PrincipalID
	At           time.Time
}

// DecideResult says what a decision did.
type DecideResult string

// The results of Decide.
const (
	DecisionRecorded DecideResult = "recorded" // counted, more people are needed
	DecisionApproved DecideResult = "approved" // the quorum is met
	DecisionRejected DecideResult = "rejected"
	DecisionRepeated DecideResult = "repeated" // the same person said the same before; nothing changes
	DecisionExpired  DecideResult = "expired"  // it was too late: the approval is now expired
)

// Decide applies one person's verdict (governance section 1, rules 1, 4, 11).
// The caller has authenticated the person and asked policy. Faults: conflict
// 409 with the end's reason, POLICY_DENIED for four-eyes and roles,
// VALIDATION_FAILED for a missing reason or a hash that is not the stored one.
// Expiry turns a pending approval into an expired one: the result is
// DecisionExpired together with the 409 fault, and the new value must be kept.
func (a Approval) Decide(d ApprovalDecision) (Approval, DecideResult, error) {
	if !d.Verdict.Valid() {
		return a, "", Invalid(ReasonSchema, FieldError{Path: "/verdict", Rule: "oneof"})
	}
	mine, decided := a.decisionOf(d.Approver)
	if decided && mine.Verdict == d.Verdict && a.repeatable(mine, d.At) {
		return a, DecisionRepeated, nil
	}
	if f := a.closedFault(); f != nil {
		return a, "", f
	}
	if !d.At.Before(a.ExpiresAt) {
		next, err := a.Close(ApprovalExpired, d.At)
		if err != nil {
			return a, "", err
		}
		return next, DecisionExpired, NewFault(CodeValidation, ReasonExpired)
	}
	if err := a.mayDecide(d); err != nil {
		return a, "", err
	}
	next := a
	next.Decisions = append(slices.Clone(a.Decisions), d)
	if d.Verdict == Reject {
		next, err := next.Close(ApprovalRejected, d.At)
		return next, DecisionRejected, err
	}
	if next.Satisfied() {
		next, err := next.Close(ApprovalApproved, d.At)
		return next, DecisionApproved, err
	}
	return next, DecisionRecorded, nil
}

func (a Approval) mayDecide(d ApprovalDecision) error {
	// Whatever policy says, nobody consents to their own request (governance
	// section 1, rules 1 and 11).
	if d.Approver == a.Requester || d.Approver == a.OnBehalfOf {
		return Denied(PolicyFourEyes)
	}
	if !a.roleFits(d.Roles) {
		return Denied(PolicyApproverRole)
	}
	if len(a.Requirement.Channels) > 0 && d.Verdict == Approve && !slices.Contains(a.Requirement.Channels, d.Channel) {
		return Denied(PolicyChannel)
	}
	if d.SubjectHash != a.SubjectHash {
		return NewFault(CodeValidation, ReasonSubjectMismatch)
	}
	if blank(d.Reason) && (d.Verdict == Reject || a.Requirement.ReasonRequired) {
		return Invalid(ReasonReasonRequired, FieldError{Path: "/reason", Rule: "required"})
	}
	return nil
}

// blank says whether a text shows nothing: white space, controls and invisible
// characters are no reason.
func blank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsPunct(r) || unicode.IsSymbol(r)
	})
}

// Close ends a pending approval for another cause than a decision.
func (a Approval) Close(status ApprovalStatus, at time.Time) (Approval, error) {
	if f := a.closedFault(); f != nil {
		return a, f
	}
	a.Status, a.ClosedAt = status, at
	return a, nil
}

// Supersede ends a pending or approved approval whose subject is no longer what
// would run (governance section 1, rule 2). A new approval asks again.
func (a Approval) Supersede(at time.Time) (Approval, error) {
	if a.Status == ApprovalApproved {
		a.Status = ApprovalPending
	}
	return a.Close(ApprovalSuperseded, at)
}

func (a Approval) closedFault() *Fault {
	switch a.Status {
	case ApprovalPending:
		return nil
	case ApprovalApproved, ApprovalRejected:
		return NewFault(CodeValidation, ReasonDecided)
	case ApprovalExpired:
		return NewFault(CodeValidation, ReasonExpired)
	case ApprovalWithdrawn:
		return NewFault(CodeValidation, ReasonWithdrawn)
	case ApprovalSuperseded:
		return NewFault(CodeValidation, ReasonSuperseded)
	}
	return NewFault(CodeInternal, "")
}

// repeatable: the first answer is given again while open, and after an end
// that agrees with what the person said.
func (a Approval) repeatable(mine ApprovalDecision, at time.Time) bool {
	switch a.Status {
	case ApprovalPending:
		return at.Before(a.ExpiresAt)
	case ApprovalApproved:
		return mine.Verdict == Approve
	case ApprovalRejected:
		return mine.Verdict == Reject
	case ApprovalExpired, ApprovalWithdrawn, ApprovalSuperseded:
		return false
	}
	return false
}

// decisionOf gives the last thing the person said.
func (a Approval) decisionOf(p PersonID) (ApprovalDecision, bool) {
	for _, d := range slices.Backward(a.Decisions) {
		if d.Approver == p {
			return d, true
		}
	}
	return ApprovalDecision{}, false
}

func (a Approval) roleFits(roles []string) bool {
	return slices.ContainsFunc(a.Requirement.Stages, func(s Stage) bool { return intersects(s.Roles, roles) })
}

// Satisfied says whether distinct people fill every stage.
func (a Approval) Satisfied() bool { return a.Missing() == 0 && len(a.Requirement.Stages) > 0 }

// Missing is how many more people are needed. Each person who approved fills
// one place of one stage; the best assignment counts, so that the order in
// which people come does not matter (a maximum bipartite matching by
// augmenting paths).
func (a Approval) Missing() int {
	var approvers []ApprovalDecision
	for _, d := range a.Decisions {
		if d.Verdict == Approve && d.SubjectHash == a.SubjectHash {
			approvers = append(approvers, d)
		}
	}
	return a.Requirement.missing(len(approvers), func(person int, s Stage) bool {
		return intersects(approvers[person].Roles, s.Roles)
	})
}

// CouldBeFilledBy says whether the people given, without the requester and the
// one who handed it in, could together satisfy every stage (governance section
// 1, rule 8).
func (r Requirement) CouldBeFilledBy(people []Person, excluded ...PersonID) bool {
	var eligible []Person
	for _, p := range people {
		known := slices.ContainsFunc(eligible, func(q Person) bool { return q.ID == p.ID })
		if p.Suspended || known || slices.Contains(excluded, p.ID) {
			continue
		}
		eligible = append(eligible, p)
	}
	return len(r.Stages) > 0 && r.missing(len(eligible), func(person int, s Stage) bool {
		return eligible[person].HasAnyRole(s.Roles)
	}) == 0
}

func (r Requirement) missing(people int, fits func(person int, s Stage) bool) int {
	var places []Stage
	for _, s := range r.Stages {
		for range s.Quorum {
			places = append(places, s)
		}
	}
	holder := make([]int, len(places)) // place -> person+1
	var seat func(person int, seen []bool) bool
	seat = func(person int, seen []bool) bool {
		for p, s := range places {
			if seen[p] || !fits(person, s) {
				continue
			}
			seen[p] = true
			if holder[p] == 0 || seat(holder[p]-1, seen) {
				holder[p] = person + 1
				return true
			}
		}
		return false
	}
	filled := 0
	for person := range people {
		if seat(person, make([]bool, len(places))) {
			filled++
		}
	}
	return len(places) - filled
}

func intersects(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
