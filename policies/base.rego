# The rules of the house. A deny is [rank, rule, next_action]: the lowest rank is
# named, since a forbidden thing must be called forbidden before anything else is
# said of it. An institution adds to deny, raise, stages_of, mask and warning in
# files of its own.
package anuencia

# Without a rule that grants, the answer is no.
default decision := {
	"allow": false,
	"code": "POLICY_DENIED",
	"policy_id": "policy.default",
	"reason": ["policy.default"],
}

decision := {
	"allow": false,
	"code": "POLICY_DENIED",
	"policy_id": first[1],
	"reason": [d[1] | some d in sort(deny)],
	"risk_level": risk_level,
	"next_action": first[2],
} if {
	count(deny) > 0
	first := min(deny)
} else := {
	"allow": true,
	"policy_id": granted_by,
	"reason": reasons,
	"risk_level": risk_level,
	"lowered_by": lowered_by,
	"approval": approval,
	"warnings": warning,
	"mask": mask,
} if {
	asking
	granted_by := min(grant)
} else := {
	"allow": true,
	"policy_id": granted_by,
	"reason": [],
} if {
	not asking
	granted_by := min(grant)
}

# Who is asked for what.

asking if input.stage == "execution"

asking if input.stage == "tool"

holds(roles) if "*" in roles

holds(roles) if {
	some role in roles
	role in input.actor.roles
}

deny contains [0, "actor.suspended", "ask_office"] if input.actor.suspended

# What the catalog offers, and to whom.

offered if holds(input.intent.roles)

about_self if {
	holds(input.intent.own_roles)
	input.subject == input.actor.institution_id
	input.subject != ""
}

grant contains "intent.offered" if {
	asking
	offered
}

grant contains "intent.own" if {
	asking
	not offered
	about_self
}

deny contains [30, "intent.own", "ask_own"] if {
	asking
	not offered
	holds(input.intent.own_roles)
	not about_self
}

deny contains [40, "intent.role", "ask_office"] if {
	asking
	not offered
	not holds(input.intent.own_roles)
}

# How much harm it can do.

order := {"low": 1, "medium": 2, "high": 3, "critical": 4}

level := ["", "low", "medium", "high", "critical"]

base_rank := order[input.risk.base]

raised_rank := max([base_rank, max(raise)[0]]) if {
	count(raise) > 0
} else := base_rank

# Lower than the base only by a rule that says so, and never against one that
# raises. Such a rule lives in the package lowering, by intent: [level, rule].
lower contains [order[l[0]], l[1]] if some l in data.lowering[input.intent.name]

risk_rank := min([base_rank, min(lower)[0]]) if {
	count(lower) > 0
	raised_rank == base_rank
} else := raised_rank

risk_level := level[risk_rank]

default lowered_by := ""

lowered_by := min(lower)[1] if risk_rank < base_rank

needs_approval if risk_rank >= order.high

raise contains [order[input.tool.risk], "risk.tool"] if {
	asking
	order[input.tool.risk] > order[input.intent.risk]
}

reasons := [r[1] | some r in raise; r[0] == risk_rank] if {
	count(raise) > 0
} else := ["risk.base"] if {
	needs_approval
} else := []

# Who must consent.

default approval := null

approval := {
	"stages": stages,
	"four_eyes": true,
	"reason_required": critical,
	"channels": channels,
	"expires_in": "72h",
	"remind_after": "24h",
} if {
	needs_approval
}

default critical := false

critical if risk_rank == order.critical

stages := own if {
	own := stages_of[input.intent.name]
} else := [{"roles": ["approver"], "quorum": 2}] if {
	critical
} else := [{"roles": ["approver"], "quorum": 1}]

# A critical act is approved only where it can be seen whole.
channels := ["ui", "api"] if critical

channels := [] if not critical

warning contains {"code": "approval_multiple", "severity": "info"} if critical

# Who may decide.

grant contains "approval.allowed" if input.stage == "approval"

deny contains [20, "approval.four_eyes", "another_person"] if {
	input.stage == "approval"
	input.actor.id in {input.approval.requester, input.approval.on_behalf_of}
}

deny contains [25, "approval.admin", "another_person"] if {
	input.stage == "approval"
	"admin" in input.actor.roles
}

deny contains [30, "approval.role", "another_person"] if {
	input.stage == "approval"
	not holds({role | some stage in input.approval.stages; some role in stage.roles})
}

deny contains [40, "decision.channel", "use_console_or_api"] if {
	input.stage == "approval"
	input.verdict == "approve"
	count(input.approval.channels) > 0
	not input.channel in input.approval.channels
}

# What may leave, and who may read it.

grant contains "output.allowed" if input.stage == "output"

deny contains [30, "output.reader", "ask_office"] if {
	input.stage == "output"
	not offered
	not about_self
	not holds(["approver", "auditor"])
}

# A tool's own bookkeeping is not part of its answer.
mask contains "/interno" if asking
