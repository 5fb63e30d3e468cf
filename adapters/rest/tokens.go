package rest

import (
	"context"
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

type personBody struct {
	Channel    string `json:"channel" validate:"required,oneof=ui api n8n telegram uhp mcp"`
	ExternalID string `json:"external_id" validate:"required,max=200"`
}

type newTokenBody struct {
	Name       string      `json:"name" validate:"required,max=100"`
	Person     *personBody `json:"person"`
	Scopes     []string    `json:"scopes" validate:"required,min=1,max=10,unique,dive,oneof=submit decide audit policy admin operate"`
	Channels   []string    `json:"channels" validate:"required,min=1,max=10,unique,dive,oneof=ui api n8n telegram uhp mcp"`
	ActFor     []string    `json:"act_for" validate:"max=50,unique,dive,required,max=100"`
	ExpiresInS int64       `json:"expires_in_s" validate:"min=0,max=315360000"`
}

type tokenBody struct {
	TokenID     string      `json:"token_id"`
	PrincipalID string      `json:"principal_id"`
	Name        string      `json:"name"`
	Person      *personBody `json:"person"`
	Scopes      []string    `json:"scopes"`
	Channels    []string    `json:"channels"`
	ActFor      []string    `json:"act_for"`
	CreatedAt   string      `json:"created_at"`
	CreatedBy   string      `json:"created_by"`
	ExpiresAt   *string     `json:"expires_at"`
	RevokedAt   *string     `json:"revoked_at"`
}

type madeTokenBody struct {
	Token string `json:"token"` // shown this once
	tokenBody
}

// createToken is POST /admin/tokens.
func (a *api) createToken(ctx context.Context, c *httpkit.Call) error {
	var b newTokenBody
	if err := c.Decode(&b); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	for path, texts := range map[string][]string{"/name": {b.Name}, "/act_for": b.ActFor} {
		for _, s := range texts {
			if !httpkit.PlainText(s, 100) {
				return anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: path, Rule: "text"})
			}
		}
	}
	n := harness.NewToken{
		Name: b.Name, Scopes: retyped[anuencia.Scope](b.Scopes), Channels: retyped[anuencia.Channel](b.Channels), ActFor: b.ActFor,
		ExpiresIn: time.Duration(b.ExpiresInS) * time.Second,
	}
	if b.Person != nil {
		n.Person = anuencia.Handle{Channel: anuencia.Channel(b.Person.Channel), ExternalID: b.Person.ExternalID}
	}
	secret, t, err := a.o.Service.CreateToken(ctx, request(c), n)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return c.JSON(http.StatusCreated, madeTokenBody{Token: secret, tokenBody: tokenOf(t)})
}

// tokens is GET /admin/tokens.
func (a *api) tokens(ctx context.Context, c *httpkit.Call) error {
	q := c.Query("cursor", "limit")
	var p harness.Page
	p.Before, p.Limit = q.Page()
	if err := q.Err(); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	list, next, err := a.o.Service.Tokens(ctx, request(c), p)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return writeList(c, list, next, tokenOf)
}

// revokeToken is DELETE /admin/tokens/{id}; a second time changes nothing.
func (a *api) revokeToken(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.TokenID](c)
	if err != nil {
		return err
	}
	if err := a.o.Service.RevokeToken(ctx, request(c), id); err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	c.Write(contract.Rendering{Status: http.StatusNoContent})
	return nil
}

func tokenOf(t anuencia.Token) tokenBody {
	b := tokenBody{
		TokenID: t.ID.String(), PrincipalID: t.Principal.ID.String(), Name: t.Principal.Name, Scopes: retyped[string](t.Principal.Scopes),
		Channels: retyped[string](t.Principal.Channels), ActFor: retyped[string](t.Principal.ActFor), CreatedAt: instant(t.CreatedAt),
		CreatedBy: t.CreatedBy, ExpiresAt: instantOrNull(t.Principal.ExpiresAt), RevokedAt: instantOrNull(t.RevokedAt),
	}
	if h := t.Principal.Person; !h.IsZero() {
		b.Person = &personBody{Channel: string(h.Channel), ExternalID: h.ExternalID}
	}
	return b
}
