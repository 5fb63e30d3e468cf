package anuencia_test

import data.anuencia

grant(amount) := {
	"stage": "execution",
	"intent": {"name": "beca.asignar", "risk": "high", "roles": ["registro"], "own_roles": []},
	"tool": {"name": "beca.registrar", "risk": "high"},
	"actor": {"id": "p1", "institution_id": "RA-1", "roles": ["registro"], "suspended": false},
	"channel": "api",
	"input": {"estudiante_id": "2023-114", "monto": amount, "motivo": "apoyo"},
	"subject": "2023-114",
	"risk": {"base": "high"},
}

export(roles) := {
	"stage": "execution",
	"intent": {"name": "datos.exportar", "risk": "high", "roles": ["oficina_datos"], "own_roles": []},
	"tool": {"name": "datos.extraer", "risk": "high"},
	"actor": {"id": "p1", "institution_id": "X", "roles": roles, "suspended": false},
	"channel": "api",
	"input": {"conjunto": "matriculas"},
	"subject": "",
	"risk": {"base": "high"},
}

test_a_grant_is_high if {
	every amount in [1, 9999.99, 10000] {
		d := anuencia.decision with input as grant(amount)
		d.allow
		d.risk_level == "high"
		d.approval.stages == [{"roles": ["approver"], "quorum": 1}]
	}
}

test_a_large_grant_is_critical_and_finance_is_among_its_approvers if {
	every amount in [10000.01, 10001, 500000] {
		d := anuencia.decision with input as grant(amount)
		d.allow
		d.risk_level == "critical"
		d.reason == ["beca.monto_alto"]
		d.approval.stages == [
			{"roles": ["finanzas"], "quorum": 1},
			{"roles": ["secretaria_academica", "finanzas"], "quorum": 1},
		]
		d.approval.channels == ["ui", "api"]
		d.approval.reason_required
	}
}

test_a_student_asks_for_no_grant if {
	d := anuencia.decision with input as object.union(grant(100), {"actor": {"roles": ["estudiante"], "institution_id": "2023-114"}})
	d.policy_id == "intent.role"
}

test_only_the_data_office_exports if {
	every roles in [["estudiante"], ["registro"], ["finanzas", "approver"], ["admin"], []] {
		d := anuencia.decision with input as export(roles)
		not d.allow
		d.code == "POLICY_DENIED"
		d.policy_id == "datos.exportar.restringido"
		d.next_action == "ask_data_office"
		d.risk_level == "high"
	}
	d := anuencia.decision with input as export(["oficina_datos"])
	d.allow
	d.approval.four_eyes
}

test_only_the_data_office_reads_an_export if {
	question := object.union(export(["approver"]), {"stage": "output"})
	d := anuencia.decision with input as question
	d.policy_id == "datos.exportar.restringido"
	office := anuencia.decision with input as object.union(export(["oficina_datos"]), {"stage": "output"})
	office.allow
}
