package audit

import (
	"encoding/json"
	"fmt"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// SubjectVersion is the version of the approval subject's form.
const SubjectVersion = 1

// Subject is the RFC 8785 form of exactly what would run, and the hex SHA-256
// that an approver's decision names (governance section 1, rule 2).
func Subject(e anuencia.Execution) (text, hash string, err error) {
	before := json.RawMessage("null")
	if e.Step.Before != "" {
		before = json.RawMessage(e.Step.Before)
	}
	behalf := any(nil)
	if !e.OnBehalfOf.IsZero() {
		behalf = e.OnBehalfOf.String()
	}
	text, err = CanonicalOf(map[string]any{
		"v":            SubjectVersion,
		"execution_id": e.ID.String(),
		"step":         e.Step.Number,
		"intent":       e.Intent,
		"agent":        e.Step.Agent,
		"tool":         e.Step.Tool,
		"tool_digest":  e.Step.ToolDigest,
		"arguments":    json.RawMessage(e.Step.Arguments),
		"actor":        e.Actor.ID.String(),
		"on_behalf_of": behalf,
		"before":       before,
	})
	if err != nil {
		return "", "", fmt.Errorf("subject: %w", err)
	}
	return text, Digest(text), nil
}
