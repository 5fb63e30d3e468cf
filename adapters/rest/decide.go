package rest

import (
	"strings"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
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
		ref := c.Param("ref")
		c.DecidesOn(ref)
		var body decision
		if err := c.Decode(&body); err != nil {
			return err
		}
		return s.decide(c, harness.DecideCommand{Ref: ref, Verdict: v, Reason: body.Reason, SubjectHash: body.SubjectHash})
	}
}

func (s *surface) decideBody(v anuencia.Verdict) httpkit.Handler {
	return func(c *httpkit.Call) error {
		c.Decides()
		var body rootDecision
		if err := c.Decode(&body); err != nil {
			return err
		}
		c.DecidesOn(body.ApprovalID)
		return s.decide(c, harness.DecideCommand{Ref: body.ApprovalID, Verdict: v, Reason: body.Reason, SubjectHash: body.SubjectHash})
	}
}

// decide hands the act over. A reason of spaces is none, and a hash is the same
// in either case of its letters.
func (s *surface) decide(c *httpkit.Call, cmd harness.DecideCommand) error {
	cmd.Reason = strings.TrimSpace(cmd.Reason)
	cmd.SubjectHash = strings.ToLower(cmd.SubjectHash)
	a, err := s.o.Service.Decide(c.Context(), c.Request, cmd)
	if err != nil {
		return err
	}
	return c.Answer(a)
}
