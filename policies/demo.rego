# The rules of the demo institution.
package anuencia

# Only the data office exports, whatever the catalog offers.
deny contains [10, "datos.exportar.restringido", "ask_data_office"] if {
	input.stage in {"execution", "tool", "output"}
	input.intent.name == "datos.exportar"
	not "oficina_datos" in input.actor.roles
}

# A large grant binds the budget of the university: two people, finance among
# them, in whatever order they come.
large_grant if {
	asking
	input.intent.name == "beca.asignar"
	input.input.monto > 10000
}

raise contains ["critical", "beca.monto_alto"] if large_grant

stages_of["beca.asignar"] := [
	{"roles": ["finanzas"], "quorum": 1},
	{"roles": ["secretaria_academica", "finanzas"], "quorum": 1},
] if {
	large_grant
}
