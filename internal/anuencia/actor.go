package anuencia

import (
	"slices"
	"time"
)

// Handle is how the directory is asked for a person: a name in one channel
// (governance section 7).
type Handle struct {
	Channel    Channel
	ExternalID string
}

// IsZero says whether there is no handle.
func (h Handle) IsZero() bool { return h == Handle{} }

// Person is what the directory answers. ID is the random UUID of this
// installation, to which institutional ids point (contracts section 9).
type Person struct {
	ID            PersonID
	InstitutionID string // the institution's own id, for instance a student code
	DisplayName   string
	Roles         []string
	Units         []string
	Institutional bool
	Suspended     bool
	Attributes    map[string]string
	Language      string // "es", "en" or ""
}

// HasAnyRole says whether p holds one of roles. An empty list matches nobody.
func (p Person) HasAnyRole(roles []string) bool {
	return slices.ContainsFunc(p.Roles, func(r string) bool { return slices.Contains(roles, r) })
}

// Actor is the resolved institutional person behind a request, with the name
// by which the directory knows them on that channel.
type Actor struct {
	Person
	Handle Handle
}

// Principal is the authenticated caller: who holds the credential, not
// necessarily who asks.
type Principal struct {
	ID        PrincipalID
	Name      string
	TokenID   TokenID
	Person    Handle // the person the credential itself is bound to; zero for a machine
	Scopes    []Scope
	Channels  []Channel // the first is the default
	ActFor    []string  // roles of the people it may act for; empty: nobody
	ExpiresAt time.Time // zero: never
}

// Has says whether the credential carries the scope.
func (p Principal) Has(s Scope) bool { return slices.Contains(p.Scopes, s) }

// MayUse says whether the credential may speak on the channel.
func (p Principal) MayUse(c Channel) bool { return slices.Contains(p.Channels, c) }

// DefaultChannel is the first channel of the credential, "" when it has none.
func (p Principal) DefaultChannel() Channel {
	if len(p.Channels) == 0 {
		return ""
	}
	return p.Channels[0]
}

// NeverActFor lists the roles that act_for never covers (contracts section 2).
func NeverActFor() []string { return []string{"approver", "auditor", "admin"} }

// MayActFor says whether the credential may act for person: the person holds a
// role on its list and none of the roles nobody acts for.
func (p Principal) MayActFor(person Person) bool {
	return person.HasAnyRole(p.ActFor) && !person.HasAnyRole(NeverActFor())
}

// Token is a stored credential. The secret itself is never stored: Hash is its
// SHA-256 (governance section 7).
type Token struct {
	ID        TokenID
	Principal Principal // TokenID and ExpiresAt repeated there
	Hash      [32]byte
	CreatedAt time.Time
	CreatedBy string // display name or "cli"
	RevokedAt time.Time
}

// Usable says whether the token opens anything at that time.
func (t Token) Usable(at time.Time) bool {
	return t.RevokedAt.IsZero() && (t.Principal.ExpiresAt.IsZero() || at.Before(t.Principal.ExpiresAt))
}
