package rest

import (
	"context"
	"encoding/hex"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

type actorBody struct {
	ExternalID string `json:"external_id" validate:"required,max=200"`
}

type submitBody struct {
	Intent   string         `json:"intent" validate:"required,max=100"`
	Input    jsontext.Value `json:"input" validate:"required"`
	Actor    *actorBody     `json:"actor"`
	Channel  string         `json:"channel" validate:"omitempty,oneof=ui api n8n telegram uhp mcp"`
	Metadata jsontext.Value `json:"metadata" validate:"omitempty,max=16384"`
}

// submit is POST /executions.
func (a *api) submit(ctx context.Context, c *httpkit.Call) error {
	var b submitBody
	if err := c.Decode(&b); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	c.About("intent", b.Intent)
	if b.Metadata.Kind() == 'n' {
		b.Metadata = nil
	}
	for path, v := range map[string]jsontext.Value{"/input": b.Input, "/metadata": b.Metadata} {
		if v != nil && v.Kind() != '{' {
			return anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: path, Rule: "object"})
		}
	}
	if err := c.NameActor(b.Actor.name()); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	c.Channel = anuencia.Channel(b.Channel)
	keys, err := idempotencyKeys(c)
	if err != nil {
		return err
	}
	ans, err := a.o.Service.Submit(ctx, request(c), harness.Submission{
		Intent: b.Intent, Input: b.Input, Metadata: b.Metadata, Keys: keys, Route: "POST " + base + "/executions",
	})
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return a.answer(c, ans)
}

func (b *actorBody) name() string {
	if b == nil {
		return ""
	}
	return b.ExternalID
}

// idempotencyKeys reads the header: one, of up to 255 characters, or none.
func idempotencyKeys(c *httpkit.Call) ([]string, error) {
	values := c.HeaderValues("Idempotency-Key")
	if len(values) == 0 {
		return nil, nil
	}
	if len(values) > 1 || values[0] == "" || !httpkit.PlainText(values[0], 255) {
		return nil, anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/header/Idempotency-Key", Rule: "text"})
	}
	return values, nil
}

// execution is GET /executions/{id}.
func (a *api) execution(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	ans, err := a.o.Service.Read(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return a.answer(c, ans)
}

// cancel is POST /executions/{id}/cancel. The body may name the actor, or be
// left out.
func (a *api) cancel(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	var b struct {
		Actor *actorBody `json:"actor"`
	}
	if err := c.DecodeOptional(&b); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	if err := c.NameActor(b.Actor.name()); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	ans, err := a.o.Service.Cancel(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return a.answer(c, ans)
}

// executions is GET /executions.
func (a *api) executions(ctx context.Context, c *httpkit.Call) error {
	q := c.Query("cursor", "limit", "state", "intent", "actor", "subject", "channel", "risk", "code", "from", "to")
	var f harness.ExecutionFilter
	f.Before, f.Limit = q.Page()
	f.State = anuencia.State(q.OneOf("state", func(s string) bool { return anuencia.State(s).Valid() }))
	f.Intent, f.Subject = q.Text("intent"), q.Text("subject")
	f.Actor = httpkit.QueryID[anuencia.PersonID](q, "actor")
	f.Channel = anuencia.Channel(q.OneOf("channel", func(s string) bool { return anuencia.Channel(s).Valid() }))
	f.Risk = anuencia.Risk(q.OneOf("risk", func(s string) bool { return anuencia.Risk(s).Valid() }))
	f.Code = anuencia.Code(q.OneOf("code", func(s string) bool { return anuencia.Code(s).Valid() }))
	f.From, f.To = q.Time("from", a.o.Location), q.Time("to", a.o.Location)
	if err := q.Err(); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	items, next, err := a.o.Service.List(ctx, request(c), f)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return writeList(c, items, next, itemOf(c.Principal))
}

// events is GET /executions/{id}/events: whole rows for an auditor, what is safe
// for the actor.
func (a *api) events(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	events, err := a.o.Service.Events(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	if c.Principal.Has(anuencia.ScopeAudit) {
		return writeList(c, events, "", rowOf)
	}
	return writeList(c, events, "", safeRowOf)
}

// artifacts is GET /executions/{id}/artifacts.
func (a *api) artifacts(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	files, err := a.o.Service.Artifacts(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return writeList(c, files, "", artifactOf)
}

const longestFilename = 255

// artifact is GET /executions/{id}/artifacts/{filename}: always a download, never
// something that a browser would run.
func (a *api) artifact(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	name := c.Param("filename")
	if !httpkit.PlainText(name, longestFilename) || strings.ContainsAny(name, `/\`) {
		return anuencia.NotFound()
	}
	f, err := a.o.Service.Artifact(ctx, request(c), id, name)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": f.Filename})
	if disposition == "" {
		disposition = "attachment"
	}
	c.SetHeader("Content-Disposition", disposition)
	c.SetHeader("Content-Security-Policy", "default-src 'none'; sandbox")
	c.File(mediaType(f.MediaType), `"`+hex.EncodeToString(f.SHA256[:])+`"`, f.Content)
	return nil
}

func mediaType(t string) string {
	if _, _, err := mime.ParseMediaType(t); err != nil {
		return "application/octet-stream"
	}
	if strings.HasPrefix(t, "text/") && !strings.Contains(t, "charset") {
		return t + "; charset=utf-8"
	}
	return t
}

// health is GET /healthz: the process answers.
func (a *api) health(_ context.Context, c *httpkit.Call) error {
	return c.JSON(http.StatusOK, statusBody{Status: "ok"})
}
