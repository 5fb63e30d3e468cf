package rest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/display"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// approvalRow is an approval as its approvers see it (governance section 6).
// Arguments, before and subject are as hashed; display holds the same arguments
// and before with every character written out that could deceive.
type approvalRow struct {
	ApprovalID       string          `json:"approval_id"`
	ShortCode        string          `json:"short_code"`
	ExecutionID      string          `json:"execution_id"`
	Status           string          `json:"status"`
	Intent           string          `json:"intent"`
	Title            string          `json:"title"`
	RiskLevel        string          `json:"risk_level"`
	RiskText         string          `json:"risk_text"`
	PolicyID         *string         `json:"policy_id"`
	Reasons          []reasonRow     `json:"reasons"`
	Requester        personRow       `json:"requester"`
	OnBehalfOf       *string         `json:"on_behalf_of"`
	Channel          string          `json:"channel"`
	SubjectPerson    *string         `json:"subject_person"`
	Agent            string          `json:"agent"`
	Tool             string          `json:"tool"`
	Arguments        json.RawMessage `json:"arguments"`
	Before           json.RawMessage `json:"before"`
	Display          displayRow      `json:"display"`
	HiddenCharacters []hiddenRow     `json:"hidden_characters"`
	Warnings         []warningRow    `json:"warnings"`
	Subject          json.RawMessage `json:"subject"`
	SubjectHash      string          `json:"subject_hash"`
	SubjectHashShort string          `json:"subject_hash_short"`
	Stages           []stageRow      `json:"stages"`
	ReasonRequired   bool            `json:"reason_required"`
	Channels         []string        `json:"channels"`
	Missing          int             `json:"missing"`
	Decisions        []decisionRow   `json:"decisions"`
	CreatedAt        time.Time       `json:"created_at"`
	ExpiresAt        time.Time       `json:"expires_at"`
	ClosedAt         *time.Time      `json:"closed_at"`
}

type reasonRow struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

type personRow struct {
	PersonID    string   `json:"person_id"`
	DisplayName string   `json:"display_name"`
	Roles       []string `json:"roles"`
	Units       []string `json:"units"`
}

type stageRow struct {
	Roles  []string `json:"roles"`
	Quorum int      `json:"quorum"`
}

type decisionRow struct {
	PersonID    string    `json:"person_id"`
	DisplayName string    `json:"display_name"`
	Verdict     string    `json:"verdict"`
	Reason      string    `json:"reason"`
	Channel     string    `json:"channel"`
	SubjectHash string    `json:"subject_hash"`
	DecidedAt   time.Time `json:"decided_at"`
}

type displayRow struct {
	Arguments any `json:"arguments"`
	Before    any `json:"before"`
}

// hiddenRow warns of text that is not what it looks like.
type hiddenRow struct {
	Path  string   `json:"path"`
	Kinds []string `json:"kinds"`
	Shown string   `json:"shown"`
}

type warningRow struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
}

const (
	shortHash     = 8 // hex digits that people compare
	warningHidden = "hidden_characters"
)

func (s *surface) approvalOf(c *httpkit.Call) func(harness.ApprovalView) approvalRow {
	lang, words := c.Lang(), c.Words()
	return func(v harness.ApprovalView) approvalRow {
		a, e := v.Approval, v.Execution
		row := approvalRow{
			ApprovalID: a.ID.String(), ShortCode: a.ShortCode, ExecutionID: a.ExecutionID.String(), Status: string(a.Status),
			Intent: a.Intent, Title: textIn(v.Intent.Title, lang, a.Intent),
			RiskLevel: string(a.Risk), RiskText: words.Text(lang, "risk."+string(a.Risk)), PolicyID: optional(a.PolicyID), Reasons: []reasonRow{},
			Requester: personRow{
				PersonID: e.Actor.ID.String(), DisplayName: shown(e.Actor.DisplayName), Roles: nonNil(e.Actor.Roles), Units: nonNil(e.Actor.Units),
			},
			OnBehalfOf: optionalID(a.OnBehalfOf), Channel: string(e.Channel), SubjectPerson: optional(e.SubjectRef),
			Subject:     orNull(json.RawMessage(a.Subject)),
			SubjectHash: a.SubjectHash, SubjectHashShort: a.SubjectHash[:min(shortHash, len(a.SubjectHash))],
			Stages: stagesOf(a), ReasonRequired: a.Requirement.ReasonRequired, Channels: texts(a.Requirement.Channels),
			Missing: v.Missing, Decisions: decisionsOf(a, shown), HiddenCharacters: []hiddenRow{}, Warnings: []warningRow{},
			CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, ClosedAt: optionalTime(a.ClosedAt),
		}
		for _, rule := range a.Reasons {
			row.Reasons = append(row.Reasons, reasonRow{Rule: rule, Text: words.Text(lang, "rule."+rule)})
		}
		parts := subjectOf(a.Subject)
		row.Agent, row.Tool, row.Arguments, row.Before = parts.Agent, parts.Tool, orNull(parts.Arguments), orNull(parts.Before)
		row.Display.Arguments = row.show("/arguments", row.Arguments)
		row.Display.Before = row.show("/before", row.Before)
		if len(row.HiddenCharacters) > 0 {
			row.Warnings = append(row.Warnings, warningRow{
				Code: warningHidden, Message: words.WarningMessage(lang, warningHidden), Severity: string(anuencia.SeverityWarning),
			})
		}
		return row
	}
}

// show gives a part of the subject as it may be shown, and notes where it would
// deceive.
func (r *approvalRow) show(path string, raw json.RawMessage) any {
	v, found, err := display.Value(string(raw))
	if err != nil {
		return nil // what is hashed is RFC 8785 text, so this is no answer a caller can cause
	}
	for _, f := range found {
		r.HiddenCharacters = append(r.HiddenCharacters, hiddenRow{Path: path + f.Path, Kinds: texts(f.Kinds), Shown: f.Shown})
	}
	return v
}

func shown(text string) string {
	out, _ := display.Text(text)
	return out
}

// verbatim is for auditors: evidence is what was written.
func verbatim(text string) string { return text }

func stagesOf(a anuencia.Approval) []stageRow {
	out := []stageRow{}
	for _, st := range a.Requirement.Stages {
		out = append(out, stageRow{Roles: nonNil(st.Roles), Quorum: st.Quorum})
	}
	return out
}

// decisionsOf lists what was said; text says how people's own words are given.
func decisionsOf(a anuencia.Approval, text func(string) string) []decisionRow {
	out := []decisionRow{}
	for _, d := range a.Decisions {
		out = append(out, decisionRow{
			PersonID: d.Approver.String(), DisplayName: text(d.ApproverName), Verdict: string(d.Verdict), Reason: text(d.Reason),
			Channel: string(d.Channel), SubjectHash: d.SubjectHash, DecidedAt: d.At,
		})
	}
	return out
}

// subject is what an approver is shown of the very text that was hashed: the
// execution may have gone on since.
type subject struct {
	Agent     string          `json:"agent"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Before    json.RawMessage `json:"before"`
}

func subjectOf(text string) subject {
	var parts subject
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return subject{} // it is our own RFC 8785 text; shown empty rather than not at all
	}
	return parts
}

func (s *surface) approvals(c *httpkit.Call) error {
	q := c.Query()
	f := harness.ApprovalFilter{Page: q.Page(), Status: httpkit.Enum[anuencia.ApprovalStatus](q, "status"), Intent: q.Text("intent")}
	if err := q.Err(); err != nil {
		return err
	}
	items, next, err := s.o.Service.Approvals(c.Context(), c.Request, f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(items, next, s.approvalOf(c)))
}

func (s *surface) approval(c *httpkit.Call) error {
	v, err := s.o.Service.Approval(c.Context(), c.Request, c.Param("ref"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.approvalOf(c)(v))
}
