package anuencia

import "time"

// Stage is one requirement of an approval: Quorum distinct people who hold one
// of Roles.
type Stage struct {
	Roles  []string
	Quorum int
}

// Requirement is what policy asks of an approval (governance section 5).
type Requirement struct {
	Stages         []Stage
	FourEyes       bool
	ReasonRequired bool // on approve too; on reject it always is
	Channels       []Channel
	ExpiresIn      time.Duration
	RemindAfter    time.Duration
	EscalateAfter  time.Duration
	EscalateRoles  []string
}

// People is the least number of distinct people that can satisfy all stages.
func (r Requirement) People() int {
	n := 0
	for _, s := range r.Stages {
		n += s.Quorum
	}
	return n
}

// PolicyStage is the point at which policy is asked.
type PolicyStage string

// The stages.
const (
	PolicyExecution PolicyStage = "execution" // at intake and again at resume
	PolicyTool      PolicyStage = "tool"
	PolicyApproval  PolicyStage = "approval" // may this person decide this?
	PolicyOutput    PolicyStage = "output"   // what may leave, masked how
)

// Decision is what the policy engine answered. The zero value is a denial.
type Decision struct {
	Allow      bool
	Code       Code // of a denial; POLICY_DENIED when policy names none
	PolicyID   string
	Reasons    []string // names of the rules that raised the risk or denied
	Risk       Risk
	Approval   Requirement
	Warnings   []Warning
	Mask       []string // JSON pointers into the result
	NextAction string
	Revision   string
}

// Severity of a warning.
type Severity string

// The severities.
const (
	SeverityInfo    Severity = "info"
	SeverityWarning Severity = "warning"
)

// Warning is a non-fatal condition of the standard result. The message is the
// catalog's, by code.
type Warning struct {
	Code     string
	Severity Severity
}

// Source is something consulted during an execution.
type Source struct {
	Type string // "sql_view", "document", ...
	ID   string
	Ref  string
	Hash string // hex SHA-256 of what was read; "" when there is none
}
