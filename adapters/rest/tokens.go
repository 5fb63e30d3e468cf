package rest

import (
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// newToken is the body of POST /admin/tokens.
type newToken struct {
	Name      string   `json:"name" validate:"required,max=100"`
	Scopes    []string `json:"scopes" validate:"required,min=1,max=6,dive,oneof=submit decide audit policy admin operate"`
	Channels  []string `json:"channels" validate:"required,min=1,max=6,dive,oneof=ui api n8n telegram uhp mcp"`
	Person    *handle  `json:"person"`
	ActFor    []string `json:"act_for" validate:"max=50,dive,min=1,max=100"`
	ExpiresIn int64    `json:"expires_in_s" validate:"min=0,max=315360000"`
}

type handle struct {
	Channel    string `json:"channel" validate:"required,oneof=ui api n8n telegram uhp mcp"`
	ExternalID string `json:"external_id" validate:"required,max=200"`
}

// tokenRow is a credential without its secret.
type tokenRow struct {
	TokenID     string     `json:"token_id"`
	PrincipalID string     `json:"principal_id"`
	Name        string     `json:"name"`
	Scopes      []string   `json:"scopes"`
	Channels    []string   `json:"channels"`
	Person      *handle    `json:"person"`
	ActFor      []string   `json:"act_for"`
	CreatedAt   time.Time  `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ExpiresAt   *time.Time `json:"expires_at"`
	RevokedAt   *time.Time `json:"revoked_at"`
}

// createdToken has the secret, this once.
type createdToken struct {
	tokenRow
	Token string `json:"token"`
}

func tokenOf(t anuencia.Token) tokenRow {
	p := t.Principal
	row := tokenRow{
		TokenID: t.ID.String(), PrincipalID: p.ID.String(), Name: p.Name, Scopes: texts(p.Scopes), Channels: texts(p.Channels),
		ActFor: nonNil(p.ActFor), CreatedAt: t.CreatedAt, CreatedBy: t.CreatedBy, ExpiresAt: optionalTime(p.ExpiresAt), RevokedAt: optionalTime(t.RevokedAt),
	}
	if !p.Person.IsZero() {
		row.Person = &handle{Channel: string(p.Person.Channel), ExternalID: p.Person.ExternalID}
	}
	return row
}

func (s *surface) createToken(c *httpkit.Call) error {
	var body newToken
	if err := c.Decode(&body); err != nil {
		return err
	}
	n := harness.NewToken{Name: body.Name, ActFor: body.ActFor, ExpiresIn: time.Duration(body.ExpiresIn) * time.Second}
	for _, sc := range body.Scopes {
		n.Scopes = append(n.Scopes, anuencia.Scope(sc))
	}
	for _, ch := range body.Channels {
		n.Channels = append(n.Channels, anuencia.Channel(ch))
	}
	if body.Person != nil {
		n.Person = anuencia.Handle{Channel: anuencia.Channel(body.Person.Channel), ExternalID: body.Person.ExternalID}
	}
	secret, t, err := s.o.Service.CreateToken(c.Context(), c.Request, n)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, createdToken{tokenRow: tokenOf(t), Token: secret})
}

func (s *surface) tokens(c *httpkit.Call) error {
	q := c.Query()
	p := q.Page()
	if err := q.Err(); err != nil {
		return err
	}
	items, next, err := s.o.Service.Tokens(c.Context(), c.Request, p)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(items, next, tokenOf))
}

func (s *surface) revokeToken(c *httpkit.Call) error {
	v, err := id[anuencia.TokenID](c, "id")
	if err != nil {
		return err
	}
	if err := s.o.Service.RevokeToken(c.Context(), c.Request, v); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
