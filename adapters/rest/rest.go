// Package rest is the native HTTP surface (contracts sections 1 and 2). It
// decodes, calls one use case, and writes its answer.
package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Service is the use cases of the surface.
type Service interface {
	Submit(ctx context.Context, r harness.Request, s harness.Submission) (harness.Answer, error)
	Read(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Answer, error)
	Cancel(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Answer, error)
	List(ctx context.Context, r harness.Request, f harness.ExecutionFilter) ([]anuencia.Execution, string, error)
	Events(ctx context.Context, r harness.Request, id anuencia.ExecutionID) ([]anuencia.SealedEvent, error)
	Follow(ctx context.Context, r harness.Request, id anuencia.ExecutionID, after int64, quiet time.Duration,
		emit func([]anuencia.SealedEvent) error) error
	Artifacts(ctx context.Context, r harness.Request, id anuencia.ExecutionID) ([]anuencia.Artifact, error)
	Artifact(ctx context.Context, r harness.Request, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error)
	Decide(ctx context.Context, r harness.Request, cmd harness.DecideCommand) (harness.Answer, error)
	Approvals(ctx context.Context, r harness.Request, f harness.ApprovalFilter) ([]harness.ApprovalView, string, error)
	Approval(ctx context.Context, r harness.Request, ref string) (harness.ApprovalView, error)
	AuditEvents(ctx context.Context, r harness.Request, f harness.AuditFilter) ([]anuencia.SealedEvent, string, error)
	AuditEvent(ctx context.Context, r harness.Request, id anuencia.EventID) (anuencia.SealedEvent, error)
	Reconstruct(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Reconstruction, error)
	Intents(ctx context.Context, r harness.Request) ([]anuencia.Intent, error)
	CreateToken(ctx context.Context, r harness.Request, n harness.NewToken) (string, anuencia.Token, error)
	Tokens(ctx context.Context, r harness.Request, p harness.Page) ([]anuencia.Token, string, error)
	PlaceHold(ctx context.Context, r harness.Request, intent, reason string) (anuencia.Hold, error)
	LiftHold(ctx context.Context, r harness.Request, id anuencia.HoldID, reason string) (anuencia.Hold, error)
	Holds(ctx context.Context, r harness.Request) ([]anuencia.Hold, error)
	RevokeToken(ctx context.Context, r harness.Request, id anuencia.TokenID) error
	Ready(ctx context.Context) map[string]error
}

// Options of the surface. All are required.
type Options struct {
	Service Service
	Kit     *httpkit.Kit
	Metrics http.Handler
	// Words lists the pre-approved words in a language, for GET /catalog/messages.
	Words func(lang string) map[string]any
}

type surface struct {
	o Options
}

// Mount adds the routes to r, a router of Options.Kit.
func Mount(r gin.IRouter, o Options) error {
	if o.Service == nil || o.Kit == nil || o.Metrics == nil || o.Words == nil {
		return errors.New("rest: an option is missing")
	}
	docs, err := newDocs()
	if err != nil {
		return err
	}
	s := &surface{o: o}
	authed, open := o.Kit.Authed, o.Kit.Open
	api := r.Group("/api/v1")

	api.POST("/executions", authed(s.submit))
	api.GET("/executions", authed(s.list))
	api.GET("/executions/:id", authed(s.read))
	api.POST("/executions/:id/cancel", authed(s.cancel))
	api.GET("/executions/:id/events", authed(s.events))
	api.GET("/executions/:id/artifacts", authed(s.artifacts))
	api.GET("/executions/:id/artifacts/:filename", authed(s.artifact))

	api.GET("/approvals", authed(s.approvals))
	api.GET("/approvals/:ref", authed(s.approval))
	api.POST("/approvals/:ref/approve", authed(s.decideRef(anuencia.Approve)))
	api.POST("/approvals/:ref/reject", authed(s.decideRef(anuencia.Reject)))
	r.POST("/aprobar", authed(s.decideBody(anuencia.Approve)))
	r.POST("/rechazar", authed(s.decideBody(anuencia.Reject)))

	api.GET("/audit/events", authed(s.auditEvents))
	api.GET("/audit/events/:id", authed(s.auditEvent))
	api.GET("/audit/executions/:id", authed(s.reconstruct))

	api.GET("/catalog/intents", authed(s.intents))
	api.GET("/catalog/messages", authed(s.messages))

	api.POST("/admin/tokens", authed(s.createToken))
	api.GET("/admin/tokens", authed(s.tokens))
	api.DELETE("/admin/tokens/:id", authed(s.revokeToken))
	api.POST("/admin/holds", authed(s.placeHold))
	api.GET("/admin/holds", authed(s.holds))
	api.POST("/admin/holds/:id/lift", authed(s.liftHold))

	r.GET("/metrics", authed(s.metrics))
	for path, h := range map[string]httpkit.Handler{
		"/healthz": s.healthz, "/readyz": s.readyz, "/openapi.yaml": docs.spec, "/docs": docs.page,
	} {
		r.GET(path, open(h))
		r.HEAD(path, open(h)) // probes ask so
	}
	return nil
}

// id reads a path parameter that is a canonical uuid; anything else does not
// exist.
func id[I ~[16]byte](c *httpkit.Call, name string) (I, error) {
	v, err := anuencia.ParseID[I](c.Param(name))
	if err != nil {
		return v, anuencia.NotFound()
	}
	return v, nil
}

// status is the body of the health routes.
type status struct {
	Status string            `json:"status"`
	Parts  map[string]string `json:"parts,omitempty"`
}

// retryReady is how soon it is worth asking again.
const retryReady = 5 * time.Second

func (s *surface) healthz(c *httpkit.Call) error {
	return c.JSON(http.StatusOK, status{Status: "ok"})
}

// readyz gives a status to anyone, and the failing parts to operators only.
func (s *surface) readyz(c *httpkit.Call) error {
	bad := s.o.Service.Ready(c.Context())
	if len(bad) == 0 {
		return c.JSON(http.StatusOK, status{Status: "ready"})
	}
	body := status{Status: "not_ready"}
	if c.Operates() {
		body.Parts = map[string]string{}
		for part := range bad {
			body.Parts[part] = "failing"
		}
	}
	return c.Retry(http.StatusServiceUnavailable, retryReady, body)
}

func (s *surface) metrics(c *httpkit.Call) error {
	if !c.Request.Principal.Has(anuencia.ScopeOperate) {
		return anuencia.Denied(anuencia.PolicyScope)
	}
	return c.Serve(s.o.Metrics)
}
