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
}

decision := {
	"allow": true,
	"policy_id": min(grant),
	"reason": [],
} if {
	not asking
	count(deny) == 0
	count(grant) > 0
}

decision := object.union(allowed, lowering) if {
	asking
	not needs_approval
	count(deny) == 0
	count(grant) > 0
}

decision := object.union(object.union(allowed, lowering), {"approval": approval}) if {
	asking
	needs_approval
	count(deny) == 0
	count(grant) > 0
}

allowed := {
	"allow": true,
	"policy_id": min(grant),
	"reason": reasons,
	"risk_level": risk_level,
	"warnings": [w | some w in warning],
	"mask": [m | some m in mask],
}

# Who is asked for what.

asking if input.stage in {"execution", "tool"}

deciding if input.stage == "approval"

reading if input.stage == "output"

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

raised_rank := max({base_rank} | {order[r[0]] | some r in raise})

# Lower than the base only by a rule that says so, and never against one that
# raises. Such a rule lives in the package lowering, by intent: [level, rule].
lower contains l if some l in data.lowering[input.intent.name]

lowered if {
	count(lower) > 0
	raised_rank == base_rank
}

risk_rank := min({base_rank} | {order[l[0]] | some l in lower}) if lowered

risk_rank := raised_rank if not lowered

risk_level := level[risk_rank]

default lowering := {}

lowering := {"lowered_by": min(lower)[1]} if risk_rank < base_rank

needs_approval if risk_rank >= 3

raise contains [input.tool.risk, "risk.tool"] if {
	asking
	order[input.tool.risk] > order[input.intent.risk]
}

raised_by := [r[1] | some r in raise; order[r[0]] == risk_rank]

default reasons := []

reasons := raised_by if count(raised_by) > 0

reasons := ["risk.base"] if {
	count(raised_by) == 0
	needs_approval
}

# Who must consent.

approval := {
	"stages": stages,
	"four_eyes": true,
	"reason_required": critical,
	"channels": channels,
	"expires_in": "72h",
	"remind_after": "24h",
}

default critical := false

critical if risk_rank == 4

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

grant contains "approval.allowed" if deciding

deny contains [20, "approval.four_eyes", "another_person"] if {
	deciding
	input.actor.id in {input.approval.requester, input.approval.on_behalf_of}
}

deny contains [25, "approval.admin", "another_person"] if {
	deciding
	"admin" in input.actor.roles
}

deny contains [30, "approval.role", "another_person"] if {
	deciding
	not holds({role | some stage in input.approval.stages; some role in stage.roles})
}

deny contains [40, "decision.channel", "use_console_or_api"] if {
	deciding
	input.verdict == "approve"
	count(input.approval.channels) > 0
	not input.channel in input.approval.channels
}

# What may leave, and who may read it.

grant contains "output.allowed" if reading

deny contains [30, "output.reader", "ask_office"] if {
	reading
	not offered
	not about_self
	not holds(["approver", "auditor"])
}

# A tool's own bookkeeping is not part of its answer.
mask contains "/interno" if asking
