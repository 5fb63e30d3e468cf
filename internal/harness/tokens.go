package harness

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// CreateToken makes a credential at an administrator's wish and gives its
// secret, once. Tokens that decide are not made by API (governance section 7):
// POLICY_DENIED by scope.
func (s *Service) CreateToken(ctx context.Context, r Request, n NewToken) (string, anuencia.Token, error) {
	if err := s.admin(ctx, r); err != nil {
		return "", anuencia.Token{}, err
	}
	if slices.Contains(n.Scopes, anuencia.ScopeDecide) {
		return "", anuencia.Token{}, anuencia.Denied(anuencia.PolicyScope)
	}
	return s.createToken(ctx, n, r)
}

// CreateTokenOnHost makes any credential; it is for the command line of the
// machine that holds the database.
func (s *Service) CreateTokenOnHost(ctx context.Context, n NewToken) (string, anuencia.Token, error) {
	return s.createToken(ctx, n, Request{Channel: anuencia.ChannelCLI})
}

func (s *Service) admin(ctx context.Context, r Request) error {
	if err := s.need(r, anuencia.ScopeAdmin); err != nil {
		return err
	}
	return s.allowRead(ctx, r)
}

func (s *Service) createToken(ctx context.Context, n NewToken, by Request) (string, anuencia.Token, error) {
	if err := checkToken(n); err != nil {
		return "", anuencia.Token{}, err
	}
	if !n.Person.IsZero() {
		if _, err := s.o.Directory.ResolveFresh(ctx, n.Person); err != nil {
			if f := anuencia.AsFault(err); f.Code != anuencia.CodeIdentityNotFound {
				return "", anuencia.Token{}, err
			}
			return "", anuencia.Token{}, anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/person", Rule: "known"})
		}
	}
	secret, hash, err := s.newSecret()
	if err != nil {
		return "", anuencia.Token{}, err
	}
	principal, err := s.o.Store.EnsurePrincipal(ctx, n.Name)
	if err != nil {
		return "", anuencia.Token{}, err
	}
	now := s.now()
	t := anuencia.Token{
		ID: anuencia.TokenID(s.o.NewID()), Hash: hash, CreatedAt: now, CreatedBy: creator(by),
		Principal: anuencia.Principal{
			ID: principal, Name: n.Name, Person: n.Person, Scopes: n.Scopes, Channels: n.Channels, ActFor: n.ActFor,
		},
	}
	t.Principal.TokenID = t.ID
	if n.ExpiresIn > 0 {
		t.Principal.ExpiresAt = now.Add(n.ExpiresIn)
	}
	ev := s.tokenEvent(by, anuencia.EventTokenCreated, t)
	err = s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.PutToken(ctx, t, ev) })
	if err != nil {
		return "", anuencia.Token{}, err
	}
	return secret, t, nil
}

func creator(r Request) string {
	if r.Principal.Name != "" {
		return r.Principal.Name
	}
	return string(r.Channel)
}

func (s *Service) tokenEvent(by Request, t anuencia.EventType, tok anuencia.Token) anuencia.AuditEvent {
	ev := s.systemEvent(t, map[string]any{
		"token_id": tok.ID.String(), "name": tok.Principal.Name, "scopes": names(tok.Principal.Scopes),
		"channels": names(tok.Principal.Channels), "act_for": append([]string{}, tok.Principal.ActFor...),
		"person": tok.Principal.Person.ExternalID, "by": creator(by),
	})
	ev.PrincipalID, ev.Channel, ev.TraceID = by.Principal.ID, s.channelOf(by), by.TraceID
	return ev
}

func checkToken(n NewToken) error {
	var bad []anuencia.FieldError
	add := func(wrong bool, path, rule string) {
		if wrong {
			bad = append(bad, anuencia.FieldError{Path: path, Rule: rule})
		}
	}
	add(n.Name == "" || len(n.Name) > 100, "/name", "length")
	add(len(n.Scopes) == 0, "/scopes", "required")
	add(len(n.Channels) == 0, "/channels", "required")
	add(slices.ContainsFunc(n.Scopes, func(sc anuencia.Scope) bool { return !sc.Valid() }), "/scopes", "oneof")
	add(slices.ContainsFunc(n.Channels, func(c anuencia.Channel) bool { return !c.Valid() }), "/channels", "oneof")
	add(slices.ContainsFunc(n.ActFor, func(r string) bool { return slices.Contains(anuencia.NeverActFor(), r) }), "/act_for", "never_covered")
	add(slices.Contains(n.Scopes, anuencia.ScopeDecide) && n.Person.IsZero(), "/person", "required_to_decide")
	decides := slices.Contains(n.Scopes, anuencia.ScopeDecide)
	add(decides && slices.Contains(n.Scopes, anuencia.ScopeAdmin), "/scopes", "admin_decides_nothing")
	add(n.ExpiresIn < 0, "/expires_in_s", "min")
	if len(bad) > 0 {
		return anuencia.Invalid(anuencia.ReasonSchema, bad...)
	}
	return nil
}

// newSecret makes `anu_`, 32 random bytes and their CRC-32, in hex.
func (s *Service) newSecret() (string, [32]byte, error) {
	var b [tokenRandom + 4]byte
	if err := s.o.Random(b[:tokenRandom]); err != nil {
		return "", [32]byte{}, anuencia.Internal("random", err)
	}
	binary.BigEndian.PutUint32(b[tokenRandom:], crc32.ChecksumIEEE(b[:tokenRandom]))
	secret := TokenPrefix + hex.EncodeToString(b[:])
	return secret, sha256.Sum256([]byte(secret)), nil
}

// Tokens lists credentials, newest first, never their secrets.
func (s *Service) Tokens(ctx context.Context, r Request, p Page) ([]anuencia.Token, string, error) {
	if err := s.admin(ctx, r); err != nil {
		return nil, "", err
	}
	return page(&p, func() ([]anuencia.Token, error) { return s.o.Store.Tokens(ctx, p) },
		func(t anuencia.Token) string { return t.ID.String() })
}

// RevokeToken ends a credential at once; a second time changes nothing.
func (s *Service) RevokeToken(ctx context.Context, r Request, id anuencia.TokenID) error {
	if err := s.admin(ctx, r); err != nil {
		return err
	}
	return s.revokeToken(ctx, r, id)
}

// RevokeTokenOnHost is RevokeToken for the command line.
func (s *Service) RevokeTokenOnHost(ctx context.Context, id anuencia.TokenID) error {
	return s.revokeToken(ctx, Request{Channel: anuencia.ChannelCLI}, id)
}

func (s *Service) revokeToken(ctx context.Context, by Request, id anuencia.TokenID) error {
	t, err := s.o.Store.Token(ctx, id)
	if err != nil || !t.RevokedAt.IsZero() {
		return err
	}
	t.RevokedAt = s.now()
	ev := s.tokenEvent(by, anuencia.EventTokenRevoked, t)
	return s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.PutToken(ctx, t, ev) })
}
