package sqlstore

import (
	"errors"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// The structs of this file are what nested domain values look like in a text
// column. A nil list stays nil and an empty one empty, so that what is read is
// what was written. Fields are only ever added.

type handleJSON struct {
	Channel    anuencia.Channel `json:"channel"`
	ExternalID string           `json:"external_id"`
}

type actorJSON struct {
	ID            string            `json:"id"`
	InstitutionID string            `json:"institution_id"`
	DisplayName   string            `json:"display_name"`
	Roles         []string          `json:"roles"`
	Units         []string          `json:"units"`
	Institutional bool              `json:"institutional"`
	Suspended     bool              `json:"suspended"`
	Attributes    map[string]string `json:"attributes"`
	Language      string            `json:"language"`
	Handle        handleJSON        `json:"handle"`
}

func actorToJSON(a anuencia.Actor) actorJSON {
	return actorJSON{
		ID: idText(a.ID), InstitutionID: a.InstitutionID, DisplayName: a.DisplayName, Roles: a.Roles, Units: a.Units,
		Institutional: a.Institutional, Suspended: a.Suspended, Attributes: a.Attributes, Language: a.Language,
		Handle: handleJSON(a.Handle),
	}
}

func (j actorJSON) actor() (anuencia.Actor, error) {
	id, err := parseID[anuencia.PersonID](j.ID)
	if err != nil {
		return anuencia.Actor{}, err
	}
	return anuencia.Actor{
		Person: anuencia.Person{
			ID: id, InstitutionID: j.InstitutionID, DisplayName: j.DisplayName, Roles: j.Roles, Units: j.Units,
			Institutional: j.Institutional, Suspended: j.Suspended, Attributes: j.Attributes, Language: j.Language,
		},
		Handle: anuencia.Handle(j.Handle),
	}, nil
}

// heldJSON is a principal with what its row and token say elsewhere; never the
// credential itself.
type heldJSON struct {
	principalJSON
	ID      string    `json:"id"`
	TokenID string    `json:"token_id"`
	Expires time.Time `json:"expires_at"`
}

// askedJSON is who asked: the actor, who acted for them, and with what.
type askedJSON struct {
	actorJSON
	Behalf    handleJSON `json:"behalf"`
	Principal heldJSON   `json:"principal"`
}

func askedToJSON(e anuencia.Execution) askedJSON {
	p := e.Principal
	return askedJSON{
		actorJSON: actorToJSON(e.Actor), Behalf: handleJSON(e.Behalf),
		Principal: heldJSON{
			principalJSON: principalJSON{
				Name: p.Name, Person: handleJSON(p.Person), Scopes: p.Scopes, Channels: p.Channels, ActFor: p.ActFor,
			},
			ID: idText(p.ID), TokenID: idText(p.TokenID), Expires: p.ExpiresAt,
		},
	}
}

func (j heldJSON) principal() (anuencia.Principal, error) {
	id, err1 := parseID[anuencia.PrincipalID](j.ID)
	token, err2 := parseID[anuencia.TokenID](j.TokenID)
	if err := errors.Join(err1, err2); err != nil {
		return anuencia.Principal{}, err
	}
	return anuencia.Principal{
		ID: id, Name: j.Name, TokenID: token, Person: anuencia.Handle(j.Person), Scopes: j.Scopes, Channels: j.Channels,
		ActFor: j.ActFor, ExpiresAt: j.Expires,
	}, nil
}

func parseID[T ~[16]byte](text string) (T, error) {
	var zero T
	if text == "" {
		return zero, nil
	}
	id, err := anuencia.ParseID[T](text)
	if err != nil {
		return zero, wrap("decode id", err)
	}
	return id, nil
}

type stepJSON struct {
	Number     int           `json:"number"`
	Agent      string        `json:"agent"`
	Tool       string        `json:"tool"`
	ToolDigest string        `json:"tool_digest"`
	Arguments  string        `json:"arguments"`
	Before     string        `json:"before"`
	Effect     bool          `json:"effect"`
	Idempotent bool          `json:"idempotent"`
	Risk       anuencia.Risk `json:"risk"`
	Timeout    time.Duration `json:"timeout_ns"`
}

type sourceJSON struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Ref  string `json:"ref"`
	Hash string `json:"hash"`
}

type warningJSON struct {
	Code     string            `json:"code"`
	Severity anuencia.Severity `json:"severity"`
}

type fieldJSON struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

type faultJSON struct {
	Code         anuencia.Code   `json:"code"`
	Reason       anuencia.Reason `json:"reason"`
	RiskLevel    anuencia.Risk   `json:"risk_level"`
	PolicyID     string          `json:"policy_id"`
	NextAction   string          `json:"next_action"`
	Fields       []fieldJSON     `json:"fields"`
	RetryAfterMS int64           `json:"retry_after_ms"`
	Limit        int64           `json:"limit"`
	Window       string          `json:"window"`
	MaxBytes     int64           `json:"max_bytes"`
	Supported    []string        `json:"supported"`
}

type outcomeJSON struct {
	Result   string        `json:"result"`
	Sources  []sourceJSON  `json:"sources"`
	Warnings []warningJSON `json:"warnings"`
	Fault    *faultJSON    `json:"fault"`
}

// outcomeToJSON leaves the cause of a fault out: it is in the audit event.
func outcomeToJSON(o anuencia.Outcome) outcomeJSON {
	j := outcomeJSON{
		Result:   o.Result,
		Sources:  each(o.Sources, func(s anuencia.Source) sourceJSON { return sourceJSON(s) }),
		Warnings: each(o.Warnings, func(w anuencia.Warning) warningJSON { return warningJSON(w) }),
		Fault:    nil,
	}
	if f := o.Fault; f != nil {
		d := f.Details
		j.Fault = &faultJSON{
			Code: f.Code, Reason: f.Reason, RiskLevel: d.RiskLevel, PolicyID: d.PolicyID, NextAction: d.NextAction,
			Fields:       each(d.Fields, func(e anuencia.FieldError) fieldJSON { return fieldJSON(e) }),
			RetryAfterMS: d.RetryAfterMS, Limit: d.Limit, Window: d.Window, MaxBytes: d.MaxBytes, Supported: d.Supported,
		}
	}
	return j
}

func (j outcomeJSON) outcome() anuencia.Outcome {
	o := anuencia.Outcome{
		Result:   j.Result,
		Sources:  each(j.Sources, func(s sourceJSON) anuencia.Source { return anuencia.Source(s) }),
		Warnings: each(j.Warnings, func(w warningJSON) anuencia.Warning { return anuencia.Warning(w) }),
		Fault:    nil,
	}
	if f := j.Fault; f != nil {
		o.Fault = anuencia.NewFault(f.Code, f.Reason).WithDetails(anuencia.Details{
			RiskLevel: f.RiskLevel, PolicyID: f.PolicyID, NextAction: f.NextAction,
			Fields:       each(f.Fields, func(e fieldJSON) anuencia.FieldError { return anuencia.FieldError(e) }),
			RetryAfterMS: f.RetryAfterMS, Limit: f.Limit, Window: f.Window, MaxBytes: f.MaxBytes, Supported: f.Supported,
		})
	}
	return o
}

type stageJSON struct {
	Roles  []string `json:"roles"`
	Quorum int      `json:"quorum"`
}

type requirementJSON struct {
	Stages         []stageJSON        `json:"stages"`
	FourEyes       bool               `json:"four_eyes"`
	ReasonRequired bool               `json:"reason_required"`
	Channels       []anuencia.Channel `json:"channels"`
	ExpiresIn      time.Duration      `json:"expires_in_ns"`
	RemindAfter    time.Duration      `json:"remind_after_ns"`
	EscalateAfter  time.Duration      `json:"escalate_after_ns"`
	EscalateRoles  []string           `json:"escalate_roles"`
}

func requirementToJSON(r anuencia.Requirement) requirementJSON {
	return requirementJSON{
		Stages:   each(r.Stages, func(s anuencia.Stage) stageJSON { return stageJSON(s) }),
		FourEyes: r.FourEyes, ReasonRequired: r.ReasonRequired, Channels: r.Channels, ExpiresIn: r.ExpiresIn,
		RemindAfter: r.RemindAfter, EscalateAfter: r.EscalateAfter, EscalateRoles: r.EscalateRoles,
	}
}

func (j requirementJSON) requirement() anuencia.Requirement {
	return anuencia.Requirement{
		Stages:   each(j.Stages, func(s stageJSON) anuencia.Stage { return anuencia.Stage(s) }),
		FourEyes: j.FourEyes, ReasonRequired: j.ReasonRequired, Channels: j.Channels, ExpiresIn: j.ExpiresIn,
		RemindAfter: j.RemindAfter, EscalateAfter: j.EscalateAfter, EscalateRoles: j.EscalateRoles,
	}
}

type principalJSON struct {
	Name     string             `json:"name"`
	Person   handleJSON         `json:"person"`
	Scopes   []anuencia.Scope   `json:"scopes"`
	Channels []anuencia.Channel `json:"channels"`
	ActFor   []string           `json:"act_for"`
}

// each maps a list and keeps nil apart from empty.
func each[A, B any](in []A, f func(A) B) []B {
	if in == nil {
		return nil
	}
	out := make([]B, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}
