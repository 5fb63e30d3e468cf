package opa

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// answer is what data.anuencia.decision may be; any other key is malformed.
type answer struct {
	Allow      *bool           `json:"allow"`
	Code       anuencia.Code   `json:"code"`
	PolicyID   string          `json:"policy_id"`
	Reason     []string        `json:"reason"`
	RiskLevel  anuencia.Risk   `json:"risk_level"`
	LoweredBy  string          `json:"lowered_by"`
	Approval   *approvalAnswer `json:"approval"`
	Warnings   []warningAnswer `json:"warnings"`
	Mask       []string        `json:"mask"`
	NextAction string          `json:"next_action"`
}

type approvalAnswer struct {
	Stages         []stageAnswer      `json:"stages"`
	FourEyes       *bool              `json:"four_eyes"`
	ReasonRequired bool               `json:"reason_required"`
	Channels       []anuencia.Channel `json:"channels"`
	ExpiresIn      string             `json:"expires_in"`
	RemindAfter    string             `json:"remind_after"`
	Escalate       *escalateAnswer    `json:"escalate"`
}

type stageAnswer struct {
	Roles  []string `json:"roles"`
	Quorum int      `json:"quorum"`
}

type escalateAnswer struct {
	After string   `json:"after"`
	Roles []string `json:"roles"`
}

type warningAnswer struct {
	Code     string            `json:"code"`
	Severity anuencia.Severity `json:"severity"`
}

const (
	maxPeople = 20  // of one approval
	maxWord   = 100 // bytes of a rule's name or a short code
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// decisionFrom accepts a whole answer only. What the rules must never get wrong
// is held here too: a risk below the base needs a rule that says so, high and
// critical need people, critical two of them.
func decisionFrom(value any, stage anuencia.PolicyStage, base anuencia.Risk) (anuencia.Decision, error) {
	var none anuencia.Decision
	raw, err := json.Marshal(value)
	if err != nil {
		return none, malformed("no JSON form")
	}
	var a answer
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return none, malformed("%v", err)
	}
	if a.Allow == nil {
		return none, malformed("allow is missing")
	}
	if a.PolicyID == "" || len(a.PolicyID) > maxWord || len(a.NextAction) > maxWord {
		return none, malformed("policy_id is missing, or a name is too long")
	}
	if a.RiskLevel != "" && !a.RiskLevel.Valid() {
		return none, malformed("risk_level %q", string(a.RiskLevel))
	}
	if !*a.Allow {
		return a.denial()
	}
	d := anuencia.Decision{Allow: true, PolicyID: a.PolicyID, Reasons: a.Reason, Risk: a.RiskLevel, NextAction: a.NextAction}
	if a.Code != "" {
		return none, malformed("a permission has a code")
	}
	if stage == anuencia.PolicyExecution || stage == anuencia.PolicyTool {
		if err := a.checkRisk(base); err != nil {
			return none, err
		}
		if d.Approval, err = a.requirement(); err != nil {
			return none, err
		}
	} else if a.Approval != nil {
		return none, malformed("an approval is asked for at stage %s", string(stage))
	}
	if d.Warnings, err = a.warnings(); err != nil {
		return none, err
	}
	if d.Mask, err = a.mask(); err != nil {
		return none, err
	}
	return d, nil
}

func (a answer) denial() (anuencia.Decision, error) {
	if a.Code == "" {
		a.Code = anuencia.CodePolicyDenied
	}
	if !a.Code.Valid() {
		return anuencia.Decision{}, malformed("code %q", string(a.Code))
	}
	return anuencia.Decision{
		Code: a.Code, PolicyID: a.PolicyID, Reasons: a.Reason, Risk: a.RiskLevel, NextAction: a.NextAction,
	}, nil
}

func (a answer) checkRisk(base anuencia.Risk) error {
	if a.RiskLevel == "" {
		return malformed("risk_level is missing")
	}
	if a.RiskLevel.Less(base) && a.LoweredBy == "" {
		return malformed("risk_level is below the base and no rule says so")
	}
	if !a.RiskLevel.NeedsApproval() && a.Approval != nil {
		return malformed("an approval is asked for at risk_level %s", string(a.RiskLevel))
	}
	return nil
}

func (a answer) requirement() (anuencia.Requirement, error) {
	var r anuencia.Requirement
	if !a.RiskLevel.NeedsApproval() {
		return r, nil
	}
	if a.Approval == nil || len(a.Approval.Stages) == 0 {
		return r, malformed("risk_level %s asks for nobody", string(a.RiskLevel))
	}
	p := a.Approval
	if p.FourEyes == nil || !*p.FourEyes {
		return r, malformed("four_eyes must be true")
	}
	r.FourEyes, r.ReasonRequired, r.Channels = true, p.ReasonRequired, p.Channels
	for _, s := range p.Stages {
		if s.Quorum < 1 || s.Quorum > maxPeople || len(s.Roles) == 0 {
			return r, malformed("a stage needs roles and a quorum of 1 to %d", maxPeople)
		}
		r.Stages = append(r.Stages, anuencia.Stage(s))
	}
	if n := r.People(); n > maxPeople || (a.RiskLevel == anuencia.RiskCritical && n < 2) {
		return r, malformed("%d people for risk_level %s", n, string(a.RiskLevel))
	}
	for _, c := range p.Channels {
		if !c.Valid() {
			return r, malformed("channel %q", string(c))
		}
	}
	var err error
	if r.ExpiresIn, err = period(p.ExpiresIn); err != nil {
		return r, err
	}
	if r.RemindAfter, err = period(p.RemindAfter); err != nil {
		return r, err
	}
	if p.Escalate != nil {
		r.EscalateRoles = p.Escalate.Roles
		if r.EscalateAfter, err = period(p.Escalate.After); err != nil {
			return r, err
		}
	}
	return r, nil
}

// period reads a duration such as "72h"; "" is the default.
func period(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, malformed("duration %q", s)
	}
	return d, nil
}

func (a answer) warnings() ([]anuencia.Warning, error) {
	var out []anuencia.Warning
	for _, w := range a.Warnings {
		if w.Code == "" || (w.Severity != anuencia.SeverityInfo && w.Severity != anuencia.SeverityWarning) {
			return nil, malformed("warning %q of severity %q", w.Code, string(w.Severity))
		}
		out = append(out, anuencia.Warning(w))
	}
	return out, nil
}

func (a answer) mask() ([]string, error) {
	for _, m := range a.Mask {
		if !strings.HasPrefix(m, "/") {
			return nil, malformed("mask %q is no JSON pointer", m)
		}
	}
	return a.Mask, nil
}
