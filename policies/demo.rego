# The rules of the demo institution.
package anuencia

# Only the data office exports, whatever the catalog offers.
deny contains [10, "datos.exportar.restringido", "ask_data_office"] if {
	input.intent.name == "datos.exportar"
	input.stage in {"execution", "tool", "output"}
	not "oficina_datos" in input.actor.roles
}

# A large grant binds the budget of the university: two people, finance among
# them, in whatever order they come.
large_grant if {
	input.intent.name == "beca.asignar"
	asking
	input.input.monto > 10000
}

raise contains [order.critical, "beca.monto_alto"] if large_grant

stages_of["beca.asignar"] := [
	{"roles": ["finanzas"], "quorum": 1},
	{"roles": ["secretaria_academica", "finanzas"], "quorum": 1},
] if {
	large_grant
}
