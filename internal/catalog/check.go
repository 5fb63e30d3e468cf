package catalog

import (
	"slices"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// everyone in a list of roles stands for every person of the directory.
const everyone = "*"

// checkAll looks at what the parts say of each other.
func (l *loader) checkAll() {
	for _, name := range sortedKeys(l.c.agents) {
		l.checkAgent("agents.yaml: "+name, l.c.agents[name])
	}
	commands := map[string]string{}
	for _, name := range sortedKeys(l.c.intents) {
		in := l.c.intents[name]
		where := "intents/" + name + ".yaml"
		l.checkIntent(where, in)
		if in.Command == "" {
			continue
		}
		if slices.Contains(reservedCommands(), in.Command) {
			l.problem(where, "command %q is one of the bot's own", in.Command)
		}
		if other, twice := commands[in.Command]; twice {
			l.problem(where, "command %q is also that of intent %q", in.Command, other)
		}
		commands[in.Command] = name
	}
}

// reservedCommands are the bot's own (contracts section 4).
func reservedCommands() []string {
	return []string{"ayuda", "estado", "pendientes", "aprobar", "rechazar", "cancelar", "start"}
}

func (l *loader) checkAgent(where string, a anuencia.Agent) {
	if a.Runner != "direct" {
		l.problem(where, "unknown runner %q", a.Runner)
	}
	if len(a.Tools) == 0 {
		l.problem(where, "has no tools")
	}
	l.checkRoles(where, "roles", a.Roles)
	if len(a.Roles) == 0 {
		l.problem(where, "serves no roles")
	}
	for _, t := range a.Tools {
		if _, known := l.c.tools[t]; !known {
			l.problem(where, "unknown tool %q", t)
		}
	}
}

func (l *loader) checkIntent(where string, in anuencia.Intent) {
	if len(in.Roles) == 0 && len(in.OwnRoles) == 0 {
		l.problem(where, "nobody may ask: roles and own_roles are empty")
	}
	l.checkRoles(where, "roles", in.Roles)
	l.checkRoles(where, "own_roles", in.OwnRoles)
	if len(in.OwnRoles) > 0 && in.Subject == "" {
		l.problem(where, "own_roles needs a subject")
	}
	tool, known := l.c.tools[in.Tool]
	if !known {
		l.problem(where, "unknown tool %q", in.Tool)
	} else if in.Risk.Less(tool.Risk) {
		l.problem(where, "risk is below that of its tool")
	}
	a, known := l.c.agents[in.Agent]
	if !known {
		l.problem(where, "unknown agent %q", in.Agent)
		return
	}
	if !slices.Contains(a.Tools, in.Tool) {
		l.problem(where, "agent %q may not use tool %q", in.Agent, in.Tool)
	}
	if slices.Contains(a.Roles, everyone) {
		return
	}
	for _, r := range slices.Concat(in.Roles, in.OwnRoles) {
		if !slices.Contains(a.Roles, r) {
			l.problem(where, "agent %q does not serve role %q", in.Agent, r)
		}
	}
}

func (l *loader) checkRoles(where, what string, roles []string) {
	seen := map[string]bool{}
	for _, r := range roles {
		if r != everyone && !validName(r) {
			l.problem(where, "%s: %q is not the name of a role", what, r)
		}
		if seen[r] {
			l.problem(where, "%s: %q stands twice", what, r)
		}
		seen[r] = true
	}
}
