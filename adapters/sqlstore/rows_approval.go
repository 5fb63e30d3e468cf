package sqlstore

import (
	"errors"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

type approvalRow struct {
	ID          uid     `gorm:"column:id"`
	ShortCode   string  `gorm:"column:short_code"`
	ExecutionID uid     `gorm:"column:execution_id"`
	Version     int64   `gorm:"column:version"`
	Status      string  `gorm:"column:status"`
	Subject     string  `gorm:"column:subject"`
	SubjectHash string  `gorm:"column:subject_hash"`
	Requirement string  `gorm:"column:requirement"`
	Intent      string  `gorm:"column:intent"`
	Risk        string  `gorm:"column:risk"`
	PolicyID    string  `gorm:"column:policy_id"`
	Reasons     string  `gorm:"column:reasons"`
	Requester   uid     `gorm:"column:requester"`
	OnBehalfOf  uid     `gorm:"column:on_behalf_of"`
	CreatedAt   instant `gorm:"column:created_at"`
	ExpiresAt   instant `gorm:"column:expires_at"`
	ClosedAt    instant `gorm:"column:closed_at"`
}

// approvalColumns are all columns of approvals, in the order of approvalArgs.
func approvalColumns() []string {
	return []string{
		"id", "short_code", "execution_id", "version", "status", "subject", "subject_hash", "requirement", "intent", "risk",
		"policy_id", "reasons", "requester", "on_behalf_of", "created_at", "expires_at", "closed_at",
	}
}

func (s *Store) approvalArgs(a anuencia.Approval) ([]any, error) {
	requirement, err1 := encode(requirementToJSON(a.Requirement))
	reasons, err2 := encode(a.Reasons)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return []any{
		idArg(a.ID), a.ShortCode, idArg(a.ExecutionID), a.Version, string(a.Status), a.Subject, a.SubjectHash, requirement,
		a.Intent, string(a.Risk), a.PolicyID, reasons, idArg(a.Requester), idArg(a.OnBehalfOf), s.timeArg(a.CreatedAt),
		s.timeArg(a.ExpiresAt), s.timeArg(a.ClosedAt),
	}, nil
}

func (r approvalRow) approval(decisions []anuencia.ApprovalDecision) (anuencia.Approval, error) {
	requirement, err1 := decode[requirementJSON](r.Requirement)
	reasons, err2 := decode[[]string](r.Reasons)
	if err := errors.Join(err1, err2); err != nil {
		return anuencia.Approval{}, err
	}
	return anuencia.Approval{
		ID: anuencia.ApprovalID(r.ID), ShortCode: r.ShortCode, ExecutionID: anuencia.ExecutionID(r.ExecutionID),
		Version: r.Version, Status: anuencia.ApprovalStatus(r.Status), Subject: r.Subject, SubjectHash: r.SubjectHash,
		Requirement: requirement.requirement(), Intent: r.Intent, Risk: anuencia.Risk(r.Risk), PolicyID: r.PolicyID,
		Reasons: reasons, Requester: anuencia.PersonID(r.Requester), OnBehalfOf: anuencia.PersonID(r.OnBehalfOf),
		Decisions: decisions, CreatedAt: r.CreatedAt.at, ExpiresAt: r.ExpiresAt.at, ClosedAt: r.ClosedAt.at,
	}, nil
}

type decisionRow struct {
	ID           uid     `gorm:"column:id"`
	ApprovalID   uid     `gorm:"column:approval_id"`
	Approver     uid     `gorm:"column:approver"`
	ApproverName string  `gorm:"column:approver_name"`
	Handle       string  `gorm:"column:handle"`
	Roles        string  `gorm:"column:roles"`
	Verdict      string  `gorm:"column:verdict"`
	Reason       string  `gorm:"column:reason"`
	SubjectHash  string  `gorm:"column:subject_hash"`
	Channel      string  `gorm:"column:channel"`
	PrincipalID  uid     `gorm:"column:principal_id"`
	DecidedAt    instant `gorm:"column:decided_at"`
}

// decisionColumns are in the order of decisionArgs.
func decisionColumns() []string {
	return []string{
		"id", "approval_id", "position", "approver", "approver_name", "handle", "roles", "verdict", "reason", "subject_hash", "channel",
		"principal_id", "decided_at",
	}
}

func (s *Store) decisionArgs(a anuencia.ApprovalID, position int, d anuencia.ApprovalDecision) ([]any, error) {
	roles, err1 := encode(d.Roles)
	handle, err2 := encode(handleJSON(d.Handle))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return []any{
		idArg(d.ID), idArg(a), position, idArg(d.Approver), d.ApproverName, handle, roles, string(d.Verdict), d.Reason, d.SubjectHash,
		string(d.Channel), idArg(d.PrincipalID), s.timeArg(d.At),
	}, nil
}

func (r decisionRow) decision() (anuencia.ApprovalDecision, error) {
	roles, err1 := decode[[]string](r.Roles)
	handle, err2 := decode[handleJSON](r.Handle)
	if err := errors.Join(err1, err2); err != nil {
		return anuencia.ApprovalDecision{}, err
	}
	return anuencia.ApprovalDecision{
		Handle: anuencia.Handle(handle),
		ID:     anuencia.EventID(r.ID), Approver: anuencia.PersonID(r.Approver), ApproverName: r.ApproverName, Roles: roles,
		Verdict: anuencia.Verdict(r.Verdict), Reason: r.Reason, SubjectHash: r.SubjectHash, Channel: anuencia.Channel(r.Channel),
		PrincipalID: anuencia.PrincipalID(r.PrincipalID), At: r.DecidedAt.at,
	}, nil
}
