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

// decision is the body of .../approve and .../reject.
type decision struct {
	Reason      string `json:"reason" validate:"max=2000"`
	SubjectHash string `json:"subject_hash" validate:"omitempty,len=64,hexadecimal"`
}

// rootDecision is the body of /aprobar and /rechazar.
type rootDecision struct {
	ApprovalID  string `json:"approval_id" validate:"required,max=64"`
	Reason      string `json:"reason" validate:"max=2000"`
	SubjectHash string `json:"subject_hash" validate:"omitempty,len=64,hexadecimal"`
}

func (s *surface) decideRef(v anuencia.Verdict) httpkit.Handler {
	return func(c *httpkit.Call) error {
		c.Decides()
		var body decision
		if err := c.Decode(&body); err != nil {
			return err
		}
		return s.decide(c, harness.DecideCommand{Ref: c.Param("ref"), Verdict: v, Reason: body.Reason, SubjectHash: body.SubjectHash})
	}
}

func (s *surface) decideBody(v anuencia.Verdict) httpkit.Handler {
	return func(c *httpkit.Call) error {
		c.Decides()
		var body rootDecision
		if err := c.Decode(&body); err != nil {
			return err
		}
		return s.decide(c, harness.DecideCommand{Ref: body.ApprovalID, Verdict: v, Reason: body.Reason, SubjectHash: body.SubjectHash})
	}
}

func (s *surface) decide(c *httpkit.Call, cmd harness.DecideCommand) error {
	a, err := s.o.Service.Decide(c.Context(), c.Request, cmd)
	if err != nil {
		return err
	}
	return c.Answer(a)
}

// approvalRow is an approval as its approvers see it (governance section 6).
type approvalRow struct {
	ApprovalID      string          `json:"approval_id"`
	Code            string          `json:"code"`
	ExecutionID     string          `json:"execution_id"`
	Status          string          `json:"status"`
	Intent          string          `json:"intent"`
	Title           string          `json:"title"`
	RiskLevel       string          `json:"risk_level"`
	Reasons         []reasonRow     `json:"reasons"`
	Requester       personRow       `json:"requester"`
	OnBehalfOf      *string         `json:"on_behalf_of"`
	Channel         string          `json:"channel"`
	Agent           string          `json:"agent"`
	Tool            string          `json:"tool"`
	Arguments       json.RawMessage `json:"arguments"`
	Before          json.RawMessage `json:"before"`
	Subject         json.RawMessage `json:"subject"`
	SubjectHash     string          `json:"subject_hash"`
	SubjectHashHead string          `json:"subject_hash_short"`
	Stages          []stageRow      `json:"stages"`
	ReasonRequired  bool            `json:"reason_required"`
	Missing         int             `json:"missing"`
	Decisions       []decisionRow   `json:"decisions"`
	Display         map[string]any  `json:"display"`
	Hidden          []hiddenRow     `json:"hidden_characters"`
	CreatedAt       time.Time       `json:"created_at"`
	ExpiresAt       time.Time       `json:"expires_at"`
	ClosedAt        *time.Time      `json:"closed_at"`
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

// hiddenRow warns of text that is not what it looks like.
type hiddenRow struct {
	Path  string   `json:"path"`
	Kinds []string `json:"kinds"`
	Shown string   `json:"shown"`
}

const shortHash = 8

func (s *surface) approvalOf(c *httpkit.Call) func(harness.ApprovalView) approvalRow {
	lang, words := c.Lang(), c.Words()
	return func(v harness.ApprovalView) approvalRow {
		a, e := v.Approval, v.Execution
		row := approvalRow{
			ApprovalID: a.ID.String(), Code: a.ShortCode, ExecutionID: a.ExecutionID.String(), Status: string(a.Status),
			Intent: a.Intent, Title: textIn(v.Intent.Title, lang, a.Intent), RiskLevel: string(a.Risk), Reasons: []reasonRow{},
			Requester: personRow{
				PersonID: e.Actor.ID.String(), DisplayName: e.Actor.DisplayName, Roles: nonNil(e.Actor.Roles), Units: nonNil(e.Actor.Units),
			},
			OnBehalfOf: optionalID(a.OnBehalfOf), Channel: string(e.Channel), Agent: e.Step.Agent, Tool: e.Step.Tool,
			SubjectHash: a.SubjectHash, SubjectHashHead: a.SubjectHash[:min(shortHash, len(a.SubjectHash))], Subject: json.RawMessage(a.Subject),
			Stages: []stageRow{}, ReasonRequired: a.Requirement.ReasonRequired, Missing: v.Missing, Decisions: []decisionRow{},
			Hidden: []hiddenRow{}, CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, ClosedAt: optionalTime(a.ClosedAt),
		}
		row.Arguments, row.Before = subjectParts(a.Subject)
		for _, rule := range a.Reasons {
			row.Reasons = append(row.Reasons, reasonRow{Rule: rule, Text: words.Text(lang, "rule."+rule)})
		}
		for _, st := range a.Requirement.Stages {
			row.Stages = append(row.Stages, stageRow{Roles: nonNil(st.Roles), Quorum: st.Quorum})
		}
		for _, d := range a.Decisions {
			row.Decisions = append(row.Decisions, decisionRow{
				PersonID: d.Approver.String(), DisplayName: d.ApproverName, Verdict: string(d.Verdict), Reason: d.Reason,
				Channel: string(d.Channel), SubjectHash: d.SubjectHash, DecidedAt: d.At,
			})
		}
		row.Display = map[string]any{}
		for name, raw := range map[string]json.RawMessage{"arguments": row.Arguments, "before": row.Before} {
			shown, hidden := shownOf("/"+name, raw)
			row.Display[name] = shown
			row.Hidden = append(row.Hidden, hidden...)
		}
		return row
	}
}

// subjectParts takes arguments and before out of the very text that was hashed.
func subjectParts(subject string) (arguments, before json.RawMessage) {
	var parts struct {
		Arguments json.RawMessage `json:"arguments"`
		Before    json.RawMessage `json:"before"`
	}
	if err := json.Unmarshal([]byte(subject), &parts); err != nil {
		return json.RawMessage("null"), json.RawMessage("null")
	}
	return orNull(parts.Arguments), orNull(parts.Before)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// shownOf gives a JSON value as it may be shown, and where it would deceive.
func shownOf(path string, raw json.RawMessage) (any, []hiddenRow) {
	shown, found, err := display.Value(string(raw))
	if err != nil {
		return nil, nil
	}
	out := make([]hiddenRow, len(found))
	for i, f := range found {
		out[i] = hiddenRow{Path: path + f.Path, Kinds: texts(f.Kinds), Shown: f.Shown}
	}
	return shown, out
}

func nonNil(list []string) []string { return append([]string{}, list...) }

func textIn(t anuencia.Text, lang, fallback string) string {
	if v := t[lang]; v != "" {
		return v
	}
	if v := t["es"]; v != "" {
		return v
	}
	return fallback
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
