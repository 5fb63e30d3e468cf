package anuencia_test

import data.anuencia

# ask is a question about an intent that the clerk may ask for.
ask := {
	"stage": "execution",
	"intent": {"name": "algo.hacer", "risk": "low", "roles": ["registro"], "own_roles": ["estudiante"]},
	"tool": {"name": "algo", "risk": "low"},
	"actor": {"id": "p1", "institution_id": "RA-1", "roles": ["registro"], "suspended": false},
	"channel": "api",
	"input": {},
	"subject": "2023-114",
	"risk": {"base": "low"},
}

with_risk(risk) := object.union(ask, {"risk": {"base": risk}, "intent": {"risk": risk}})

with_actor(actor) := object.union(ask, {"actor": actor})

student := {"id": "p2", "institution_id": "2023-114", "roles": ["estudiante"], "suspended": false}

decide := {
	"stage": "approval",
	"intent": {"name": "algo.hacer"},
	"actor": {"id": "p3", "roles": ["approver"], "suspended": false},
	"channel": "telegram",
	"verdict": "approve",
	"risk": {"base": "high"},
	"approval": {"requester": "p1", "on_behalf_of": "", "stages": [{"roles": ["approver"], "quorum": 1}], "channels": []},
}

test_low_is_allowed if {
	d := anuencia.decision with input as ask
	d.allow
	d.policy_id == "intent.offered"
	d.risk_level == "low"
	d.reason == []
	d.warnings == set()
	d.mask == {"/interno"}
	d.approval == null
}

test_medium_is_allowed_without_approval if {
	d := anuencia.decision with input as with_risk("medium")
	d.allow
	d.risk_level == "medium"
	d.approval == null
}

test_high_needs_one_person if {
	d := anuencia.decision with input as with_risk("high")
	d.allow
	d.reason == ["risk.base"]
	d.approval.stages == [{"roles": ["approver"], "quorum": 1}]
	d.approval.four_eyes
	not d.approval.reason_required
	d.approval.channels == []
}

test_critical_needs_two_people_who_see_it_whole if {
	d := anuencia.decision with input as with_risk("critical")
	d.allow
	d.approval.stages == [{"roles": ["approver"], "quorum": 2}]
	d.approval.reason_required
	d.approval.channels == ["ui", "api"]
	d.warnings == {{"code": "approval_multiple", "severity": "info"}}
}

test_the_tool_raises_the_risk if {
	question := object.union(ask, {"tool": {"risk": "high"}, "risk": {"base": "high"}})
	d := anuencia.decision with input as question
	d.risk_level == "high"
	d.reason == ["risk.tool"]
	d.approval.four_eyes
}

test_a_rule_lowers_the_risk if {
	d := anuencia.decision with input as with_risk("high")
		with data.lowering as {"algo.hacer": [["low", "algo.menor"]]}
	d.risk_level == "low"
	d.lowered_by == "algo.menor"
	d.approval == null
}

test_a_lowered_critical_keeps_its_approval if {
	d := anuencia.decision with input as with_risk("critical")
		with data.lowering as {"algo.hacer": [["high", "algo.menor"]]}
	d.risk_level == "high"
	d.lowered_by == "algo.menor"
	count(d.approval.stages) == 1
}

test_a_raise_is_not_lowered if {
	d := anuencia.decision with input as ask
		with data.anuencia.raise as {[3, "algo.mayor"]}
		with data.lowering as {"algo.hacer": [["low", "algo.menor"]]}
	d.risk_level == "high"
	d.reason == ["algo.mayor"]
	d.lowered_by == ""
}

test_everyone if {
	question := object.union(with_actor(student), {"intent": {"roles": ["*"]}})
	d := anuencia.decision with input as question
	d.allow
	d.policy_id == "intent.offered"
}

test_about_oneself if {
	d := anuencia.decision with input as with_actor(student)
	d.allow
	d.policy_id == "intent.own"
}

test_about_another_is_denied if {
	d := anuencia.decision with input as object.union(with_actor(student), {"subject": "2020-001"})
	not d.allow
	d.code == "POLICY_DENIED"
	d.policy_id == "intent.own"
	d.next_action == "ask_own"
	d.reason == ["intent.own"]
	d.risk_level == "low"
}

test_nobody_is_not_oneself if {
	nobody := object.union(student, {"institution_id": ""})
	d := anuencia.decision with input as object.union(with_actor(nobody), {"subject": ""})
	d.policy_id == "intent.own"
}

test_other_roles_are_denied if {
	d := anuencia.decision with input as with_actor(object.union(student, {"roles": ["auditor"]}))
	not d.allow
	d.policy_id == "intent.role"
	d.next_action == "ask_office"
}

test_no_roles_are_denied if {
	d := anuencia.decision with input as with_actor(object.union(student, {"roles": []}))
	d.policy_id == "intent.role"
}

test_a_suspended_person_is_denied_everywhere if {
	every question in [ask, decide, object.union(ask, {"stage": "output"})] {
		d := anuencia.decision with input as object.union(question, {"actor": {"suspended": true}})
		not d.allow
		d.policy_id == "actor.suspended"
	}
}

test_the_tool_stage_asks_the_same if {
	d := anuencia.decision with input as object.union(ask, {"stage": "tool"})
	d.allow
	d.risk_level == "low"
}

test_an_unknown_stage_is_denied if {
	every question in [object.union(ask, {"stage": "other"}), {}] {
		d := anuencia.decision with input as question
		not d.allow
		d.policy_id == "policy.default"
	}
}

test_an_unknown_risk_is_denied if {
	d := anuencia.decision with input as with_risk("strange")
	not d.allow
	d.policy_id == "policy.default"
}

test_an_approver_may_decide if {
	d := anuencia.decision with input as decide
	d == {"allow": true, "policy_id": "approval.allowed", "reason": []}
}

test_the_requester_may_not_decide if {
	d := anuencia.decision with input as object.union(decide, {"actor": {"id": "p1"}})
	not d.allow
	d.policy_id == "approval.four_eyes"
}

test_who_handed_it_in_may_not_decide if {
	d := anuencia.decision with input as object.union(decide, {"approval": {"on_behalf_of": "p3"}})
	d.policy_id == "approval.four_eyes"
}

test_an_admin_may_not_decide if {
	d := anuencia.decision with input as object.union(decide, {"actor": {"roles": ["admin", "approver"]}})
	d.policy_id == "approval.admin"
}

test_without_the_role_nobody_decides if {
	d := anuencia.decision with input as object.union(decide, {"actor": {"roles": ["registro"]}})
	d.policy_id == "approval.role"
}

test_the_channel_binds_approve if {
	question := object.union(decide, {"approval": {"channels": ["ui", "api"]}})
	d := anuencia.decision with input as question
	d.policy_id == "decision.channel"
	d.next_action == "use_console_or_api"
	api := anuencia.decision with input as object.union(question, {"channel": "api"})
	api.allow
	reject := anuencia.decision with input as object.union(question, {"verdict": "reject"})
	reject.allow
}

test_who_may_read_a_result if {
	question := object.union(ask, {"stage": "output"})
	clerk := anuencia.decision with input as question
	clerk == {"allow": true, "policy_id": "output.allowed", "reason": []}
	own := anuencia.decision with input as object.union(question, {"actor": student})
	own.allow
	approver := anuencia.decision with input as object.union(question, {"actor": {"roles": ["approver"]}})
	approver.allow
	other := anuencia.decision with input as object.union(question, {"actor": {"roles": ["admin"]}})
	other.policy_id == "output.reader"
}
