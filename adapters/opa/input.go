package opa

import (
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// inputValue builds the document that the rules see (README, "Input"). It is
// built as parsed terms, which is cheaper than going through JSON.
func inputValue(in harness.PolicyInput) (ast.Value, error) {
	args, err := parse(in.Input)
	if err != nil {
		return nil, fmt.Errorf("policy input: %w", err)
	}
	o := ast.NewObject(
		str("stage", string(in.Stage)),
		field("execution", object(str("id", in.ExecutionID.String()))),
		field("intent", intentTerm(in.Intent)),
		field("agent", object(str("name", in.Agent))),
		field("actor", actorTerm(in.Actor)),
		field("principal", principalTerm(in.Principal)),
		str("channel", string(in.Channel)),
		field("input", args),
		str("subject", subject(args, in.Intent.Subject)),
		field("risk", object(str("base", string(baseRisk(in))))),
		str("time", in.Time.UTC().Format(time.RFC3339Nano)),
		field("history", object()),
		field("grants", ast.ArrayTerm()),
	)
	if t := in.Tool; t != nil {
		put(o, "tool", object(str("name", t.Name), str("kind", t.Kind), str("risk", string(t.Risk)),
			boolean("effect", t.Effect), boolean("idempotent", t.Idempotent)))
	}
	if in.Verdict != "" {
		put(o, "verdict", ast.StringTerm(string(in.Verdict)))
	}
	if a := in.Approval; a != nil {
		put(o, "approval", approvalTerm(*a))
	}
	return o, nil
}

// baseRisk is the worse of the intent's and its tool's: what policy may raise,
// and lower only by a rule that says so.
func baseRisk(in harness.PolicyInput) anuencia.Risk {
	if in.Tool != nil && in.Intent.Risk.Less(in.Tool.Risk) {
		return in.Tool.Risk
	}
	return in.Intent.Risk
}

func intentTerm(in anuencia.Intent) *ast.Term {
	return object(str("name", in.Name), str("risk", string(in.Risk)), list("roles", in.Roles), list("own_roles", in.OwnRoles),
		str("agent", in.Agent), str("tool", in.Tool), str("subject", in.Subject),
		str("owner_unit", in.Responsibility.OwnerUnit))
}

func actorTerm(a anuencia.Actor) *ast.Term {
	attributes := ast.NewObject()
	for k, v := range a.Attributes {
		put(attributes, k, ast.StringTerm(v))
	}
	return object(str("id", a.ID.String()), str("institution_id", a.InstitutionID), list("roles", a.Roles), list("units", a.Units),
		boolean("institutional", a.Institutional), boolean("suspended", a.Suspended),
		field("attributes", ast.NewTerm(attributes)), str("language", a.Language))
}

func principalTerm(p anuencia.Principal) *ast.Term {
	return object(str("id", p.ID.String()), str("name", p.Name), list("scopes", p.Scopes), list("channels", p.Channels),
		list("act_for", p.ActFor))
}

func approvalTerm(a anuencia.Approval) *ast.Term {
	stages := make([]*ast.Term, 0, len(a.Requirement.Stages))
	for _, s := range a.Requirement.Stages {
		stages = append(stages, object(list("roles", s.Roles), field("quorum", ast.IntNumberTerm(s.Quorum))))
	}
	decisions := make([]*ast.Term, 0, len(a.Decisions))
	for _, d := range a.Decisions {
		decisions = append(decisions, object(str("approver", d.Approver.String()), str("verdict", string(d.Verdict)), list("roles", d.Roles)))
	}
	return object(str("id", a.ID.String()), str("status", string(a.Status)), str("risk_level", string(a.Risk)),
		str("requester", person(a.Requester)), str("on_behalf_of", person(a.OnBehalfOf)),
		field("stages", ast.ArrayTerm(stages...)), list("channels", a.Requirement.Channels),
		field("decisions", ast.ArrayTerm(decisions...)))
}

// person gives "" for nobody, so that two absent people are not one.
func person(id anuencia.PersonID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func parse(text string) (*ast.Term, error) {
	if text == "" {
		return object(), nil
	}
	v, err := ast.ValueFromReader(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return ast.NewTerm(v), nil
}

// subject follows the intent's JSON pointer into the input; "" when there is
// nobody.
func subject(input *ast.Term, pointer string) string {
	if pointer == "" {
		return ""
	}
	t := input
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		o, ok := t.Value.(ast.Object)
		if !ok {
			return ""
		}
		if t = o.Get(ast.StringTerm(part)); t == nil {
			return ""
		}
	}
	if s, ok := t.Value.(ast.String); ok {
		return string(s)
	}
	return ""
}

func field(key string, t *ast.Term) [2]*ast.Term {
	return [2]*ast.Term{ast.InternedTerm(key), t}
}

func str(key, value string) [2]*ast.Term { return field(key, ast.StringTerm(value)) }

func boolean(key string, value bool) [2]*ast.Term { return field(key, ast.InternedTerm(value)) }

func list[S ~string](key string, values []S) [2]*ast.Term {
	terms := make([]*ast.Term, 0, len(values))
	for _, v := range values {
		terms = append(terms, ast.StringTerm(string(v)))
	}
	return field(key, ast.ArrayTerm(terms...))
}

func object(fields ...[2]*ast.Term) *ast.Term { return ast.ObjectTerm(fields...) }

func put(o ast.Object, key string, t *ast.Term) { o.Insert(ast.StringTerm(key), t) }
