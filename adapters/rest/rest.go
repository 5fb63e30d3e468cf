// Package rest is the native HTTP API (contracts section 2): it turns requests
// into calls of the use cases and their answers into JSON. It contains no rule.
package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Service is the use cases that the API calls; *harness.Service is one. Errors
// are faults.
type Service interface {
	Authenticate(ctx context.Context, secret, remote string) (anuencia.Principal, error)
	Refuse(ctx context.Context, r harness.Request, f *anuencia.Fault, about map[string]any) error
	Brief(ctx context.Context, r harness.Request) bool

	Submit(ctx context.Context, r harness.Request, s harness.Submission) (harness.Answer, error)
	Read(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Answer, error)
	Cancel(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Answer, error)
	List(ctx context.Context, r harness.Request, f harness.ExecutionFilter) ([]anuencia.Execution, string, error)
	Events(ctx context.Context, r harness.Request, id anuencia.ExecutionID) ([]anuencia.SealedEvent, error)
	Artifacts(ctx context.Context, r harness.Request, id anuencia.ExecutionID) ([]anuencia.Artifact, error)
	Artifact(ctx context.Context, r harness.Request, id anuencia.ExecutionID, filename string) (anuencia.Artifact, error)

	Decide(ctx context.Context, r harness.Request, cmd harness.DecideCommand) (harness.Answer, error)
	Approvals(ctx context.Context, r harness.Request, f harness.ApprovalFilter) ([]harness.ApprovalView, string, error)
	Approval(ctx context.Context, r harness.Request, ref string) (harness.ApprovalView, error)

	AuditEvents(ctx context.Context, r harness.Request, f harness.AuditFilter) ([]anuencia.SealedEvent, string, error)
	AuditEvent(ctx context.Context, r harness.Request, id anuencia.EventID) (anuencia.SealedEvent, error)
	Reconstruct(ctx context.Context, r harness.Request, id anuencia.ExecutionID) (harness.Reconstruction, error)

	Intents(ctx context.Context, r harness.Request) ([]anuencia.Intent, error)
	CreateToken(ctx context.Context, r harness.Request, n harness.NewToken) (secret string, t anuencia.Token, err error)
	Tokens(ctx context.Context, r harness.Request, p harness.Page) ([]anuencia.Token, string, error)
	RevokeToken(ctx context.Context, r harness.Request, id anuencia.TokenID) error
	Ready(ctx context.Context) map[string]error
}

// Words are the catalog's (internal/catalog).
type Words interface {
	contract.Messages
	Text(lang, key string) string
	Texts() []string
}

// Options are the parts of the API; all but Location and Metrics are required.
type Options struct {
	Kit     *httpkit.Kit
	Service Service
	Words   func() Words // of the catalog in force
	Metrics *Metrics     // its Observe belongs into the Kit's options
	// Location is where a day in a filter begins; UTC when nil.
	Location *time.Location
}

type api struct {
	o    Options
	docs docsPage
}

// Mount adds the routes. They need the router of Kit.Engine, so that unknown
// paths get the same answers.
func Mount(r gin.IRouter, o Options) error {
	if o.Kit == nil || o.Service == nil || o.Words == nil {
		return errors.New("rest: a required part is missing")
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	docs, err := newDocs()
	if err != nil {
		return err
	}
	a := &api{o: o, docs: docs}
	for _, e := range a.endpoints() {
		h := o.Kit.Handle(e.route, e.handler)
		r.Handle(e.method, e.path, h)
		if e.method == http.MethodGet {
			r.Handle(http.MethodHead, e.path, h) // net/http leaves the body out
		}
	}
	return nil
}

// NewGate lets the kit ask the use cases who calls and record refusals.
func NewGate(s Service) httpkit.Gate { return gate{s} }

type gate struct{ service Service }

// Authenticate implements httpkit.Gate.
func (g gate) Authenticate(ctx context.Context, secret, remote string) (anuencia.Principal, error) {
	return g.service.Authenticate(ctx, secret, remote) //nolint:wrapcheck // a fault of the use cases
}

// Refuse implements httpkit.Gate.
func (g gate) Refuse(ctx context.Context, c *httpkit.Call, f *anuencia.Fault, about map[string]any) error {
	return g.service.Refuse(ctx, request(c), f, about) //nolint:wrapcheck // a fault of the use cases
}

// Brief implements httpkit.Gate.
func (g gate) Brief(ctx context.Context, c *httpkit.Call) bool { return g.service.Brief(ctx, request(c)) }

func request(c *httpkit.Call) harness.Request {
	return harness.Request{
		ID: c.ID, Principal: c.Principal, ActFor: c.ActFor, Channel: c.Channel, TraceID: c.TraceID, Remote: c.Remote,
		Received: c.Received, Wait: c.Wait,
	}
}

// answer writes an execution as its contract.
func (a *api) answer(c *httpkit.Call, ans harness.Answer) error {
	if ans.Ran {
		a.o.Metrics.execution(ans.Execution)
	}
	r := contract.FromAnswer(contract.Answer{
		Execution: ans.Execution, Ran: ans.Ran, Submitted: ans.Submitted, Unfinished: ans.Unfinished, HideResult: ans.HideResult,
	}, c.Voice(ans.Brief))
	if r.Status == http.StatusAccepted {
		c.SetHeader("Location", base+"/executions/"+ans.Execution.ID.String())
	}
	c.Write(r)
	return nil
}

// pathID reads an id of the path: the canonical form only, and what is none does
// not exist.
func pathID[I ~[16]byte](c *httpkit.Call) (I, error) {
	id, err := anuencia.ParseID[I](c.Param("id"))
	if err != nil {
		return id, anuencia.NotFound()
	}
	c.About("id", c.Param("id"))
	return id, nil
}

// pathRef reads an approval's id or short code of the path.
func pathRef(c *httpkit.Call) (string, error) {
	ref := c.Param("id")
	if _, err := anuencia.ParseID[anuencia.ApprovalID](ref); err != nil {
		if _, ok := anuencia.NormalizeShortCode(ref); !ok {
			return "", anuencia.NotFound()
		}
	}
	c.About("approval", ref)
	return ref, nil
}

// list is a page on the wire.
type list[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// writeList writes a page; an empty cursor is its end.
func writeList[T, W any](c *httpkit.Call, items []T, next string, wire func(T) W) error {
	l := list[W]{Items: make([]W, 0, len(items))}
	for _, it := range items {
		l.Items = append(l.Items, wire(it))
	}
	if next != "" {
		l.NextCursor = &next
	}
	return c.JSON(http.StatusOK, l)
}
