package anuencia

import "time"

// Responsibility is the register that Spanish and European administrative law
// ask for before an automated act (governance section 10).
type Responsibility struct {
	OwnerUnit  string
	Supervisor string
	Appeals    string // who answers an appeal
	LegalBasis string
}

// Complete says whether all four are named.
func (r Responsibility) Complete() bool {
	return r.OwnerUnit != "" && r.Supervisor != "" && r.Appeals != "" && r.LegalBasis != ""
}

// Limit is a rate: Count in Window, with Burst at once.
type Limit struct {
	Count  int
	Window time.Duration
	Burst  int
}

// Text is a piece of words in the languages that the catalog has: by "es" and
// "en".
type Text map[string]string

// Intent is what can be asked for (product.md, Words).
type Intent struct {
	Name           string
	Title          Text
	Description    Text
	Subject        string   // JSON pointer into the input: the person the act concerns; "" for none
	Risk           Risk     // base risk
	Roles          []string // who may ask; "*" for every resolved actor
	OwnRoles       []string // who may ask only about themselves (subject = own institution id)
	Agent          string
	Tool           string // the one tool of a direct agent
	Command        string // the Telegram command without slash, "" for none
	Timeout        time.Duration
	Limit          Limit  // zero: the default
	InputSchema    []byte // JSON Schema, canonical JSON
	Responsibility Responsibility
}

// Agent is who does it.
type Agent struct {
	Name   string
	Runner string   // "direct", "model", "uhp"
	Tools  []string // allow-list
	Roles  []string // actors who may be served by it; "*" for all
}

// Tool is one action (governance section 9). Config is the kind's own settings,
// canonical JSON, as internal/catalog validated them.
type Tool struct {
	Name        string
	Kind        string // "sql_view", "sql_action", "document_search", "artifact", ...
	Description Text
	InputSchema []byte // JSON Schema, canonical JSON
	Risk        Risk
	Timeout     time.Duration
	Effect      bool
	Idempotent  bool
	Config      []byte
	Digest      string // hex SHA-256 of the whole definition, RFC 8785
}
