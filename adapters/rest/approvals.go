package rest

import (
	"context"
	"net/http"
	"strings"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

type decideBody struct {
	Reason      string `json:"reason" validate:"max=2000"`
	SubjectHash string `json:"subject_hash" validate:"omitempty,len=64,hexadecimal,lowercase"`
}

type decideNamedBody struct {
	ApprovalID  string `json:"approval_id" validate:"required,max=64"`
	Reason      string `json:"reason" validate:"max=2000"`
	SubjectHash string `json:"subject_hash" validate:"omitempty,len=64,hexadecimal,lowercase"`
}

// decide is POST /approvals/{id}/approve and .../reject.
func (a *api) decide(v anuencia.Verdict) httpkit.Handler {
	return func(ctx context.Context, c *httpkit.Call) error {
		c.About("verdict", string(v))
		ref, err := pathRef(c)
		if err != nil {
			return err
		}
		var b decideBody
		if err := c.DecodeOptional(&b); err != nil {
			return err //nolint:wrapcheck // a fault of the edge
		}
		return a.settle(ctx, c, harness.DecideCommand{Ref: ref, Verdict: v, Reason: b.Reason, SubjectHash: b.SubjectHash})
	}
}

// decideNamed is POST /aprobar and /rechazar: the same two acts.
func (a *api) decideNamed(v anuencia.Verdict) httpkit.Handler {
	return func(ctx context.Context, c *httpkit.Call) error {
		c.About("verdict", string(v))
		var b decideNamedBody
		if err := c.Decode(&b); err != nil {
			return err //nolint:wrapcheck // a fault of the edge
		}
		c.About("approval", b.ApprovalID)
		return a.settle(ctx, c, harness.DecideCommand{Ref: b.ApprovalID, Verdict: v, Reason: b.Reason, SubjectHash: b.SubjectHash})
	}
}

func (a *api) settle(ctx context.Context, c *httpkit.Call, cmd harness.DecideCommand) error {
	cmd.Reason = strings.TrimSpace(cmd.Reason) // blanks are no reason
	ans, err := a.o.Service.Decide(ctx, request(c), cmd)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return a.answer(c, ans)
}

// anyStatus asks the list of approvals for all, not only those that wait.
const anyStatus = "any"

// approvals is GET /approvals: those that wait, unless status says otherwise.
func (a *api) approvals(ctx context.Context, c *httpkit.Call) error {
	q := c.Query("cursor", "limit", "status", "intent")
	f := harness.ApprovalFilter{Intent: q.Text("intent"), Status: anuencia.ApprovalPending}
	f.Before, f.Limit = q.Page()
	status := q.OneOf("status", func(s string) bool { return s == anyStatus || anuencia.ApprovalStatus(s).Valid() })
	switch status {
	case "":
	case anyStatus:
		f.Status = ""
	default:
		f.Status = anuencia.ApprovalStatus(status)
	}
	if err := q.Err(); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	views, next, err := a.o.Service.Approvals(ctx, request(c), f)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	shown := make([]approvalBody, 0, len(views))
	for _, v := range views {
		b, err := a.viewOf(c, v)
		if err != nil {
			return err
		}
		shown = append(shown, b)
	}
	return writeList(c, shown, next, func(b approvalBody) approvalBody { return b })
}

// approval is GET /approvals/{id}.
func (a *api) approval(ctx context.Context, c *httpkit.Call) error {
	ref, err := pathRef(c)
	if err != nil {
		return err
	}
	v, err := a.o.Service.Approval(ctx, request(c), ref)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	b, err := a.viewOf(c, v)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, b)
}
