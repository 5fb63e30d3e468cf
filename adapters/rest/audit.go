package rest

import (
	"context"
	"net/http"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// auditEvents is GET /audit/events.
func (a *api) auditEvents(ctx context.Context, c *httpkit.Call) error {
	q := c.Query("cursor", "limit", "type", "execution_id", "actor", "principal", "channel", "subject", "code", "from", "to")
	var f harness.AuditFilter
	f.Before, f.Limit = q.Page()
	f.Type = anuencia.EventType(q.OneOf("type", func(s string) bool { return anuencia.EventType(s).Valid() }))
	f.ExecutionID = httpkit.QueryID[anuencia.ExecutionID](q, "execution_id")
	f.Actor = httpkit.QueryID[anuencia.PersonID](q, "actor")
	f.Principal = httpkit.QueryID[anuencia.PrincipalID](q, "principal")
	f.Channel = anuencia.Channel(q.OneOf("channel", func(s string) bool {
		return anuencia.Channel(s).Valid() || anuencia.Channel(s) == anuencia.ChannelCLI
	}))
	f.Subject = q.Text("subject")
	f.Code = anuencia.Code(q.OneOf("code", func(s string) bool { return anuencia.Code(s).Valid() }))
	f.From, f.To = q.Time("from", a.o.Location), q.Time("to", a.o.Location)
	if err := q.Err(); err != nil {
		return err //nolint:wrapcheck // a fault of the edge
	}
	events, next, err := a.o.Service.AuditEvents(ctx, request(c), f)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return writeList(c, events, next, rowOf)
}

// auditEvent is GET /audit/events/{id}: an audit_ref is found here.
func (a *api) auditEvent(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.EventID](c)
	if err != nil {
		return err
	}
	e, err := a.o.Service.AuditEvent(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return c.JSON(http.StatusOK, rowOf(e))
}

// reconstruction is GET /audit/executions/{id}. The execution is null for a
// request that was refused before it became one.
func (a *api) reconstruction(ctx context.Context, c *httpkit.Call) error {
	id, err := pathID[anuencia.ExecutionID](c)
	if err != nil {
		return err
	}
	rec, err := a.o.Service.Reconstruct(ctx, request(c), id)
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return c.JSON(http.StatusOK, a.reconstructionOf(c, rec))
}
